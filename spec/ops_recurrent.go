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
- x: a value of D numbers, in any shape: [D], [n, d], []. They are the channels; the result has the shape of x.
- weight: the name of a stored tensor, or a weight, [D, K], or [D, 1, K] as PyTorch stores it. The last tap is that of the token itself. Or a value [D, K] that is the same for all tokens: a
  kernel that is computed, of param and const (Hyena's, made of positions), at most as long as the context.
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
	if kernel, is := weight.(*value); is {
		return t.convolveBy(x, kernel, bias)
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

// convolveBy is a convolution with a kernel that is computed; it has no name of
// which a bias could be the kin.
func (t *tracer) convolveBy(x, kernel *value, bias starlark.Value) (starlark.Value, error) {
	var b *graph.Weight
	if !isNone(bias) {
		w, err := t.named(bias)
		if err != nil {
			return nil, fmt.Errorf("conv1d: bias: %w", err)
		}
		b = w.w
	}
	if x.node == nil || kernel.node == nil {
		return &value{t: t}, nil
	}
	return t.made(t.b.ConvolveBy(x.node, kernel.node, b))
}

const docShift = `shift(x, n=1)
The value of n tokens ago, zeros before the first: RWKV's token shift is shift(x). The sequence keeps the last n rows of x. In a model that takes texts
whole, and in an encoder, n below 0 is the value of −n tokens ahead, zeros after the last.
- x: a value of any shape, [] too.
- n: a whole number.
`

func doShift(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	n := 1
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "n?", &n); err != nil {
		return nil, err
	}
	if x.node == nil || n == 0 {
		return x, nil
	}
	return t.made(t.b.Shift(x.node, n))
}

const docReverse = `reverse(x)
The rows of the text, the last first: row t becomes row n − 1 − t. For encoders and models that see their texts whole: reverse(ssd_scan(reverse(x), …)) is a scan from the end
(torch.flip over the tokens). What is the same for all tokens stays as it is.
- x: a value of any shape.
Errors: with it, a model cannot answer token by token.
`

func doReverse(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x); err != nil {
		return nil, err
	}
	if x.node == nil {
		return x, nil
	}
	return t.made(t.b.Reverse(x.node))
}

const docScan = `ssd_scan(x, B, C, dt, A)
The selective state space recurrence, token by token: S ← exp(dt·A)·S + (dt·x) ⊗ B, then y = S·C; S [H, P, N] starts at zero. Gives [H, P], the shape of x. Add D·x yourself.
SSD (Dao and Gu 2024) has a decay for each head, S6 (Gu and Dao 2023) one for each channel and component of the state: its channels are heads of one component.
- x: [H, P]; or [H], where P is 1.
- B: [G, N]; head h reads group h·G/H. Or [N], one group.
- C: as B.
- dt: [H], after softplus and clamp.
- A: at most 0, a value, a weight or a number: [H], one decay a head, or [H, N], one for each component. neg_exp(tensor(…)) where the logarithm is stored.
For a decay that does not multiply the input, see linear_attention and linear_scan.
Errors: heads, groups or widths that do not fit; a number above 0 for A (a value's or a tensor's is not looked at, and the state grows without end).
`

func doScan(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, b, c, dt *value
	var decay starlark.Value
	if err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "B", &b, "C", &c, "dt", &dt, "A", &decay); err != nil {
		return nil, err
	}
	if x.node == nil || b.node == nil || c.node == nil || dt.node == nil {
		return &value{t: t}, nil
	}
	a, err := t.rate(decay, x.node.Shape)
	if err != nil || a == nil {
		return &value{t: t}, err
	}
	t.falls(name, "A", a)
	shape := x.node.Shape
	in := []*graph.Node{x.node, b.node, c.node}
	for i, lead := range []bool{false, true, true} {
		if in[i], err = t.matrix(in[i], lead); err != nil {
			return nil, err
		}
	}
	y, err := t.made(t.b.Scan(in[0], in[1], in[2], dt.node, a))
	if err != nil || y.node == nil || len(shape) != 1 {
		return y, err
	}
	return t.made(t.b.Reshape(y.node, shape))
}

// rate is what a decay is made of, as a value of one number a head where it is
// a number or a vector stored in another shape; nil: unknown.
func (t *tracer) rate(v starlark.Value, like []int) (*graph.Node, error) {
	heads := 1
	if len(like) > 0 {
		heads = like[0]
	}
	switch v := v.(type) {
	case *value:
		if v.node != nil && len(v.node.Shape) > 1 && v.node.Width() == heads {
			return t.b.Reshape(v.node, []int{heads})
		}
		return v.node, nil
	case *weightValue, starlark.String:
		w, err := t.named(v)
		if err != nil || w.w == nil {
			return nil, err
		}
		if graph.Product(w.w.Shape) == heads {
			if w, err = flat(w, 1); err != nil {
				return nil, err
			}
		}
		return t.param(w).node, nil
	}
	return t.repeated(v, heads)
}

// falls complains of a decay's logarithm that is above 0 where its numbers are
// those of the specification; those of values and of stored tensors are not known here.
func (t *tracer) falls(word, what string, n *graph.Node) {
	for n.Op == graph.OpReshape && !t.b.InLoop() {
		n = t.b.G.Nodes[n.In[0]]
	}
	a, ok := n.Attr.(*graph.ConstAttr)
	if !ok {
		return
	}
	for _, v := range a.Values {
		if !(v <= 0) {
			t.complainOf(ProblemShape, "", "%s: %s is %g; it is the logarithm of a decay, at most 0, and the state would grow without end: for a factor a say math.log(a), for a value log(x)", word, what, v)
			return
		}
	}
}

// repeated is a number for each of n heads.
func (t *tracer) repeated(v starlark.Value, n int) (*graph.Node, error) {
	f, ok := starlark.AsFloat(v)
	if !ok {
		return nil, fmt.Errorf("expected a value, a weight or a number, got %s", v.Type())
	}
	if n > maxNodes {
		return nil, fmt.Errorf("%d heads are too many", n)
	}
	values := make([]float64, n)
	for i := range values {
		values[i] = f
	}
	return t.b.Const(values, []int{n})
}

// matrix makes a vector [n] a matrix: [1, n] with lead, else [n, 1].
func (t *tracer) matrix(n *graph.Node, lead bool) (*graph.Node, error) {
	switch {
	case len(n.Shape) != 1:
		return n, nil
	case lead:
		return t.b.Reshape(n, []int{1, n.Shape[0]})
	}
	return t.b.Reshape(n, []int{n.Shape[0], 1})
}

const docGatedDelta = `gated_delta(q, k, v, g=0, beta=1, tile=False)
The gated delta rule, token by token: S ← exp(g)·S, then S ← S + k ⊗ beta·(v − Sᵀk), then y = Sᵀq; S [H, dk, dv] starts at zero. Gives [H, dv]. Normalise and
scale q and k yourself.
- q: [K, dk]; head h reads key head h·K/H.
- k: [K, dk].
- v: [H, dv]; H is a multiple of K.
- g: the logarithm of the decay, at most 0: [H], or [H, dk] for one of each channel; a value, a weight or a number.
- beta: [H], or a number.
- tile: head h reads key head h mod K.
Where k is [n, K, dk] and v [n, H, dv], with beta [n, H], a token takes n steps before it is read (DeltaProduct, Siems et al. 2025); the decay is that of the first.
Errors: heads or widths that do not fit; a number above 0 for g (a value's or a tensor's is not looked at, and the state grows without end).
`

func doGatedDelta(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var q, k, v *value
	g, beta := starlark.Value(starlark.Float(0)), starlark.Value(starlark.Float(1))
	var tile bool
	if err := starlark.UnpackArgs(name, args, kwargs, "q", &q, "k", &k, "v", &v, "g?", &g, "beta?", &beta, "tile?", &tile); err != nil {
		return nil, err
	}
	in, err := t.ruled([]*value{q, k, v}, g)
	if in == nil || err != nil {
		return &value{t: t}, err
	}
	t.falls(name, "g", in[3])
	b, err := t.betas(beta, v.node.Shape)
	if b == nil || err != nil {
		return &value{t: t}, err
	}
	return t.made(t.b.GatedDelta(in[0], in[1], in[2], in[3], b, tile))
}

const docGeneralDelta = `general_delta(q, k, v, g, a, b, tile=False)
The general delta rule, diagonal plus low rank (RWKV-7), token by token: S ← exp(g)·S + b ⊗ (Sᵀa) + k ⊗ v, with the old S on the right, then y = Sᵀq; S [H, dk, dv] starts at zero.
Gives [H, dv]. RWKV-7 has q = r, g = −exp(−0.5)·sigmoid(w), a = −κ and b = κ∘η of the normalised κ.
- q: [K, dk]; head h reads key head h·K/H.
- k, a, b: [K, dk].
- v: [H, dv]; H is a multiple of K.
- g: the logarithm of the decay, at most 0: [H], or [H, dk] for one of each channel; a value, a weight or a number.
- tile: head h reads key head h mod K.
Where k, a and b are [n, K, dk] and v [n, H, dv], a token takes n steps before it is read; the decay is that of the first.
Errors: heads or widths that do not fit; a number above 0 for g (a value's or a tensor's is not looked at, and the state grows without end).
`

func doGeneralDelta(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var q, k, v, a, b *value
	var g starlark.Value
	var tile bool
	if err := starlark.UnpackArgs(name, args, kwargs, "q", &q, "k", &k, "v", &v, "g", &g, "a", &a, "b", &b, "tile?", &tile); err != nil {
		return nil, err
	}
	in, err := t.ruled([]*value{q, k, v, a, b}, g)
	if in == nil || err != nil {
		return &value{t: t}, err
	}
	t.falls(name, "g", in[5])
	return t.made(t.b.GeneralDelta(in[0], in[1], in[2], in[5], in[3], in[4], tile))
}

// betas are the rates of a delta rule for values [heads, dv], or [steps, heads, dv]
// where a token takes several steps; nil: unknown.
func (t *tracer) betas(v starlark.Value, values []int) (*graph.Node, error) {
	if len(values) != 3 {
		return t.rate(v, values)
	}
	n, err := t.rate(v, []int{values[0] * values[1]})
	if n == nil || err != nil || n.Width() != values[0]*values[1] {
		return n, err
	}
	return t.b.Reshape(n, values[:2])
}

// ruled are the operands of a rule over heads: values, the third with a head a
// row, then what is one number a head where it is a number. nil: one is unknown.
func (t *tracer) ruled(values []*value, rates ...starlark.Value) ([]*graph.Node, error) {
	var in []*graph.Node
	for _, x := range values {
		if x.node == nil {
			return nil, nil
		}
		in = append(in, x.node)
	}
	heads := values[2].node.Shape
	if len(heads) == 3 { // several steps a token
		heads = heads[1:]
	}
	for _, r := range rates {
		n, err := t.rate(r, heads)
		if n == nil || err != nil {
			return nil, err
		}
		in = append(in, n)
	}
	return in, nil
}
