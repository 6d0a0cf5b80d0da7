package graph

import (
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
)

// tiny is one attention layer with a mixture of experts, with every kind of
// attribute that JSON finds hard.
func tiny(t testing.TB) *Graph {
	t.Helper()
	b := NewBuilder()
	node := func(n *Node, err error) *Node {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	weight := func(w *Weight, err error) *Weight {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	table := Tensor("embed", []int{9, 8})
	b.AddRope(&RopeTable{Dim: 4, Freq: []float64{1, 0.01}, Factor: 1, Divisors: Tensor("freqs", []int{2})})
	x := node(b.Embed(b.Tokens(), table, 0))
	b.Layer, b.G.Layers = 0, 1
	b.At = func() (Line, []Line) { return Line{"m.star", 3}, []Line{{"m.star", 3}} }
	h := node(b.Norm(x, NormAttr{Kind: RMS, Eps: 1e-6, W: Tensor("n", []int{8})}))
	q := node(b.Reshape(node(b.Linear(h, weight(PermuteWeight(Tensor("q", []int{8, 8}), 0, []int{0, 2, 1, 3, 4, 5, 6, 7})), nil)), []int{-1, 4}))
	kv := Tensor("kv", []int{8, 8})
	k := node(b.Reshape(node(b.Linear(h, weight(SliceWeight(kv, 0, 0, 4, 1)), nil)), []int{1, 4}))
	v := node(b.Reshape(node(b.Linear(h, weight(SliceWeight(kv, 0, 4, 8, 1)), nil)), []int{1, 4}))
	q = node(b.Rope(q, RopeAttr{}))
	a := node(b.Attention(q, k, v, AttentionAttr{Scale: 0.5, Mask: MaskCausal, Window: 7, Sinks: Tensor("s", []int{2})}))
	x = node(b.Binary("add", x, node(b.Reshape(a, []int{8}))))
	x = node(b.Unary("clamp", x, -1, math.Inf(1)))
	r := node(b.Add(OpRoute, &RouteAttr{TopK: 1, Score: "sigmoid", Groups: 2, TopGroups: 1, GroupScore: "max", GroupFill: math.Inf(-1), Scale: 1}, nil,
		node(b.Linear(x, Tensor("r", []int{2, 8}), nil))))
	up := weight(StackWeights(Tensor("u0", []int{3, 8}), Tensor("u1", []int{3, 8})))
	x = node(b.Add(OpExperts, &ExpertsAttr{Experts: 2, Up: up, Down: Tensor("d", []int{2, 8, 3}), Act: "relu"}, nil, x, r))
	b.Layer = 1
	x = node(b.Linear(x, table, nil))
	b.G.Outputs = []Output{{"logits", x.ID}}
	return b.G
}

func TestRoundTrip(t *testing.T) {
	g := tiny(t)
	if err := Validate(g); err != nil {
		t.Fatal(err)
	}
	data, err := Encode(g)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, h) {
		t.Errorf("the graph changed:\n%s\n%s", Text(g, PrintOptions{}), Text(h, PrintOptions{}))
	}
	if h.Nodes[1].Attr.(*EmbedAttr).Table != h.Nodes[len(h.Nodes)-1].Attr.(*LinearAttr).W {
		t.Error("a shared weight is shared no more")
	}
}

func TestText(t *testing.T) {
	want, err := os.ReadFile("testdata/tiny.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := Text(tiny(t), PrintOptions{}); got != string(want) {
		t.Errorf("got:\n%s", got)
	}
}

func TestBuilderRefuses(t *testing.T) {
	b := NewBuilder()
	x, err := b.Embed(b.Tokens(), Tensor("e", []int{5, 8}), 0)
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.Reshape(x, []int{2, 4})
	if err != nil {
		t.Fatal(err)
	}
	_, concat := ConcatWeights(0, Tensor("a", []int{2, 3}), Tensor("b", []int{2, 4}))
	_, permute := PermuteWeight(Tensor("a", []int{2, 3}), 0, []int{0, 2})
	_, mx := MXFP4Weight(Tensor("a", []int{2, 3, 8}), Tensor("b", []int{2, 3}))
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"linear":  {second(b.Linear(x, Tensor("w", []int{4, 9}), nil)), "needs a weight [out, 8], got [4 9] of w"},
		"bias":    {second(b.Linear(x, Tensor("w", []int{4, 8}), Tensor("b", []int{5}))), "bias: expected [4], got [5] of b"},
		"norm":    {second(b.Norm(x, NormAttr{Kind: RMS, W: Tensor("w", []int{7})})), "needs a weight [8], got [7] of w"},
		"add":     {second(b.Binary("add", x, y)), "[8] and [2 4] do not fit"},
		"unary":   {second(b.Unary("sinh", x, 0, 0)), `no function "sinh"`},
		"reshape": {second(b.Reshape(x, []int{3, -1})), "do not divide"},
		"slice":   {second(b.Slice(x, 0, 4, 12, 1)), "lies outside axis 0 of [8]"},
		"embed":   {second(b.Embed(x, Tensor("e", []int{5, 8}), 0)), "the index is one number a row, of shape [], got [8]"},
		"rope":    {second(b.Rope(y, RopeAttr{Table: 0})), "table 0 does not exist"},
		"heads":   {second(b.Attention(y, y, x, AttentionAttr{})), "q, k and v are [heads, d]"},
		"route":   {second(b.Add(OpRoute, &RouteAttr{TopK: 9, Score: "none"}, nil, x)), "cannot choose 9 of 8"},
		"attr":    {second(b.Add(OpNorm, &UnaryAttr{}, nil, x)), "not its own"},
		"op":      {second(b.Add("frobnicate", nil, nil, x)), "no such operation"},
		"concat":  {concat, "differ in axis 1"},
		"permute": {permute, "index 2 lies outside"},
		"mxfp4":   {mx, "blocks are [.., n, 16]"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: got %v, expected …%s…", name, c.err, c.says)
		}
	}
}

func second(_ *Node, err error) error { return err }

func TestDecodeRefuses(t *testing.T) {
	good, err := Encode(tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"later input":    {`"in":[0]`, `"in":[7]`},
		"wrong shape":    {`"shape":[2,4]`, `"shape":[4,2]`},
		"unknown field":  {`"Eps"`, `"Epsilon"`},
		"unknown op":     {`"op":"experts"`, `"op":"expert"`},
		"weight number":  {`"W":1`, `"W":1000`},
		"no output":      {`"Name":"logits","Node":`, `"Name":"logits","Node":99`},
		"negative layer": {`"layer":0`, `"layer":-9`},
		"broken":         {`{`, `[`},
	} {
		bad := strings.Replace(string(good), change[0], change[1], 1)
		if bad == string(good) {
			t.Fatalf("%s: %s is not in the text", name, change[0])
		}
		if _, err := Decode([]byte(bad)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	good, err := Encode(tiny(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	if good, err = Encode(recurrent(f)); err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"nodes":[{"op":"tokens","shape":[],"layer":-1}],"outputs":[{"Name":"x","Node":0}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Encode(g)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(again); err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
		_ = Text(g, PrintOptions{Fold: true})
	})
}
