package spec

import (
	"fmt"
	"maps"
	stdmath "math"
	"slices"

	"go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/inferflow/inferflow/internal/graph"
)

// word is one function of the language: what runs it, and what the reference
// says of it. See parseWord for the form of doc.
type word struct {
	name string
	f    builtinFunc
	doc  string
}

// section is a chapter of the vocabulary.
type section struct {
	title string
	words []word
}

// vocabulary is every function of the language, in the order of the reference.
var vocabulary = []section{
	{"Declarations", []word{
		{"serves", doServes, docServes}, {"names", doNames, docNames}, {"alias", doAlias, docAlias}, {"weights", doWeights, docWeights},
		{"gguf", doGGUF, docGGUF}, {"ignore", doIgnore, docIgnore}, {"unchecked", doUnchecked, docUnchecked}, {"chat", doChat, docChat},
		{"tasks", doTasks, docTasks}, {"generation", doGeneration, docGeneration},
	}},
	{"Rows", []word{
		{"layers", doLayers, docLayers}, {"embed", doEmbed, docEmbed}, {"linear", doLinear, docLinear}, {"tokens", doTokens, docTokens},
		{"positions", doPositions, docPositions}, {"token_types", doTokenTypes, docTokenTypes}, {"pool", doPool, docPool},
		{"param", doParam, docParam}, {"const", doConst, docConst}, {"name", doName, docName},
	}},
	{"Norms", []word{
		{"rms_norm", doRMSNorm, docRMSNorm}, {"layer_norm", doLayerNorm, docLayerNorm}, {"l2_norm", doL2Norm, docL2Norm},
	}},
	{"Elementwise", append([]word{
		{"activation", doActivation, docActivation}, {"clamp", doClamp, docClamp}, {"softcap", doSoftcap, docSoftcap},
		{"power", doPower, docPower}, {"elu", doElu, docElu},
		{"maximum", doBinary("max"), docBinary("maximum", "the larger of x and y")},
		{"minimum", doBinary("min"), docBinary("minimum", "the smaller of x and y")},
		{"less", doBinary("less"), docBinary("less", "1 where x < y, else 0")},
		{"where", doWhere, docWhere},
	}, unaryWords()...)},
	{"Over the last axis", []word{
		{"softmax", doSoftmax, docSoftmax},
		{"doubly_stochastic", doBalance, docBalance},
		{"mean", doReduce("mean"), docReduce("mean", "the mean")},
		{"std", doReduce("std"), docReduce("std", "the standard deviation (of the population)")},
		{"total", doReduce("sum"), docReduce("total", "the sum")},
		{"largest", doReduce("max"), docReduce("largest", "the largest")},
		{"smallest", doReduce("min"), docReduce("smallest", "the smallest")},
	}},
	{"Shape", []word{
		{"heads", doHeads, docHeads}, {"merge", doMerge, docMerge}, {"reshape", doReshape, docReshape}, {"transpose", doTranspose, docTranspose},
		{"slice", doSlice, docSlice}, {"split", doSplit, docSplit}, {"concat", doConcat, docConcat}, {"gather", doGather, docGather}, {"order", doOrder, docOrder},
	}},
	{"Positions and attention", []word{
		{"rope_table", doRopeTable, docRopeTable}, {"rope", doRope, docRope}, {"attention", doAttention, docAttention}, {"join", doJoin, docJoin},
		{"relative_bias", doRelativeBias, docRelativeBias}, {"distance_bias", doDistanceBias, docDistanceBias}, {"counted_bias", doCountedBias, docCountedBias}, {"block_sum", doBlockSum, docBlockSum}, {"block_attention", doBlockAttention, docBlockAttention},
		{"head_linear", doHeadLinear, docHeadLinear}, {"dot", doDot, docDot}, {"index_topk", doIndexTopK, docIndexTopK},
	}},
	{"With a state of the sequence", []word{
		{"conv1d", doConv1D, docConv1D}, {"shift", doShift, docShift}, {"reverse", doReverse, docReverse}, {"recur", doRecur, docRecur}, {"ssd_scan", doScan, docScan},
		{"linear_attention", doLinearAttention, docLinearAttention}, {"linear_scan", doLinearScan, docLinearScan},
		{"gated_delta", doGatedDelta, docGatedDelta}, {"general_delta", doGeneralDelta, docGeneralDelta},
	}},
	{"Experts", []word{
		{"route", doRoute, docRoute}, {"experts", doExperts, docExperts}, {"expert_linear", doExpertLinear, docExpertLinear},
	}},
	{"Stored tensors, at load", []word{
		{"tensor", doTensor, docTensor}, {"stored", doStored, docStored}, {"stored_numbers", doStoredNumbers, docStoredNumbers}, {"stacked", doStacked, docStacked}, {"rows", doRows, docRows},
		{"permute", doPermute, docPermute}, {"stack", doStack, docStack}, {"unpermute", doUnpermute, docUnpermute},
		{"minus_one", doMinusOne, docMinusOne}, {"neg_exp", doWeightMap("neg_exp"), docWeightMap}, {"mxfp4", doMXFP4, docMXFP4}, {"row_norms", doRowNorms, docRowNorms},
		{"decoded", doDecoded, docDecoded}, {"ternary", doTernary, docTernary},
	}},
}

// predeclared are the names that every specification sees.
var predeclared = makePredeclared()

func makePredeclared() starlark.StringDict {
	predeclared := starlark.StringDict{"math": mathModule()}
	for _, s := range vocabulary {
		for _, w := range s.words {
			predeclared[w.name] = builtin(w.name, w.f)
		}
	}
	return predeclared
}

// unaryWords are the functions of one value that take no parameter, sorted.
func unaryWords() []word {
	var words []word
	for _, name := range slices.Sorted(maps.Keys(graph.UnaryFuncs)) {
		if plainUnary(name) {
			words = append(words, word{name, doUnary(name), docUnary(name)})
		}
	}
	return words
}

// plainUnary says whether a function of one value takes no parameter.
func plainUnary(name string) bool {
	switch name {
	case "scale", "add", "pow", "clamp", "softcap", "elu", "neg":
		return false
	}
	return true
}

// mathModule is Starlark's math, normal, the normal distribution function, and
// probit, its inverse.
func mathModule() *starlarkstruct.Module {
	members := starlark.StringDict{}
	for k, v := range math.Module.Members {
		members[k] = v
	}
	for name, f := range map[string]func(float64) float64{
		"normal": func(x float64) float64 { return (1 + stdmath.Erf(x/stdmath.Sqrt2)) / 2 },
		"probit": func(p float64) float64 { return stdmath.Sqrt2 * stdmath.Erfinv(2*p-1) },
	} {
		members[name] = starlark.NewBuiltin(name, func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var x number
			if err := starlark.UnpackArgs(b.Name(), args, kwargs, "x", &x); err != nil {
				return nil, err
			}
			return starlark.Float(f(float64(x))), nil
		})
	}
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
	*l = intList{} // [] is a shape, not the absence of one
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

const docLayers = `layers(n)
The numbers 0 … n − 1, as range, for "for i in layers(n):". What is computed meanwhile belongs to layer i: models are cut, explained and profiled by layers.
- n: how many; several loops count on.
`

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
