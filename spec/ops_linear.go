package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

const docLinearScan = `linear_scan(x, g)
A sum with a decay, elementwise, token by token: h ← exp(g)·h + x; h starts at zero. Gives h, in the shape of x. RG-LRU, minimal GRU and LSTM, HGRN and moving averages are this: an
update h ← a·h + b·x is linear_scan(b·x, log(a)).
- x: a value [..].
- g: the logarithm of the decay, at most 0: in the shape of x, or a vector of as many numbers as x has; a value, a weight or a number. There is no broadcast: beside an x [4, 8], [4, 1] does not
  fit; x * 0 + g makes it as large.
Errors: a g of another count; a number above 0 (a value's or a tensor's is not looked at, and the state grows without end).
`

func doLinearScan(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	var g starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "g", &g); err != nil {
		return nil, err
	}
	if x.node == nil {
		return x, nil
	}
	shape, n := x.node.Shape, graph.Product(x.node.Shape)
	rate, err := t.rate(g, []int{n})
	if rate == nil || err != nil {
		return x, err
	}
	t.falls(name, "g", rate)
	if graph.Product(rate.Shape) != n {
		t.complainOf(ProblemShape, "", "linear_scan: the decay is %v as x, got %v; a number for each head is spread by adding it to const([0] * n, shape = …)", shape, rate.Shape)
		return x, nil
	}
	if rate, err = t.b.Reshape(rate, []int{n}); err != nil {
		return nil, err
	}
	v, err := t.b.Reshape(x.node, []int{n, 1})
	if err != nil {
		return nil, err
	}
	y, err := t.made(t.b.LinearAttention(graph.LinearAttentionIn{V: v, G: rate}, graph.LinearAttentionAttr{}))
	if err != nil || y.node == nil {
		return y, err
	}
	return t.made(t.b.Reshape(y.node, shape))
}

const docLinearAttention = `linear_attention(q, k, v, g=0, i=None, u=None, norm=None, eps=0, tile=False)
Attention without a softmax, read from a state S [H, dk, dv] that starts at zero, token by token: S ← exp(g)·S + k ⊗ v, then y = Sᵀq. Gives [H, dv], the shape of v. Retention, lightning
attention, GLA, HGRN-2, RWKV-4 to 6, mLSTM and kernel attention are this with one option or another. Scale and normalise q and k, and apply feature maps, yourself.
- q: [K, dk]; head h reads key head h·K/H. None, with k: both are 1, dk is 1.
- k: as q.
- v: [H, dv]; H is a multiple of K. Or [H], where dv is 1.
- g: the logarithm of the decay, at most 0: [H], or [H, dk] for one of each channel; a value, a weight or a number. -exp(w) where the paper writes exp(−exp(w)).
- i: the logarithm of an exponential input gate, [H]: k counts exp(i) times. Needs a norm; g is [H]. No exponential overflows: everything is kept scaled by a running maximum m.
- u: a bonus of the token itself (RWKV): y = Sᵀq + (q·(u∘k))·v, and S moves on after that. [H] or [H, dk]; beside i its logarithm, [H].
- norm: y is divided by what it would be for a v of 1, d: "sum" by d + eps (RWKV-4, kernel attention); "max" by max(|d|, 1) + eps (mLSTM).
- eps: a number; beside i it is added to the scaled d, d·exp(−m), as mLSTM's reference does.
- tile: head h reads key head h mod K.
Errors: heads or widths that do not fit, i without a norm; a number above 0 for g (a value's or a tensor's is not looked at, and the state grows without end).
`

func doLinearAttention(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v *value
	var a graph.LinearAttentionAttr
	g := starlark.Value(starlark.Float(0))
	var q, k, i, u, norm starlark.Value = starlark.None, starlark.None, starlark.None, starlark.None, starlark.None
	eps := number(0)
	if err := starlark.UnpackArgs(name, args, kwargs, "q", &q, "k", &k, "v", &v, "g?", &g, "i?", &i, "u?", &u, "norm?", &norm, "eps?", &eps, "tile?", &a.Tile); err != nil {
		return nil, err
	}
	if norm != starlark.None {
		var ok bool
		if a.Norm, ok = starlark.AsString(norm); !ok {
			return nil, fmt.Errorf("linear_attention: norm is \"sum\", \"max\" or None, got %s", norm.Type())
		}
	}
	if (q == starlark.None) != (k == starlark.None) {
		return nil, fmt.Errorf("linear_attention: q and k are both None or neither")
	}
	if v.node == nil {
		return v, nil
	}
	a.Eps = float64(eps)
	in, shape := graph.LinearAttentionIn{}, v.node.Shape
	for _, p := range []struct {
		from starlark.Value
		to   **graph.Node
	}{{q, &in.Q}, {k, &in.K}, {g, &in.G}, {i, &in.I}, {u, &in.U}} {
		if p.from == starlark.None && p.to != &in.G {
			continue
		}
		if p.from == starlark.None {
			p.from = starlark.Float(0)
		}
		n, err := t.rate(p.from, shape)
		if n == nil || err != nil {
			return v, err
		}
		*p.to = n
	}
	t.falls(name, "g", in.G)
	var err error
	if in.V, err = t.matrix(v.node, false); err != nil {
		return nil, err
	}
	y, err := t.made(t.b.LinearAttention(in, a))
	if err != nil || y.node == nil || len(shape) != 1 {
		return y, err
	}
	return t.made(t.b.Reshape(y.node, shape))
}
