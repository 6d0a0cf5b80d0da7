package ref

import (
	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
)

// loop evaluates graph.LoopAttr: its body for one position after the other.
func (m *Machine) loop(n *graph.Node, a *graph.LoopAttr, in []*Value, b *batch.Batch, out *Value) error {
	body, err := m.body(n, a)
	if err != nil {
		return err
	}
	states := make([][]float32, len(b.Seqs))
	for i := range b.Seqs {
		if states[i], err = m.Memory.State(a.Cache, &b.Seqs[i]); err != nil {
			return err
		}
	}
	return m.parallel(len(b.Seqs), func(from, to int) error {
		r := NewLoop(a, body, nil)
		r.Of(b)
		for i := from; i < to; i++ {
			q := &b.Seqs[i]
			if q.Start == 0 {
				r.Start(states[i], in)
			}
			for row := int(q.Row); row < int(q.Row+q.N); row++ {
				if err := r.Step(states[i], in, row, out.Row(row)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// body is the graph of a loop's body.
func (m *Machine) body(n *graph.Node, a *graph.LoopAttr) (*graph.Graph, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g := m.bodies[a]; g != nil {
		return g, nil
	}
	var in []*graph.Node
	for _, id := range n.In {
		in = append(in, m.Graph.Nodes[id])
	}
	g, err := a.Graph(in)
	if err == nil {
		m.bodies[a] = g
	}
	return g, err
}

// Loop computes steps of a graph.LoopAttr; it is not safe for concurrent use.
type Loop struct {
	a    *graph.LoopAttr
	m    *Machine // of the body
	vals []*Value
	in   [][]*Value // by operation, into vals
	next []float32  // the new states
	one  *batch.Batch
	own  func(n *graph.Node, in []*Value, out *Value) bool
}

// NewLoop makes room for the values of a body, a.Graph of the inputs. own, if
// not nil, is asked first to compute an operation, and says whether it did.
func NewLoop(a *graph.LoopAttr, body *graph.Graph, own func(n *graph.Node, in []*Value, out *Value) bool) *Loop {
	r := &Loop{a: a, m: New(body, nil), one: &batch.Batch{Tokens: make([]int32, 1)}, own: own}
	r.m.Threads = 1
	for _, n := range body.Nodes {
		v := &Value{Rows: 1, Width: n.Width()}
		if n.Op != graph.OpArg && n.Op != graph.OpReshape {
			v.Data = make([]float32, v.Width)
		}
		var in []*Value
		for _, id := range n.In {
			in = append(in, r.vals[id])
		}
		r.vals, r.in = append(r.vals, v), append(r.in, in)
		if c, ok := n.Attr.(*graph.ConstAttr); ok {
			for k, x := range c.Values {
				v.Data[k] = float32(x)
			}
		}
	}
	size := 0
	for _, id := range a.Out[:a.States] {
		size += r.vals[id].Width
	}
	r.next = make([]float32, size)
	return r
}

// Of says whose positions are computed: the steps end where b is stopped.
func (r *Loop) Of(b *batch.Batch) { r.one.Stop = b.Stop }

// Start writes the states before the first position: the first inputs.
func (r *Loop) Start(state []float32, in []*Value) {
	at := 0
	for _, first := range in[:r.a.States] {
		at += copy(state[at:], first.Row(0))
	}
}

// Step computes one position: it reads row of the inputs, moves the state on and
// writes the result.
func (r *Loop) Step(state []float32, in []*Value, row int, out []float32) error {
	at := 0
	for i := range in {
		v := r.vals[i]
		if i < r.a.States {
			v.Data, at = state[at:at+v.Width], at+v.Width
			continue
		}
		v.Data = in[i].Row(row)
	}
	for i := len(in); i < len(r.vals); i++ {
		n, v := r.m.Graph.Nodes[i], r.vals[i]
		if r.one.Stopped() {
			return batch.ErrStopped
		}
		switch {
		case n.Op == graph.OpConst:
		case n.Op == graph.OpReshape:
			v.Data = r.in[i][0].Data
		case r.own != nil && r.own(n, r.in[i], v):
		default:
			if err := r.m.compute(n, r.in[i], r.one, v); err != nil {
				return err
			}
		}
	}
	at = 0
	for _, id := range r.a.Out[:r.a.States] {
		at += copy(r.next[at:], r.vals[id].Data)
	}
	copy(out, r.vals[r.a.Out[r.a.States]].Data)
	copy(state, r.next)
	return nil
}
