package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// flat drops the dimensions of 1 that files give a weight: a convolution is
// stored as [channels, 1, taps], a vector of heads as [heads, 1] or [1, 1, heads, 1].
func flat(w *weightValue, dims int) (*weightValue, error) {
	if w.w == nil || len(w.w.Shape) <= dims {
		return w, nil
	}
	n := graph.Product(w.w.Shape)
	shape := []int{n}
	if k := w.w.Cols(); dims == 2 && k > 0 {
		shape = []int{n / k, k}
	}
	return w.derive("reshape", true, func(x *graph.Weight) (*graph.Weight, error) { return graph.ReshapeWeight(x, shape) })
}

const docConv1D = `conv1d(x, weight, bias=None)
Causal convolution of each channel over the last K tokens of the sequence: y_t = b + Σ_j w[j] · x_(t−K+1+j), zeros before the first token. No activation: that
follows. The sequence keeps the last K − 1 rows of x; nothing need be said of it.
- x: a value of D numbers, [D].
- weight: the name of a stored tensor, or a weight, [D, K], or [D, 1, K] as PyTorch stores it. The last tap is that of the token itself.
- bias: None: taken if stored; True: must be stored; False: must not be; or a name or a weight [D].
Errors: another number of channels.
`

func doConv1D(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	var weight starlark.Value
	bias := starlark.Value(starlark.None)
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "weight", &weight, "bias?", &bias); err != nil {
		return nil, err
	}
	w, err := t.operand(weight, "")
	if err != nil {
		return nil, err
	}
	if w, err = flat(w, 2); err != nil {
		return nil, err
	}
	b, err := t.bias(weight, bias)
	if err != nil {
		return nil, err
	}
	if x.node == nil || w.w == nil || b != nil && b.w == nil {
		return &value{t: t}, nil
	}
	var bw *graph.Weight
	if b != nil {
		bw = b.w
	}
	t.b.Name = baseName(w.name)
	return t.made(t.b.Conv1D(x.node, w.w, bw))
}

const docScan = `ssd_scan(x, B, C, dt, A)
The selective state space recurrence (Dao and Gu 2024), token by token: S ← exp(dt·A)·S + (dt·x) ⊗ B, then y = S·C; S [H, P, N] starts at zero. Gives [H, P]. Add D·x yourself.
- x: [H, P].
- B: [G, N]; head h reads group h·G/H.
- C: [G, N].
- dt: [H], after softplus and clamp.
- A: a stored vector of H numbers, negative: neg_exp(tensor(…)) where the logarithm is stored.
Errors: heads, groups or widths that do not fit.
`

func doScan(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, b, c, dt *value
	var decay starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "B", &b, "C", &c, "dt", &dt, "A", &decay); err != nil {
		return nil, err
	}
	w, err := t.named(decay)
	if err != nil {
		return nil, err
	}
	if w, err = flat(w, 1); err != nil {
		return nil, err
	}
	if x.node == nil || b.node == nil || c.node == nil || dt.node == nil || w.w == nil {
		return &value{t: t}, nil
	}
	return t.made(t.b.Scan(x.node, b.node, c.node, dt.node, w.w))
}

const docGatedDelta = `gated_delta(q, k, v, g, beta, tile=False)
The gated delta rule, token by token: S ← exp(g)·S, then S ← S + k ⊗ beta·(v − Sᵀk), then y = Sᵀq; S [H, dk, dv] starts at zero. Gives [H, dv]. Normalise and
scale q and k yourself.
- q: [K, dk]; head h reads key head h·K/H.
- k: [K, dk].
- v: [H, dv]; H is a multiple of K.
- g: the logarithm of the decay, at most 0: [H], or [H, dk] for one of each channel.
- beta: [H].
- tile: head h reads key head h mod K.
Errors: heads or widths that do not fit.
`

func doGatedDelta(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var q, k, v, g, beta *value
	var tile bool
	if err := starlark.UnpackArgs(name, args, kwargs, "q", &q, "k", &k, "v", &v, "g", &g, "beta", &beta, "tile?", &tile); err != nil {
		return nil, err
	}
	for _, x := range []*value{q, k, v, g, beta} {
		if x == nil {
			return nil, fmt.Errorf("gated_delta: an operand is missing")
		}
		if x.node == nil {
			return &value{t: t}, nil
		}
	}
	return t.made(t.b.GatedDelta(q.node, k.node, v.node, g.node, beta.node, tile))
}
