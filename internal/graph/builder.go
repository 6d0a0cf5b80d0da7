package graph

import "fmt"

// Builder appends nodes to a graph. Every method infers the result's shape and
// fails, without adding anything, when the inputs do not fit: the error says
// what was expected and what came.
type Builder struct {
	G     *Graph
	Layer int                   // layer given to new nodes; −1 before the first
	At    func() (Line, []Line) // where the specification stands; may be nil
	Name  string                // name of the next node; cleared by it
	// Memory says that tokens and positions are those of the encoder's source.
	Memory bool

	loop   *loopScope // while the step of a recurrence is traced
	looped bool       // one was
	nodes  []Node     // room for further ones, which are many and live as long as the graph
	ins    []int      // room for their inputs
}

// room is how many nodes or inputs are allocated together.
const room = 256

// node is a new node with room for its inputs, nil where it takes none.
func (b *Builder) node(inputs int) *Node {
	if len(b.nodes) == 0 {
		b.nodes = make([]Node, room)
	}
	n := &b.nodes[0]
	b.nodes = b.nodes[1:]
	if inputs == 0 {
		return n
	}
	if len(b.ins) < inputs {
		b.ins = make([]int, max(room, inputs))
	}
	n.In, b.ins = b.ins[:inputs:inputs], b.ins[inputs:]
	return n
}

// NewBuilder starts an empty graph.
func NewBuilder() *Builder { return &Builder{G: &Graph{}, Layer: -1} }

// Add appends a node of any operation. want is the shape where the operation
// does not fix it (reshape, const) and nil otherwise.
func (b *Builder) Add(op Op, attr any, want []int, in ...*Node) (*Node, error) {
	if b.loop == nil {
		for _, x := range in {
			if b.looped && !b.owns(x) {
				b.Name = ""
				return nil, fmt.Errorf("%s: a value of a step of recur is used outside of it; return it as the result", Written(op, attr))
			}
		}
		return b.add(op, attr, want, in)
	}
	n, err := b.addInLoop(op, attr, want, in)
	b.Name = ""
	return n, err
}

func (b *Builder) add(op Op, attr any, want []int, in []*Node) (*Node, error) {
	shape, rows, err := infer(b.G, op, attr, want, in)
	if err != nil {
		b.Name = ""
		return nil, err
	}
	n := b.node(len(in))
	n.ID, n.Op, n.Shape, n.Rows, n.Attr, n.Layer, n.Name = len(b.G.Nodes), op, shape, rows, attr, b.Layer, b.Name
	b.Name = ""
	for i, x := range in {
		n.In[i] = x.ID
	}
	if b.At != nil {
		n.Line, n.Stack = b.At()
	}
	b.G.Nodes = append(b.G.Nodes, n)
	return n, nil
}

// Tokens is the batch's token ids, shape []. The node is made once, or twice
// where there is an encoder.
func (b *Builder) Tokens() *Node {
	if b.loop != nil {
		return b.loop.outer.Tokens() // an input of what reads it
	}
	for _, n := range b.G.Nodes {
		if a, ok := n.Attr.(*TokensAttr); ok && a.Memory == b.Memory {
			return n
		}
	}
	n, err := b.Add(OpTokens, &TokensAttr{Memory: b.Memory}, nil)
	if err != nil {
		panic(err) // no inputs: nothing that could be wrong
	}
	return n
}

// Embed reads row index of the table [V, …]; index has shape [].
func (b *Builder) Embed(index *Node, table *Weight, guard int) (*Node, error) {
	return b.EmbedLed(index, table, nil, guard)
}

// EmbedLed is Embed whose rows lead [n, …], if not nil, stand before each text.
func (b *Builder) EmbedLed(index *Node, table, lead *Weight, guard int) (*Node, error) {
	n, err := b.Add(OpEmbed, &EmbedAttr{Table: table, Guard: guard, Lead: lead}, nil, index)
	if err == nil && b.G.Vocab == 0 && index.Op == OpTokens && index.Rows == RowsToken {
		b.G.Vocab = table.Shape[0]
	}
	return n, err
}

// Param makes a stored tensor a value with one row for all tokens.
func (b *Builder) Param(w *Weight) (*Node, error) { return b.Add(OpParam, &ParamAttr{W: w}, nil) }

// Const makes numbers a value of the given shape.
func (b *Builder) Const(values []float64, shape []int) (*Node, error) {
	return b.Add(OpConst, &ConstAttr{Values: values}, shape)
}

// Linear is x·Wᵀ + bias over the last axis; w [out, in], bias [out] or nil.
func (b *Builder) Linear(x *Node, w, bias *Weight) (*Node, error) {
	return b.Add(OpLinear, &LinearAttr{W: w, B: bias}, nil, x)
}

// Norm normalises the last axis of x.
func (b *Builder) Norm(x *Node, a NormAttr) (*Node, error) { return b.Add(OpNorm, &a, nil, x) }

// Unary applies the function f of UnaryFuncs with its parameters.
func (b *Builder) Unary(f string, x *Node, p, q float64) (*Node, error) {
	return b.Add(OpUnary, &UnaryAttr{F: f, A: p, B: q}, nil, x)
}

// Binary applies the function f of BinaryFuncs with broadcast.
func (b *Builder) Binary(f string, x, y *Node) (*Node, error) {
	return b.Add(OpBinary, &BinaryAttr{F: f}, nil, x, y)
}

// Reshape keeps the values; one dimension may be −1.
func (b *Builder) Reshape(x *Node, shape []int) (*Node, error) {
	shape = append([]int(nil), shape...)
	free, p := -1, 1
	for i, d := range shape {
		switch {
		case d == -1 && free < 0:
			free = i
		case d < 0:
			return nil, fmt.Errorf("reshape: %v is no shape", shape)
		default:
			p *= d
		}
	}
	if free >= 0 {
		if p == 0 || x.Width()%p != 0 {
			return nil, fmt.Errorf("reshape: the %d values of %v do not divide into %v", x.Width(), x.Shape, shape)
		}
		shape[free] = x.Width() / p
	}
	return b.Add(OpReshape, nil, shape, x)
}

// Slice takes from ≤ i < to by step along axis; a negative axis counts from the end.
func (b *Builder) Slice(x *Node, axis, from, to, step int) (*Node, error) {
	if axis < 0 {
		axis += len(x.Shape)
	}
	return b.Add(OpSlice, &SliceAttr{Axis: axis, From: from, To: to, Step: step}, nil, x)
}

// Concat joins along axis; a negative axis counts from the end.
func (b *Builder) Concat(axis int, in ...*Node) (*Node, error) {
	if axis < 0 && len(in) > 0 {
		axis += len(in[0].Shape)
	}
	return b.Add(OpConcat, &ConcatAttr{Axis: axis}, nil, in...)
}

// Rope rotates x [.., d] by the table t of the graph.
func (b *Builder) Rope(x *Node, a RopeAttr) (*Node, error) {
	if err := b.ofSource(&x); err != nil {
		return nil, err
	}
	return b.Add(OpRope, &a, nil, x)
}

// ofSource spreads what is the same for all tokens over the rows of the encoder's
// source, in an encoder: the operation could not tell otherwise whose rows are meant.
func (b *Builder) ofSource(in ...**Node) error {
	for _, x := range in {
		if !b.Memory || (*x).Rows != RowsConst {
			continue
		}
		at, err := b.Add(OpPositions, &PositionsAttr{Memory: true}, nil)
		if err != nil {
			return err
		}
		zero, err := b.Unary("scale", at, 0, 0)
		if err != nil {
			return err
		}
		if *x, err = b.Binary("add", *x, zero); err != nil {
			return err
		}
	}
	return nil
}

// Reverse gives the rows of a whole sequence, the last first; what is the same
// for all tokens stays as it is.
func (b *Builder) Reverse(x *Node) (*Node, error) {
	if x.Rows == RowsConst {
		return x, nil
	}
	return b.Add(OpReverse, nil, nil, x)
}

// AddRope numbers a rotary table.
func (b *Builder) AddRope(t *RopeTable) int {
	b.G.Ropes = append(b.G.Ropes, t)
	return len(b.G.Ropes) - 1
}

// Attention appends a cache for q [H,dk], k [K,dk], v [K,dv] and attends
// over it. Cache, Heads and KVHeads of a are filled in. Where a.Allowed is set,
// allowed is the result of IndexTopK.
func (b *Builder) Attention(q, k, v *Node, a AttentionAttr, allowed ...*Node) (*Node, error) {
	if len(q.Shape) != 2 || len(k.Shape) != 2 || len(v.Shape) != 2 {
		return nil, fmt.Errorf("attention: q, k and v are [heads, d], got %v, %v, %v", q.Shape, k.Shape, v.Shape)
	}
	if err := b.ofSource(&q, &k, &v); err != nil {
		return nil, err
	}
	source := k.Rows == RowsMemory || v.Rows == RowsMemory
	if a.Cross = q.Rows != RowsMemory && source; a.Cross {
		a.Mask, a.Window, a.Sides = MaskFull, 0, nil
	}
	c := Cache{Kind: CacheKV, Heads: k.Shape[0], KeyDim: k.Shape[1], ValueDim: v.Shape[1], Layer: b.Layer, Memory: source, Kept: a.Cross}
	return b.attend(c, a, append([]*Node{q, k, v}, allowed...)...)
}

// AttentionLatent is Attention whose values are the first n components of the keys.
func (b *Builder) AttentionLatent(q, k *Node, n int, a AttentionAttr, allowed ...*Node) (*Node, error) {
	if len(q.Shape) != 2 || len(k.Shape) != 2 || n < 1 || n > k.Shape[1] {
		return nil, fmt.Errorf("attention: q and k are [heads, d] and the values the first 1 to d components, got %v, %v and %d", q.Shape, k.Shape, n)
	}
	c := Cache{Kind: CacheLatent, Heads: k.Shape[0], KeyDim: k.Shape[1], ValueDim: n, Layer: b.Layer}
	return b.attend(c, a, append([]*Node{q, k}, allowed...)...)
}

func (b *Builder) attend(c Cache, a AttentionAttr, in ...*Node) (*Node, error) {
	a.Cache, a.Shared = len(b.G.Caches), false
	a.Heads, a.KVHeads = in[0].Shape[0], c.Heads
	if a.Mask == MaskCausal || a.Mask == MaskBefore {
		if c.Window = a.Window; c.Window > 0 {
			c.First = a.First
		}
	}
	b.G.Caches = append(b.G.Caches, c)
	return b.stateful(OpAttention, &a, a.Cache, in...)
}

// AttentionShared attends over the cache that an earlier attention fills.
func (b *Builder) AttentionShared(q *Node, a AttentionAttr, allowed ...*Node) (*Node, error) {
	if len(q.Shape) != 2 {
		return nil, fmt.Errorf("attention: q is [heads, d], got %v", q.Shape)
	}
	if a.Cache < 0 || a.Cache >= len(b.G.Caches) {
		return nil, fmt.Errorf("attention: cache %d does not exist", a.Cache)
	}
	c := &b.G.Caches[a.Cache]
	if err := b.ofSource(&q); err != nil {
		return nil, err
	}
	if q.Rows == RowsMemory && !c.Memory {
		return nil, fmt.Errorf("attention: the encoder cannot read a cache of the decoder")
	}
	a.Shared, a.Heads, a.KVHeads = true, q.Shape[0], c.Heads
	if a.Cross = c.Memory && q.Rows != RowsMemory; a.Cross {
		a.Mask, a.Window, a.Sides = MaskFull, 0, nil
	}
	c.Kept = c.Memory
	if a.Window == 0 || a.Window > c.Window {
		if c.Window != 0 {
			return nil, fmt.Errorf("attention: the shared cache keeps %d keys, the reader's window is %d", c.Window, a.Window)
		}
	}
	return b.Add(OpAttention, &a, nil, append([]*Node{q}, allowed...)...)
}
