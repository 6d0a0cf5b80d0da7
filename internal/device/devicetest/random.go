package devicetest

import (
	"fmt"
	"testing"

	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
)

// randomNets is the number of random programs.
const randomNets = 40

// testRandom builds models of random layers and holds them against the
// reference; the seed in a failure's name makes the same model again.
func (d Device) testRandom(t *testing.T) {
	for seed := range uint64(randomNets) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n := newNet(t, 1000+seed)
			n.finish(n.random())
			m := d.open(t, n, compile.Options{})
			want := m.agree(t, n, 2e-5)
			if seed%4 == 0 {
				m.sameBits(t, n, want)
				m.shared(t, n, len(n.G.Caches)%2 == 1)
				d.testCuts(t, n, want)
			}
		})
	}
}

func pick[T any](n *net, of ...T) T { return of[n.rng.IntN(len(of))] }

func (n *net) chance(percent int) bool { return n.rng.IntN(100) < percent }

// random is a model of one to three layers, each of random blocks.
func (n *net) random() *graph.Node {
	x := n.embed()
	if n.chance(30) {
		x = n.unary("scale", x, 3)
	}
	for n.Layer = 0; n.Layer < 1+n.rng.IntN(3); n.Layer++ {
		if n.chance(90) {
			x = n.randomAttention(x)
		}
		switch n.rng.IntN(4) {
		case 0:
			x = n.moe(x, quant.F32, n.randomMoE)
		case 1:
			x = n.randomChain(x)
		default:
			x = n.ffn(x, pick(n, "silu", "gelu", "gelu_tanh", "relu2", "sigmoid"))
		}
		if n.chance(30) {
			x = n.randomNorm(x)
		}
	}
	n.Layer--
	y := n.head(x)
	if n.chance(30) {
		y = n.unary("softcap", y, 5)
	}
	return y
}

func (n *net) randomNorm(x *graph.Node) *graph.Node {
	d := x.Shape[len(x.Shape)-1]
	a := graph.NormAttr{Kind: pick(n, graph.RMS, graph.Layer), Eps: pick(n, 1e-6, 1e-3)}
	if n.chance(70) {
		a.Offset = pick(n, 0.0, 1.0)
		a.W = n.vector(1-a.Offset, d)
		if len(x.Shape) == 2 && n.chance(30) {
			a.W = n.vector(1-a.Offset, x.Shape...)
		}
	}
	if n.chance(30) {
		a.B = n.vector(0, d)
	}
	return n.norm(x, a)
}

func (n *net) randomAttention(x *graph.Node) *graph.Node {
	kv := 1 + n.rng.IntN(3)
	h := heads{q: kv * (1 + n.rng.IntN(4)), kv: kv, dim: 2 * (2 + n.rng.IntN(15)), value: 1 + n.rng.IntN(40)}
	a := graph.AttentionAttr{Tile: n.chance(30), Softcap: pick(n, 0, 0, 2.0), Window: pick(n, 0, 0, 1+n.rng.IntN(40))}
	if n.chance(20) {
		a.Mask, a.Window = graph.MaskChunk, 1+n.rng.IntN(30)
	}
	if n.chance(25) {
		a.Sinks = n.vector(0, h.q)
	}
	if n.chance(25) {
		for i := range h.q {
			a.Slopes = append(a.Slopes, 0.5/float64(i+1))
		}
	}
	rope := graph.RopeAttr{Table: n.table(2 * (1 + n.rng.IntN(h.dim/2))), Interleaved: n.chance(40)}
	rope.At = n.rng.IntN(h.dim - n.G.Ropes[rope.Table].Dim + 1)
	normed, rotated, last := n.chance(40), n.chance(70), n.chance(30)
	x = n.attend(x, h, a, func(i int, y *graph.Node) *graph.Node {
		if normed && !last {
			y = n.randomNorm(y)
		}
		if rotated && i < 2 {
			y = n.rope(y, rope)
		}
		if normed && last {
			y = n.randomNorm(y)
		}
		return y
	})
	return x
}

func (n *net) randomMoE(r *graph.RouteAttr, e *graph.ExpertsAttr) {
	*r = graph.RouteAttr{TopK: 1 + n.rng.IntN(5), Score: pick(n, "softmax", "sigmoid", "none"), Renorm: n.chance(30), Scale: pick(n, 0, 1.5)}
	if r.Score == "none" {
		r.ChosenSoftmax, r.Renorm = true, false
	}
	if n.chance(30) {
		r.Groups, r.TopGroups, r.GroupScore = 2, 1, pick(n, "max", "top2")
	}
	if n.chance(30) {
		r.Bias = n.vector(0, experts)
	}
	e.Act = pick(n, "silu", "gelu_tanh", "relu")
	if n.chance(30) {
		e.UpBias, e.DownBias = wanted, wanted
	}
	if n.chance(20) {
		e.Gate = ungated
	}
	e.WeightInput = n.chance(20)
}

// randomChain mixes values by elementwise operations.
func (n *net) randomChain(x *graph.Node) *graph.Node {
	vals := []*graph.Node{x, n.rms(x), n.unary("tanh", n.linear(x, x.Width()))}
	for range 3 + n.rng.IntN(6) {
		a, b := pick(n, vals...), pick(n, vals...)
		f := pick(n, "add", "sub", "max", "min")
		y := n.binary(f, n.unary(pick(n, "sigmoid", "sin", "cos", "tanh", "silu"), a), b)
		vals = append(vals, y)
	}
	return n.add(x, n.unary("tanh", vals[len(vals)-1]))
}
