// Package ref runs a traced graph as it stands, unfused, in float32 with sums
// in float64: the meaning that every other device is held against. It must
// never import the compiler or other devices. Read Machine first.
package ref

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/weight"
)

// Value is the result of a node for all rows of a batch: Rows × Width float32,
// row after row. Idx holds the chosen experts of a route, k a row.
type Value struct {
	Rows, Width int
	Data        []float32
	Idx         []int32
}

// Row returns row i; a value with a single constant row gives it for every i.
func (v *Value) Row(i int) []float32 {
	if v.Rows == 1 {
		i = 0
	}
	return v.Data[i*v.Width : (i+1)*v.Width]
}

// chosen returns the experts of row i of a route, as Row does.
func (v *Value) chosen(i int) []int32 {
	if v.Rows == 1 {
		i = 0
	}
	return v.Idx[i*v.Width : (i+1)*v.Width]
}

// Machine evaluates the nodes of one graph. It is not safe for concurrent use.
type Machine struct {
	Graph *graph.Graph
	src   weight.Source

	mu        sync.Mutex
	rows      map[*graph.Weight]*weight.Rows
	vectors   map[*graph.Weight][]float32
	distances map[distanceKey]*Distances
	state     map[int32]*sequence
	bodies    map[*graph.LoopAttr]*graph.Graph
	sound     map[*graph.Weight]bool // those that were looked through for NaN
	Threads   int
	// RefuseNaN makes a weight with a value that is no number an error, which
	// wraps weight.ErrNaN and names the tensor.
	RefuseNaN bool
	// Memory is where operations with a state or with rows of earlier positions
	// keep them; New gives a map by sequence id.
	Memory Memory
}

// New makes a machine for g with the tensors of src.
func New(g *graph.Graph, src weight.Source) *Machine {
	return &Machine{Graph: g, src: src, Threads: runtime.NumCPU(), rows: map[*graph.Weight]*weight.Rows{}, sound: map[*graph.Weight]bool{},
		vectors: map[*graph.Weight][]float32{}, distances: map[distanceKey]*Distances{}, state: map[int32]*sequence{}, bodies: map[*graph.LoopAttr]*graph.Graph{}, Memory: &ownMemory{g, map[int32]*kept{}}}
}

// Forget drops what the machine keeps of a sequence.
func (m *Machine) Forget(seq int32) {
	delete(m.state, seq)
	if own, ok := m.Memory.(*ownMemory); ok {
		delete(own.seqs, seq)
	}
}

// Run evaluates the graph for the rows of b and returns the first output for
// the rows in b.Out: [len(Out)][width]. Keys and values of earlier calls with
// the same sequence id are kept by the machine; the spans of b are not read.
func (m *Machine) Run(b *batch.Batch) ([][]float32, error) {
	all, err := m.Trace(b, nil)
	if err != nil {
		return nil, err
	}
	if b.Encode {
		return nil, nil
	}
	v := all[m.Graph.Outputs[0].Node]
	out := make([][]float32, len(b.Out))
	for i, r := range b.Out {
		out[i] = v.Row(int(r))
	}
	return out, nil
}

// Trace evaluates the graph and calls visit, if not nil, with each node's value.
// A batch that encodes evaluates what depends on the source alone, and keeps
// what cross attention reads; any other batch evaluates the rest.
func (m *Machine) Trace(b *batch.Batch, visit func(*graph.Node, *Value)) ([]*Value, error) {
	last, live := m.lastUse(), m.Graph.Live()
	vals := make([]*Value, len(m.Graph.Nodes))
	for i, n := range m.Graph.Nodes {
		if !live[i] && visit == nil {
			continue
		}
		in := make([]*Value, len(n.In))
		for k, id := range n.In {
			in[k] = vals[id]
		}
		if n.Rows != graph.RowsConst && (n.Rows == graph.RowsMemory) != b.Encode {
			if b.Encode {
				m.keep(n, in, b)
			}
			continue
		}
		if b.Stopped() {
			return nil, batch.ErrStopped
		}
		v, err := m.Eval(n, in, b)
		if err != nil {
			return nil, fmt.Errorf("ref: %s (%s, line %s): %w", graph.Written(n.Op, n.Attr), n.Name, n.Line, err)
		}
		vals[i] = v
		if visit != nil {
			visit(n, v)
		}
		for _, id := range n.In {
			if last[id] == i {
				vals[id] = nil
			}
		}
	}
	return vals, nil
}

// lastUse gives for each node the last node that reads it; outputs stay.
func (m *Machine) lastUse() []int {
	last := make([]int, len(m.Graph.Nodes))
	for i, n := range m.Graph.Nodes {
		for _, id := range n.In {
			last[id] = i
		}
	}
	for _, o := range m.Graph.Outputs {
		last[o.Node] = len(m.Graph.Nodes)
	}
	return last
}

// Eval computes one node from its inputs. Attention and other nodes with a
// cache use the machine's own state of each sequence.
func (m *Machine) Eval(n *graph.Node, in []*Value, b *batch.Batch) (*Value, error) {
	rows := b.Rows()
	if n.Rows == graph.RowsConst {
		rows = 1
	}
	out := &Value{Rows: rows, Width: n.Width()}
	if n.Op != graph.OpReshape {
		out.Data = make([]float32, rows*out.Width)
	}
	switch n.Op {
	case graph.OpTokens:
		for i, t := range b.Tokens {
			out.Data[i] = float32(t)
		}
	case graph.OpTypes:
		for i, t := range b.Types {
			out.Data[i] = float32(t)
		}
	case graph.OpPositions:
		positions(n.Attr.(*graph.PositionsAttr), b, out.Data)
	case graph.OpReshape:
		out.Data = in[0].Data
		out.Rows = in[0].Rows
	default:
		return out, m.compute(n, in, b, out)
	}
	return out, nil
}

func (m *Machine) compute(n *graph.Node, in []*Value, b *batch.Batch, out *Value) error {
	switch n.Op {
	case graph.OpParam:
		v, err := m.vector(n.Attr.(*graph.ParamAttr).W)
		copy(out.Data, v)
		return err
	case graph.OpConst:
		for i, v := range n.Attr.(*graph.ConstAttr).Values {
			out.Data[i] = float32(v)
		}
		return nil
	case graph.OpEmbed:
		return m.embed(n.Attr.(*graph.EmbedAttr), m.Graph.Nodes[n.In[0]], in[0], out)
	case graph.OpLinear:
		return m.linear(n.Attr.(*graph.LinearAttr), in[0], out)
	case graph.OpNorm:
		return m.norm(n, n.Attr.(*graph.NormAttr), in[0], out)
	case graph.OpUnary:
		return unary(n.Attr.(*graph.UnaryAttr), in[0], out)
	case graph.OpBinary, graph.OpWhere:
		return m.broadcast(n, in, out)
	case graph.OpReduce, graph.OpSoftmax:
		return m.reduce(n, in[0], out)
	case graph.OpBalance:
		return balance(n.Attr.(*graph.BalanceAttr), n.Shape[len(n.Shape)-1], in[0], b, out)
	case graph.OpTranspose, graph.OpSlice, graph.OpConcat, graph.OpGather:
		return m.move(n, in, out)
	case graph.OpOrder:
		s := m.Graph.Nodes[n.In[0]].Shape
		order(s[len(s)-1], in[0], out)
		return nil
	case graph.OpRope:
		return m.rope(n, in[0], b, out)
	case graph.OpAttention:
		return m.attention(n, in, b, out)
	case graph.OpBlockSum:
		blockSum(n.Attr.(*graph.BlockSumAttr).Size, in[0], b, out)
		return nil
	case graph.OpBlockAttn:
		return m.blockAttention(n, in, b, out)
	case graph.OpRoute:
		return m.route(n.Attr.(*graph.RouteAttr), in[0], out)
	case graph.OpPool:
		return pool(n.Attr.(*graph.PoolAttr).How, in[0], b, out)
	case graph.OpReverse:
		for i := range b.Seqs {
			q := &b.Seqs[i]
			for r := range int(q.N) {
				copy(out.Row(int(q.Row)+r), in[0].Row(int(q.Row+q.N)-1-r))
			}
		}
		return nil
	case graph.OpExperts:
		return m.experts(n.Attr.(*graph.ExpertsAttr), in, out)
	case graph.OpExpertLinear:
		return m.expertLinear(n.Attr.(*graph.ExpertLinearAttr), in, out)
	case graph.OpHeadLinear:
		return m.headLinear(n.Attr.(*graph.HeadLinearAttr), in[0], out)
	case graph.OpDot:
		if d := m.Graph.Nodes[n.In[0]].Shape; out.Width > 0 && d[len(d)-1] > 0 {
			return dots(d[len(d)-1], in[0], in[1], b, out)
		}
		return nil
	case graph.OpJoin:
		join(n.Shape[0], in, out)
		return nil
	case graph.OpStored:
		return m.stored(n, n.Attr.(*graph.StoredAttr), in, out)
	case graph.OpIndex:
		return m.index(n.Attr.(*graph.IndexAttr), in, b, out)
	}
	return m.recurrence(n, in, b, out)
}

// recurrence computes what keeps a state of the sequence.
func (m *Machine) recurrence(n *graph.Node, in []*Value, b *batch.Batch, out *Value) error {
	switch n.Op {
	case graph.OpConv1D:
		return m.conv(n.Attr.(*graph.ConvAttr), in, b, out)
	case graph.OpScan:
		return m.scan(n, n.Attr.(*graph.ScanAttr), in, b, out)
	case graph.OpGatedDelta:
		return m.delta(n, n.Attr.(*graph.DeltaAttr), in, b, out)
	case graph.OpLoop:
		return m.loop(n, n.Attr.(*graph.LoopAttr), in, b, out)
	case graph.OpLinearAttention:
		return m.linearAttention(n, n.Attr.(*graph.LinearAttentionAttr), in, b, out)
	}
	return fmt.Errorf("unknown operation %q", n.Op)
}

func (m *Machine) weight(w *graph.Weight) (*weight.Rows, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.rows[w]; r != nil {
		return r, nil
	}
	r, err := weight.Resolve(m.src, w)
	if err == nil {
		m.rows[w] = r
	}
	return r, err
}

func (m *Machine) vector(w *graph.Weight) ([]float32, error) {
	if w == nil {
		return nil, nil
	}
	if v, ok := m.vectors[w]; ok {
		return v, nil
	}
	v, err := weight.Vector(m.src, w)
	if err == nil {
		err = m.refused(w, v)
	}
	if err == nil {
		m.vectors[w] = v
	}
	return v, err
}
