package graph

import (
	"fmt"
	"reflect"
	"slices"
)

// checkAttr makes sure that the attributes are those of the operation.
func checkAttr(op Op, attr any) error {
	ok := false
	switch op {
	case OpTypes, OpWhere, OpSoftmax, OpReshape, OpGather, OpReverse, OpOrder:
		ok = attr == nil
	case OpEmbed:
		a, is := attr.(*EmbedAttr)
		ok = is && a.Table != nil
	case OpParam:
		a, is := attr.(*ParamAttr)
		ok = is && a.W != nil
	case OpLinear:
		a, is := attr.(*LinearAttr)
		ok = is && a.W != nil
	case OpExperts:
		a, is := attr.(*ExpertsAttr)
		ok = is && a.Up != nil && a.Down != nil
	case OpConv1D:
		a, is := attr.(*ConvAttr)
		ok = is && (a.W == nil) != (a.Shift == 0 && a.Taps == 0) && (a.Taps == 0 || a.Taps > 0 && a.Shift == 0)
	case OpHeadLinear:
		a, is := attr.(*HeadLinearAttr)
		ok = is && a.W != nil
	case OpExpertLinear:
		a, is := attr.(*ExpertLinearAttr)
		ok = is && a.W != nil
	default:
		want, is := attrTypes[op]
		ok = is && reflect.TypeOf(attr) == want
	}
	if !ok {
		return fmt.Errorf("%s: attributes of type %T are not its own, or lack a weight", op, attr)
	}
	return nil
}

// attrTypes are the types of the attributes of each operation that has some.
var attrTypes = func() map[Op]reflect.Type {
	m := map[Op]reflect.Type{}
	for op, empty := range newAttr {
		m[op] = reflect.TypeOf(empty())
	}
	return m
}()

// newAttr makes the empty attributes of each operation that has some.
var newAttr = map[Op]func() any{
	OpTokens: func() any { return &TokensAttr{} }, OpBlockSum: func() any { return &BlockSumAttr{} }, OpBlockAttn: func() any { return &BlockAttnAttr{} },
	OpPositions: func() any { return &PositionsAttr{} }, OpParam: func() any { return &ParamAttr{} },
	OpConst: func() any { return &ConstAttr{} }, OpEmbed: func() any { return &EmbedAttr{} },
	OpLinear: func() any { return &LinearAttr{} }, OpNorm: func() any { return &NormAttr{} },
	OpUnary: func() any { return &UnaryAttr{} }, OpBinary: func() any { return &BinaryAttr{} },
	OpReduce: func() any { return &ReduceAttr{} }, OpBalance: func() any { return &BalanceAttr{} }, OpTranspose: func() any { return &TransposeAttr{} },
	OpSlice: func() any { return &SliceAttr{} }, OpConcat: func() any { return &ConcatAttr{} },
	OpRope: func() any { return &RopeAttr{} }, OpAttention: func() any { return &AttentionAttr{} },
	OpRoute: func() any { return &RouteAttr{} }, OpExperts: func() any { return &ExpertsAttr{} },
	OpConv1D: func() any { return &ConvAttr{} }, OpScan: func() any { return &ScanAttr{} }, OpGatedDelta: func() any { return &DeltaAttr{} },
	OpLinearAttention: func() any { return &LinearAttentionAttr{} }, OpLoop: func() any { return &LoopAttr{} },
	OpPool: func() any { return &PoolAttr{} },
	OpJoin: func() any { return &JoinAttr{} }, OpStored: func() any { return &StoredAttr{} },
	OpHeadLinear: func() any { return &HeadLinearAttr{} }, OpIndex: func() any { return &IndexAttr{} },
	OpExpertLinear: func() any { return &ExpertLinearAttr{} }, OpDot: func() any { return &DotAttr{} },
}

// expect compares the shape of a weight; a nil weight passes.
func expect(what string, w *Weight, shape ...int) error {
	if w == nil || slices.Equal(w.Shape, shape) {
		return nil
	}
	return fmt.Errorf("%s: expected %v, got %v of %v", what, slices.Clone(shape), w.Shape, w) // a copy, so that shape need not be on the heap
}

func inferEmbed(a *EmbedAttr, in []*Node) ([]int, error) {
	if len(in[0].Shape) != 0 {
		return nil, fmt.Errorf("embed: the index is one number a row, of shape [], got %v: reshape(x, []) makes one of a vector of one", in[0].Shape)
	}
	if len(a.Table.Shape) < 2 {
		return nil, fmt.Errorf("embed: the table is [rows, width], got %v of %v", a.Table.Shape, a.Table)
	}
	if a.Lead != nil && (len(a.Lead.Shape) != len(a.Table.Shape) || !slices.Equal(a.Lead.Shape[1:], a.Table.Shape[1:]) || a.Lead.Shape[0] < 1 || a.Lead.Shape[0] > maxLead) {
		return nil, fmt.Errorf("embed: the rows before a text are [1 to %d rows, …] as the table %v, got %v of %v", maxLead, a.Table.Shape, a.Lead.Shape, a.Lead)
	}
	if a.Lead != nil && (in[0].Op != OpTokens || in[0].Rows != RowsToken || a.Guard > 0) {
		return nil, fmt.Errorf("embed: rows before a text go with the ids of the text's own tokens, and no guard")
	}
	return slices.Clone(a.Table.Shape[1:]), nil
}

func inferLinear(a *LinearAttr, x *Node) ([]int, error) {
	if len(x.Shape) == 0 || x.Shape[len(x.Shape)-1] == 0 {
		return nil, fmt.Errorf("linear: the input %v has nothing to multiply", x.Shape)
	}
	d := x.Shape[len(x.Shape)-1]
	if len(a.W.Shape) != 2 || a.W.Shape[1] != d {
		return nil, fmt.Errorf("linear: the input %v needs a weight [out, %d], got %v of %v", x.Shape, d, a.W.Shape, a.W)
	}
	if err := expect("linear: bias", a.B, a.W.Shape[0]); err != nil {
		return nil, err
	}
	return append(slices.Clone(x.Shape[:len(x.Shape)-1]), a.W.Shape[0]), nil
}

func inferNorm(a *NormAttr, word string, x *Node) ([]int, error) {
	if len(x.Shape) == 0 {
		return nil, fmt.Errorf("%s: the input has no axis", word)
	}
	d := x.Shape[len(x.Shape)-1]
	if a.Kind != RMS && a.Kind != Layer && a.Kind != L2 {
		return nil, fmt.Errorf("%s: there is no such norm", word)
	}
	if a.Groups > 1 && d%a.Groups != 0 {
		return nil, fmt.Errorf("%s: %d groups do not divide %d", word, a.Groups, d)
	}
	for _, w := range []*Weight{a.W, a.B} {
		if w == nil || slices.Equal(w.Shape, []int{d}) || slices.Equal(w.Shape, x.Shape) {
			continue
		}
		return nil, fmt.Errorf("%s: the input %v needs a weight [%d], got %v of %v", word, x.Shape, d, w.Shape, w)
	}
	return x.Shape, nil
}

func inferRope(g *Graph, a *RopeAttr, x *Node) ([]int, error) {
	if a.Table < 0 || a.Table >= len(g.Ropes) {
		return nil, fmt.Errorf("rope: table %d does not exist", a.Table)
	}
	t := g.Ropes[a.Table]
	if len(x.Shape) == 0 || a.At < 0 || a.At+t.Dim > x.Shape[len(x.Shape)-1] {
		return nil, fmt.Errorf("rope: components %d to %d lie outside the input %v", a.At, a.At+t.Dim, x.Shape)
	}
	return x.Shape, nil
}

func inferRoute(a *RouteAttr, x *Node) ([]int, error) {
	if len(x.Shape) != 1 {
		return nil, fmt.Errorf("route: takes scores [experts], got %v", x.Shape)
	}
	e := x.Shape[0]
	if a.TopK < 1 || a.TopK > e {
		return nil, fmt.Errorf("route: cannot choose %d of %d experts", a.TopK, e)
	}
	if a.Groups > 1 && (e%a.Groups != 0 || a.TopGroups < 1 || a.TopGroups > a.Groups || a.TopGroups*(e/a.Groups) < a.TopK) {
		return nil, fmt.Errorf("route: %d of %d groups do not fit %d experts, %d of them chosen", a.TopGroups, a.Groups, e, a.TopK)
	}
	switch a.Score {
	case "softmax", "sigmoid", "none":
	default:
		return nil, fmt.Errorf("route: no score %q", a.Score)
	}
	if a.Groups > 1 && a.GroupScore != "max" && a.GroupScore != "top2" {
		return nil, fmt.Errorf("route: no group score %q", a.GroupScore)
	}
	if a.Identity < 0 || a.Identity >= e {
		return nil, fmt.Errorf("route: %d identity experts of %d", a.Identity, e)
	}
	if err := expect("route: bias", a.Bias, e); err != nil {
		return nil, err
	}
	if err := expect("route: factor of each expert", a.PerExpert, e); err != nil {
		return nil, err
	}
	return []int{a.TopK}, nil
}

func inferExperts(g *Graph, a *ExpertsAttr, in []*Node) ([]int, error) {
	x := in[0]
	if in[1].Op != OpRoute {
		return nil, fmt.Errorf("experts: takes a value and a route, got %s", in[1].Op)
	}
	if len(x.Shape) != 1 || len(a.Up.Shape) != 3 {
		return nil, fmt.Errorf("experts: takes an input [width] and weights [experts, inner, width], got %v and %v of %v", x.Shape, a.Up.Shape, a.Up)
	}
	e, inner := a.Up.Shape[0], a.Up.Shape[1]
	if e != a.Experts {
		return nil, fmt.Errorf("experts: states %d experts, the weights hold %d", a.Experts, e)
	}
	r := in[1].Attr.(*RouteAttr)
	if scores := g.Nodes[in[1].In[0]].Shape[0]; scores != e+r.Identity {
		return nil, fmt.Errorf("experts: the route chooses among %d, the weights hold %d and %d are identities", scores, e, r.Identity)
	}
	if _, ok := UnaryFuncs[a.Act]; !ok && a.Act != "swiglu_clamp" {
		return nil, fmt.Errorf("experts: no activation %q", a.Act)
	}
	checks := []error{
		expect("experts: up", a.Up, e, inner, x.Shape[0]), expect("experts: gate", a.Gate, e, inner, x.Shape[0]),
		expect("experts: gate bias", a.GateBias, e, inner), expect("experts: up bias", a.UpBias, e, inner),
	}
	if len(a.Down.Shape) != 3 {
		return nil, fmt.Errorf("experts: down is [experts, width, inner], got %v of %v", a.Down.Shape, a.Down)
	}
	out := a.Down.Shape[1]
	checks = append(checks, expect("experts: down", a.Down, e, out, inner), expect("experts: down bias", a.DownBias, e, out))
	for _, err := range checks {
		if err != nil {
			return nil, err
		}
	}
	return []int{out}, nil
}
