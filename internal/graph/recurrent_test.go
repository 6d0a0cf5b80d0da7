package graph

import (
	"errors"
	"strings"
	"testing"
)

// recurrent is a graph with every operation that keeps a state.
func recurrent(t testing.TB) *Graph {
	t.Helper()
	b := NewBuilder()
	node := func(n *Node, err error) *Node {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	b.G.Layers = 1
	x := node(b.Embed(b.Tokens(), Tensor("embed", []int{9, 24}), 0))
	b.Layer = 0
	x = node(b.Conv1D(x, Tensor("c", []int{24, 4}), Tensor("cb", []int{24})))
	part := func(from, to int, shape ...int) *Node {
		return node(b.Reshape(node(b.Slice(x, 0, from, to, 1)), shape))
	}
	y := node(b.Scan(part(0, 8, 4, 2), part(8, 14, 2, 3), part(14, 20, 2, 3), part(20, 24, 4), node(b.Param(Tensor("a", []int{4})))))
	z := node(b.GatedDelta(part(0, 6, 2, 3), part(6, 12, 2, 3), y, part(12, 24, 4, 3), part(20, 24, 4), true))
	z = node(b.GeneralDelta(part(0, 6, 2, 3), part(6, 12, 2, 3), z, part(12, 24, 4, 3), part(0, 6, 2, 3), part(6, 12, 2, 3), false))
	z = node(b.LinearAttention(LinearAttentionIn{Q: part(0, 6, 2, 3), K: part(6, 12, 2, 3), V: z, G: part(20, 24, 4), I: part(20, 24, 4), U: part(16, 20, 4)}, LinearAttentionAttr{Norm: "max", Eps: 1e-6}))
	z = node(b.Reshape(node(b.Shift(node(b.Reshape(z, []int{8})), 3)), []int{4, 2}))
	b.Layer = 1
	b.G.Outputs = []Output{{"logits", node(b.Reshape(z, []int{8})).ID}}
	return b.G
}

func TestRecurrentRoundTrip(t *testing.T) {
	g := recurrent(t)
	data, err := Encode(g)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if Text(again, PrintOptions{}) != Text(g, PrintOptions{}) || len(TensorNames(again)) != 4 {
		t.Errorf("read back as\n%s", Text(again, PrintOptions{}))
	}
	for i, want := range []int{3 * 24, 4 * 2 * 3, 4 * 3 * 2, 4 * 3 * 2, 4 * (3*3 + 1), 3 * 8} {
		if c := again.Caches[i]; c.Kind != CacheState || c.Size != want || c.Layer != 0 {
			t.Errorf("cache %d is %+v, want a state of %d", i, c, want)
		}
	}
	for name, change := range map[string][2]string{
		"another size":    {`"Size":72`, `"Size":71`},
		"a negative size": {`"Size":24`, `"Size":-24`},
		"no such cache":   {`"Cache":1`, `"Cache":9`},
		"another kind":    {`"Kind":"state"`, `"Kind":"kv"`},
		"too few inputs":  {`"op":"gated_delta"`, `"op":"ssd_scan"`},
		"one input less":  {`"General":true`, `"General":false`},
		"no gate":         {`"Gate":true`, `"Gate":false`},
		"no keys":         {`"Keys":true`, `"Keys":false`},
		"another norm":    {`"Norm":"max"`, `"Norm":"least"`},
		"no norm":         {`"Norm":"max"`, `"Norm":""`},
		"a bad eps":       {`"Eps":0.000001`, `"Eps":-1`},
		"a far shift":     {`"Shift":3`, `"Shift":99999999`},
		"no shift":        {`"Shift":3`, `"Shift":0`},
	} {
		bad := strings.Replace(string(data), change[0], change[1], 1)
		if bad == string(data) {
			t.Fatalf("%s: %s is not in the text:\n%s", name, change[0], data)
		}
		if _, err := Decode([]byte(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestRecurrentRefuses: what does not fit is said, and leaves no cache behind.
func TestRecurrentRefuses(t *testing.T) {
	b := NewBuilder()
	value := func(shape ...int) *Node {
		n, err := b.Const(make([]float64, Product(shape)), shape)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	w := Tensor
	for want, make := range map[string]func() (*Node, error){
		"needs a weight [6, taps]": func() (*Node, error) { return b.Conv1D(value(6), w("w", []int{5, 4}), nil) },
		"conv1d: bias":             func() (*Node, error) { return b.Conv1D(value(6), w("w", []int{6, 4}), w("b", []int{5})) },
		"2 groups do not divide 3": func() (*Node, error) {
			return b.Scan(value(3, 2), value(2, 4), value(2, 4), value(3), value(3))
		},
		"takes x [heads, width]": func() (*Node, error) {
			return b.Scan(value(4, 2), value(2, 4), value(2, 5), value(4), value(4))
		},
		"dt is one number a head": func() (*Node, error) {
			return b.Scan(value(4, 2), value(2, 4), value(2, 4), value(3), value(4))
		},
		"ssd_scan: A is [4] or [4, 5]": func() (*Node, error) {
			return b.Scan(value(4, 2), value(2, 5), value(2, 5), value(4), value(4, 2))
		},
		"a and b are [2 3] as k": func() (*Node, error) {
			return b.GeneralDelta(value(2, 3), value(2, 3), value(4, 2), value(4), value(2, 3), value(4, 3), false)
		},
		"takes v [heads, dv]": func() (*Node, error) {
			return b.LinearAttention(LinearAttentionIn{V: value(4), G: value(4)}, LinearAttentionAttr{})
		},
		"whose heads divide 4": func() (*Node, error) {
			return b.LinearAttention(LinearAttentionIn{V: value(4, 2), G: value(4), Q: value(3, 2), K: value(3, 2)}, LinearAttentionAttr{})
		},
		"the decay g is [4] or [4 2]": func() (*Node, error) {
			return b.LinearAttention(LinearAttentionIn{V: value(4, 2), G: value(2), Q: value(2, 2), K: value(2, 2)}, LinearAttentionAttr{})
		},
		"needs a norm": func() (*Node, error) {
			return b.LinearAttention(LinearAttentionIn{V: value(4, 2), G: value(4), I: value(4)}, LinearAttentionAttr{})
		},
		"the bonus u is [4], got": func() (*Node, error) {
			return b.LinearAttention(LinearAttentionIn{V: value(4, 2), G: value(4), I: value(4), U: value(2)}, LinearAttentionAttr{Norm: "sum"})
		},
		"shift: by -65537": func() (*Node, error) { return b.Shift(value(4), -65537) },
		"takes q, k [key heads, dk]": func() (*Node, error) {
			return b.GatedDelta(value(2, 3), value(2, 4), value(4, 2), value(4), value(4), false)
		},
		"2 key heads do not divide 3": func() (*Node, error) {
			return b.GatedDelta(value(2, 3), value(2, 3), value(3, 2), value(3), value(3), false)
		},
		"the decay is [4] or [4, 3]": func() (*Node, error) {
			return b.GatedDelta(value(2, 3), value(2, 3), value(4, 2), value(4, 2), value(4), false)
		},
		"beta is one number a head": func() (*Node, error) {
			return b.GatedDelta(value(2, 3), value(2, 3), value(4, 2), value(4), value(2), false)
		},
		"too large": func() (*Node, error) {
			return b.Conv1D(&Node{Shape: []int{1 << 39}}, w("w", []int{1 << 39, 1 << 30}), nil)
		},
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", want, err)
		}
		if len(b.G.Caches) != 0 {
			t.Fatalf("%q left a cache behind", want)
		}
	}
}
