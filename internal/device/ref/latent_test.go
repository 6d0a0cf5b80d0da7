package ref

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// TestChoose holds the choice of positions against counting how many are better.
func TestChoose(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		n, d, heads, top := 1+r.IntN(40), 1+r.IntN(4), 1+r.IntN(3), 1+r.IntN(12)
		keys := make([][]float32, n)
		for i := range keys {
			keys[i] = small(r, d)
		}
		a := &graph.IndexAttr{TopK: top, Signed: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			a.Block, a.Local = 1+r.IntN(5), r.IntN(top+1)
		}
		size := a.Size()
		q, w, out := small(r, heads*d), small(r, heads), make([]float32, top*size)
		Choose(a, keys, q, w, d, out)
		blocks := (n + size - 1) / size
		score := func(b int) float64 {
			if b >= blocks-a.Local {
				return math.Inf(1)
			}
			best := math.Inf(-1)
			for _, k := range keys[b*size : min(b*size+size, n)] {
				s := 0.0
				for h := range heads {
					x := dot(q[h*d:(h+1)*d], k)
					if !a.Signed {
						x = math.Max(0, x)
					}
					s += float64(w[h]) * x
				}
				best = math.Max(best, s)
			}
			return best
		}
		var want []float32
		for i := range n {
			better := 0
			for j := range blocks {
				if x, y := score(j), score(i/size); x > y || x == y && j < i/size {
					better++
				}
			}
			if better < top {
				want = append(want, float32(i))
			}
		}
		for len(want) < top*size {
			want = append(want, -1)
		}
		if fmt.Sprint(out) != fmt.Sprint(want) {
			t.Fatalf("%d keys, %+v: chose %v, want %v", n, *a, out, want)
		}
	}
	out := make([]float32, 2)
	nan := float32(math.NaN())
	Choose(&graph.IndexAttr{TopK: 2}, [][]float32{{nan}, {1}, {2}, {nan}}, []float32{1}, []float32{1}, 1, out)
	if out[0] != 1 || out[1] != 2 {
		t.Errorf("keys that are no numbers: chose %v", out)
	}
}

// small draws whole numbers near 0, so that scores tie.
func small(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(5) - 2)
	}
	return x
}

// TestAbsorbed holds latent attention in its absorbed form against the expanded
// one, whose keys and values are made from the latents for each head.
func TestAbsorbed(t *testing.T) {
	const width, heads, rank, nope, rot, value = 12, 3, 5, 4, 2, 6
	r := rand.New(rand.NewPCG(7, 8))
	src := shelf{}
	random := func(name string, shape ...int) *graph.Weight {
		v := make([]float32, graph.Product(shape))
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		b := make([]byte, 4*len(v))
		if err := quant.F32.Encode(b, v); err != nil {
			t.Fatal(err)
		}
		src[name] = tensor.View{Name: name, Type: quant.F32, Shape: shape, Data: b}
		return graph.Tensor(name, shape)
	}
	table, wq := random("table", rows, width), random("q", heads*(nope+rot), width)
	wkv, both := random("kv", rank+rot, width), random("both", heads*(nope+value), rank)
	run := func(absorbed bool) [][]float32 {
		b := graph.NewBuilder()
		must := func(n *graph.Node, err error) *graph.Node {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		weight := func(w *graph.Weight, err error) *graph.Weight {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		x := must(b.Embed(b.Tokens(), table, 0))
		q := must(b.Reshape(must(b.Linear(x, wq, nil)), []int{heads, nope + rot}))
		kv := must(b.Reshape(must(b.Linear(x, wkv, nil)), []int{1, rank + rot}))
		attr := graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.4}
		var out *graph.Node
		if absorbed {
			w := weight(graph.ReshapeWeight(both, []int{heads, nope + value, rank}))
			into := weight(graph.TransposeWeight(weight(graph.SliceWeight(w, 1, 0, nope, 1)), []int{0, 2, 1}))
			q = must(b.Concat(-1, must(b.HeadLinear(must(b.Slice(q, -1, 0, nope, 1)), into)), must(b.Slice(q, -1, nope, nope+rot, 1))))
			out = must(b.HeadLinear(must(b.AttentionLatent(q, kv, rank, attr)), weight(graph.SliceWeight(w, 1, nope, nope+value, 1))))
		} else {
			latent, turned := must(b.Reshape(must(b.Slice(kv, -1, 0, rank, 1)), []int{rank})), must(b.Slice(kv, -1, rank, rank+rot, 1))
			y := must(b.Reshape(must(b.Linear(latent, both, nil)), []int{heads, nope + value}))
			k := must(b.Concat(-1, must(b.Slice(y, -1, 0, nope, 1)), must(b.Concat(0, turned, turned, turned))))
			out = must(b.Attention(q, k, must(b.Slice(y, -1, nope, nope+value, 1)), attr))
		}
		b.G.Outputs = []graph.Output{{Name: "logits", Node: out.ID}}
		ids := []int32{3, 7, 0, 10, 3, 1, 1, 9}
		m := New(b.G, src)
		all, err := m.Run(seq(ids, 0, 5))
		if err != nil {
			t.Fatal(err)
		}
		rest, err := m.Run(seq(ids, 5, 3))
		if err != nil {
			t.Fatal(err)
		}
		return append(all, rest...)
	}
	got, want := run(true), run(false)
	for i := range want {
		for k, v := range want[i] {
			if math.Abs(float64(got[i][k]-v)) > 1e-4 {
				t.Fatalf("position %d, value %d is %g absorbed, %g expanded", i, k, got[i][k], v)
			}
		}
	}
}
