package graph

import (
	"fmt"
	"maps"
	"slices"
)

// BinaryFuncs are the elementwise functions of two values.
var BinaryFuncs = map[string]string{
	"add": "x+y", "sub": "x−y", "mul": "x·y", "div": "x/y", "max": "max(x,y)", "min": "min(x,y)", "pow": "x^y", "less": "x<y ? 1 : 0",
}

// ReduceFuncs are the functions over the last axis.
var ReduceFuncs = map[string]bool{"mean": true, "std": true, "sum": true, "max": true, "min": true}

// infer gives the shape and rows of an operation's result, or says what does not fit.
func infer(g *Graph, op Op, attr any, want []int, in []*Node) (shape []int, rows Rows, err error) {
	word := Written(op, attr)
	rows, err = joinRows(op, word, in)
	if err != nil {
		return nil, 0, err
	}
	if n, ok := arity[op]; !ok {
		return nil, 0, fmt.Errorf("%s: no such operation", op)
	} else if n >= 0 && len(in) != n {
		return nil, 0, fmt.Errorf("%s: takes %d inputs, got %d", op, n, len(in))
	}
	if err := checkAttr(op, attr); err != nil {
		return nil, 0, err
	}
	if err := checkNumbers(word, attr); err != nil {
		return nil, 0, err
	}
	switch a := attr.(type) {
	case *EmbedAttr:
		shape, err = inferEmbed(a, in)
	case *LinearAttr:
		shape, err = inferLinear(a, in[0])
	case *NormAttr:
		shape, err = inferNorm(a, word, in[0])
	case *RopeAttr:
		if rows == RowsConst {
			rows = RowsToken // each position turns it in its own way
		}
		shape, err = inferRope(g, a, in[0])
	case *AttentionAttr:
		shape, rows, err = inferAttention(g, a, in)
	case *BlockAttnAttr:
		shape, err = inferBlockAttn(a, in)
	case *RouteAttr:
		shape, err = inferRoute(a, in[0])
	case *ExpertsAttr:
		shape, err = inferExperts(g, a, in)
	case *ExpertLinearAttr:
		shape, err = inferExpertLinear(g, a, in)
	case *HeadLinearAttr:
		shape, err = inferHeadLinear(a, in[0])
	case *BalanceAttr:
		shape, err = in[0].Shape, inferBalance(a, in[0].Shape)
	case *DotAttr:
		shape, err = inferDot(in[0].Shape, in[1].Shape)
	case *JoinAttr:
		shape, err = inferJoin(rows, in)
	case *StoredAttr:
		shape, err = inferStored(a, in)
	case *IndexAttr:
		rows = RowsToken
		shape, err = inferIndex(g, a, in)
	case *ConvAttr, *ScanAttr, *DeltaAttr, *LinearAttentionAttr, *LoopAttr:
		if rows == RowsConst {
			rows = RowsToken
		}
		shape, err = inferState(g, attr, in)
		if c, _ := CacheOf(&Node{Attr: attr}); err == nil && g.Caches[c].Memory != (rows == RowsMemory) {
			err = fmt.Errorf("%s: its state is not of the rows that it reads", word)
		}
	case *PoolAttr:
		shape, err = inferPool(a, in[0])
	case *ParamAttr:
		rows = RowsConst
		shape = slices.Clone(a.W.Shape)
		if shape == nil {
			shape = []int{}
		}
	default:
		shape, rows, err = inferSimple(op, attr, want, in, rows)
	}
	if err == nil && rows == RowsToken && op != OpAttention && anyMemory(in) {
		err = fmt.Errorf("%s: is not possible in the encoder of an encoder-decoder", word)
	}
	return shape, rows, err
}

var arity = map[Op]int{
	OpTokens: 0, OpPositions: 0, OpTypes: 0, OpPool: 1, OpParam: 0, OpConst: 0, OpEmbed: 1, OpLinear: 1, OpNorm: 1, OpUnary: 1, OpBinary: 2, OpWhere: 3,
	OpReduce: 1, OpSoftmax: 1, OpBalance: 1, OpReshape: 1, OpTranspose: 1, OpSlice: 1, OpConcat: -1, OpGather: 2, OpRope: 1, OpAttention: -1,
	OpRoute: 1, OpExperts: 2, OpBlockSum: 1, OpBlockAttn: 5, OpConv1D: -1, OpScan: 5, OpGatedDelta: -1, OpLinearAttention: -1,
	OpHeadLinear: 1, OpIndex: 3, OpExpertLinear: 2, OpDot: 2, OpJoin: -1, OpStored: 3, OpReverse: 1, OpLoop: -1, OpOrder: 1,
}

func anyMemory(in []*Node) bool {
	return slices.ContainsFunc(in, func(n *Node) bool { return n.Rows == RowsMemory })
}

// joinRows joins what the inputs are rows of; word is how the operation is written.
func joinRows(op Op, word string, in []*Node) (Rows, error) {
	rows := RowsConst
	for _, n := range in {
		switch {
		case n.Rows == RowsConst || n.Rows == rows:
		case rows == RowsConst:
			rows = n.Rows
		case op == OpAttention:
			rows = RowsToken
		default:
			return 0, fmt.Errorf("%s: mixes rows of tokens with rows of the encoder's output, of which only attention makes rows of tokens", word)
		}
		if n.Op == OpRoute && op != OpExperts && op != OpExpertLinear {
			return 0, fmt.Errorf("%s: takes a value, got what route returned, which only experts and expert_linear take", word)
		}
	}
	return rows, nil
}

func inferSimple(op Op, attr any, want []int, in []*Node, rows Rows) ([]int, Rows, error) {
	switch a := attr.(type) {
	case *TokensAttr:
		return []int{}, sourceRows(a.Memory), nil
	case *PositionsAttr:
		return []int{}, sourceRows(a.Memory), nil
	case *BlockSumAttr:
		if a.Size < 1 || rows != RowsMemory {
			return nil, 0, fmt.Errorf("block_sum: takes rows of the encoder and a size of at least 1, got %d", a.Size)
		}
		return in[0].Shape, rows, nil
	case *ConstAttr:
		if Product(want) != len(a.Values) {
			return nil, 0, fmt.Errorf("const: %d numbers do not fill the shape %v", len(a.Values), want)
		}
		return want, RowsConst, nil
	case *UnaryAttr:
		if _, ok := UnaryFuncs[a.F]; !ok {
			return nil, 0, fmt.Errorf("unary: no function %q", a.F)
		}
		return in[0].Shape, rows, nil
	case *BinaryAttr:
		if _, ok := BinaryFuncs[a.F]; !ok {
			return nil, 0, fmt.Errorf("binary: no function %q", a.F)
		}
		s, err := broadcast(a.F, in[0].Shape, in[1].Shape)
		return s, rows, err
	case *ReduceAttr:
		if !ReduceFuncs[a.F] || len(in[0].Shape) == 0 {
			return nil, 0, fmt.Errorf("%s: needs a known function and at least one axis, got %v", Written(op, attr), in[0].Shape)
		}
		s := slices.Clone(in[0].Shape)
		s[len(s)-1] = 1
		return s, rows, nil
	case *TransposeAttr:
		s, err := permuted(in[0].Shape, a.Perm)
		return s, rows, err
	case *SliceAttr:
		s, err := sliced(in[0].Shape, a.Axis, a.From, a.To, a.Step)
		return s, rows, err
	case *ConcatAttr:
		shapes := make([][]int, len(in))
		for i, n := range in {
			shapes[i] = n.Shape
		}
		s, err := joined(shapes, a.Axis)
		return s, rows, err
	}
	return inferPlain(op, want, in, rows)
}

func sourceRows(memory bool) Rows {
	if memory {
		return RowsMemory
	}
	return RowsToken
}

// inferPlain handles the operations without attributes.
func inferPlain(op Op, want []int, in []*Node, rows Rows) ([]int, Rows, error) {
	switch op {
	case OpTypes:
		return []int{}, RowsToken, nil
	case OpReverse:
		if rows == RowsConst {
			return nil, 0, fmt.Errorf("reverse: the value is the same for all tokens")
		}
		return in[0].Shape, rows, nil
	case OpOrder:
		if len(in[0].Shape) == 0 || in[0].Shape[len(in[0].Shape)-1] > maxChosen {
			return nil, 0, fmt.Errorf("order: needs a last axis of at most %d numbers, got %v", maxChosen, in[0].Shape)
		}
		return in[0].Shape, rows, nil
	case OpSoftmax:
		if len(in[0].Shape) == 0 {
			return nil, 0, fmt.Errorf("softmax: needs at least one axis")
		}
		return in[0].Shape, rows, nil
	case OpWhere:
		s, err := broadcast("where", in[1].Shape, in[2].Shape)
		if err == nil {
			s, err = broadcast("where", in[0].Shape, s)
		}
		return s, rows, err
	case OpReshape:
		for _, d := range want {
			if d < 0 {
				return nil, 0, fmt.Errorf("reshape: %v is no shape", want)
			}
		}
		if Product(want) != in[0].Width() {
			return nil, 0, fmt.Errorf("reshape: %v has %d values, %v needs %d", in[0].Shape, in[0].Width(), want, Product(want))
		}
		return want, rows, nil
	case OpGather:
		a, i := in[0].Shape, in[1].Shape
		if len(a) == 0 || len(a) != len(i) || !slices.Equal(a[:len(a)-1], i[:len(i)-1]) {
			return nil, 0, fmt.Errorf("gather: needs a value [.., n] and indices [.., k] with the same axes before, got %v and %v", a, i)
		}
		return slices.Clone(i), rows, nil
	}
	return nil, 0, fmt.Errorf("%s: no such operation", op)
}

// broadcast aligns the last dimensions; each pair is equal or one of it is 1.
func broadcast(what string, a, b []int) ([]int, error) {
	if len(a) < len(b) {
		s, err := broadcast(what, b, a)
		if err != nil {
			err = fmt.Errorf("%s: %v and %v do not fit: trailing dimensions must be equal or 1", what, a, b)
		}
		return s, err
	}
	s := slices.Clone(a)
	for i := range b {
		j := len(a) - len(b) + i
		switch {
		case a[j] == b[i] || b[i] == 1:
		case a[j] == 1:
			s[j] = b[i]
		default:
			return nil, fmt.Errorf("%s: %v and %v do not fit: trailing dimensions must be equal or 1", what, a, b)
		}
	}
	return s, nil
}

func permuted(shape, perm []int) ([]int, error) {
	if len(perm) != len(shape) {
		return nil, fmt.Errorf("transpose: %v does not order the axes of %v", perm, shape)
	}
	seen, s := make([]bool, len(perm)), make([]int, len(perm))
	for i, p := range perm {
		if p < 0 || p >= len(perm) || seen[p] {
			return nil, fmt.Errorf("transpose: %v does not order the axes of %v", perm, shape)
		}
		seen[p], s[i] = true, shape[p]
	}
	return s, nil
}

func sliced(shape []int, axis, from, to, step int) ([]int, error) {
	if axis < 0 || axis >= len(shape) {
		return nil, fmt.Errorf("slice: %v has no axis %d", shape, axis)
	}
	if step < 1 || from < 0 || to < from || to > shape[axis] {
		return nil, fmt.Errorf("slice: [%d:%d:%d] lies outside axis %d of %v", from, to, step, axis, shape)
	}
	s := slices.Clone(shape)
	s[axis] = (to - from + step - 1) / step
	return s, nil
}

func joined(shapes [][]int, axis int) ([]int, error) {
	if len(shapes) == 0 {
		return nil, fmt.Errorf("concat: nothing to join")
	}
	if axis < 0 || axis >= len(shapes[0]) {
		return nil, fmt.Errorf("concat: %v has no axis %d", shapes[0], axis)
	}
	s := slices.Clone(shapes[0])
	for _, t := range shapes[1:] {
		if len(t) != len(s) {
			return nil, fmt.Errorf("concat: %v and %v have different numbers of axes", shapes[0], t)
		}
		for i := range s {
			if i == axis {
				s[i] += t[i]
			} else if s[i] != t[i] {
				return nil, fmt.Errorf("concat: %v and %v differ in axis %d", shapes[0], t, i)
			}
		}
	}
	return s, nil
}

// Ops lists the operations with the numbers of their inputs; −1: not fixed.
func Ops() map[Op]int { return maps.Clone(arity) }
