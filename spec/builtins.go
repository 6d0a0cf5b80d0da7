package spec

import (
	"fmt"
	stdmath "math"

	"go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/inferflow/inferflow/internal/graph"
)

// vocabulary is every function of the language, by name.
var vocabulary = map[string]builtinFunc{
	// what the file is for
	"serves": doServes, "names": doNames, "alias": doAlias, "weights": doWeights, "gguf": doGGUF, "ignore": doIgnore, "chat": doChat,
	// rows
	"tokens": doTokens, "positions": doPositions, "embed": doEmbed, "linear": doLinear, "param": doParam, "const": doConst,
	// norms
	"rms_norm": doRMSNorm, "layer_norm": doLayerNorm, "l2_norm": doL2Norm,
	// elementwise
	"clamp": doClamp, "softcap": doSoftcap, "power": doPower, "elu": doElu, "activation": doActivation,
	"maximum": doBinary("max"), "minimum": doBinary("min"), "less": doBinary("less"), "where": doWhere,
	"mean": doReduce("mean"), "std": doReduce("std"), "total": doReduce("sum"), "largest": doReduce("max"), "smallest": doReduce("min"),
	"softmax": doSoftmax,
	// shape
	"heads": doHeads, "merge": doMerge, "reshape": doReshape, "transpose": doTranspose, "slice": doSlice, "split": doSplit,
	"concat": doConcat, "gather": doGather,
	// positions and attention
	"rope_table": doRopeTable, "rope": doRope, "attention": doAttention,
	// experts
	"route": doRoute, "experts": doExperts, "stacked": doStacked,
	// stored tensors
	"tensor": doTensor, "stored": doStored, "rows": doRows, "permute": doPermute, "stack": doStack, "mxfp4": doMXFP4,
	"unpermute": doUnpermute, "neg_exp": doWeightMap("neg_exp"),
	// structure
	"layers": doLayers,
}

// predeclared are the names that every specification sees.
var predeclared = makePredeclared()

func makePredeclared() starlark.StringDict {
	predeclared := starlark.StringDict{"math": mathModule()}
	for name, f := range vocabulary {
		predeclared[name] = builtin(name, f)
	}
	for name := range graph.UnaryFuncs {
		if _, taken := predeclared[name]; !taken && plainUnary(name) {
			predeclared[name] = builtin(name, doUnary(name))
		}
	}
	predeclared["minus_one"] = builtin("minus_one", doMinusOne)
	return predeclared
}

// plainUnary says whether a function of one value takes no parameter.
func plainUnary(name string) bool {
	switch name {
	case "scale", "add", "pow", "clamp", "softcap", "elu", "neg":
		return false
	}
	return true
}

// mathModule is Starlark's math and probit, the inverse of the normal
// distribution function.
func mathModule() *starlarkstruct.Module {
	members := starlark.StringDict{}
	for k, v := range math.Module.Members {
		members[k] = v
	}
	members["probit"] = starlark.NewBuiltin("probit", func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var p number
		if err := starlark.UnpackArgs(b.Name(), args, kwargs, "p", &p); err != nil {
			return nil, err
		}
		return starlark.Float(stdmath.Sqrt2 * stdmath.Erfinv(2*float64(p)-1)), nil
	})
	members["inf"] = starlark.Float(stdmath.Inf(1))
	return &starlarkstruct.Module{Name: "math", Members: members}
}

// number unpacks an int or a float.
type number float64

func (n *number) Unpack(v starlark.Value) error {
	f, ok := starlark.AsFloat(v)
	if _, isBool := v.(starlark.Bool); !ok || isBool {
		return fmt.Errorf("got %s, want a number", v.Type())
	}
	*n = number(f)
	return nil
}

// intList unpacks an int or a list of ints.
type intList []int

func (l *intList) Unpack(v starlark.Value) error {
	*l = nil
	if i, err := starlark.AsInt32(v); err == nil {
		*l = intList{i}
		return nil
	}
	it, ok := v.(starlark.Iterable)
	if !ok {
		return fmt.Errorf("got %s, want a list of ints", v.Type())
	}
	i := it.Iterate()
	defer i.Done()
	for item := starlark.Value(nil); i.Next(&item); {
		n, err := starlark.AsInt32(item)
		if err != nil {
			return fmt.Errorf("got %s, want ints", item.Type())
		}
		*l = append(*l, n)
	}
	return nil
}

// layerRange is layers(n): iterating it marks the nodes made meanwhile.
type layerRange struct {
	t    *tracer
	n    int
	base int
}

var _ starlark.Sequence = (*layerRange)(nil)

func (l *layerRange) String() string        { return fmt.Sprintf("layers(%d)", l.n) }
func (l *layerRange) Type() string          { return "layers" }
func (l *layerRange) Freeze()               {}
func (l *layerRange) Truth() starlark.Bool  { return l.n > 0 }
func (l *layerRange) Hash() (uint32, error) { return 0, fmt.Errorf("layers cannot be a key") }
func (l *layerRange) Len() int              { return l.n }

func (l *layerRange) Iterate() starlark.Iterator {
	l.base = l.t.layers
	return &layerIterator{r: l}
}

type layerIterator struct {
	r *layerRange
	i int
}

func (it *layerIterator) Next(p *starlark.Value) bool {
	if it.i >= it.r.n {
		return false
	}
	*p = starlark.MakeInt(it.i)
	it.r.t.b.Layer = it.r.base + it.i
	it.i++
	it.r.t.layers = it.r.base + it.i
	return true
}

// Done puts what follows behind the last layer.
func (it *layerIterator) Done() { it.r.t.b.Layer = it.r.t.layers }

func doLayers(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var n int
	if err := starlark.UnpackArgs(name, args, kwargs, "n", &n); err != nil {
		return nil, err
	}
	if n < 0 || n > maxLayers {
		return nil, fmt.Errorf("layers: %d is no number of layers", n)
	}
	return &layerRange{t: t, n: n}, nil
}
