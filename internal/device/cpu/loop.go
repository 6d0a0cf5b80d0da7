package cpu

import (
	"slices"

	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
)

// loop runs a graph.LoopAttr: sequences are units of work, whose positions pass
// one after the other. Products and common functions have kernels, the rest of a
// step is computed as the reference does.
type loop struct {
	step   *program.OpStep
	cache  int
	size   int
	passes bool // the rows are those of a source
	own    []loopWorker
}

// loopWorker is what one worker needs.
type loopWorker struct {
	run *ref.Loop
	in  []*ref.Value
}

func (l *loader) loop(x *program.OpStep, n *graph.Node, a *graph.LoopAttr) (executor, error) {
	g := l.s.p.Graph
	c := g.Caches[a.Cache]
	e := &loop{step: x, cache: a.Cache, size: c.Size, passes: c.Memory}
	var in []*graph.Node
	for _, id := range n.In {
		in = append(in, g.Nodes[id])
	}
	body, err := a.Graph(in)
	if err != nil {
		return nil, err
	}
	for range l.s.team.Size() {
		w := loopWorker{run: ref.NewLoop(a, body, loopKernels(body))}
		for _, b := range x.In {
			w.in = append(w.in, &ref.Value{Width: l.s.p.Buffers[b].Width})
		}
		e.own = append(e.own, w)
	}
	if e.passes {
		l.passing = max(l.passing, e.size)
	}
	l.counters++
	return e, nil
}

func (e *loop) run(s *Stage, w *worker) {
	own := &e.own[w.id]
	for i, b := range e.step.In {
		v := own.in[i]
		v.Data, v.Rows = s.bufs[b], s.rowsOf(b)
		if s.p.Buffers[b].Const {
			v.Rows = 1
		}
	}
	own.run.Of(s.b)
	c := s.counter(w)
	for i, end, ok := claim(c, len(s.b.Seqs), 1); ok; i, end, ok = claim(c, len(s.b.Seqs), 1) {
		for ; i < end; i++ {
			if err := e.sequence(s, w, own, i); err != nil {
				s.fail(err)
			}
			if s.stopped(w) {
				return
			}
		}
	}
}

func (e *loop) sequence(s *Stage, w *worker, own *loopWorker, i int) error {
	q, before, state := &s.b.Seqs[i], []float32(nil), w.passing
	switch {
	case e.passes:
		state = state[:e.size]
	case e.size > 0:
		before, state = s.states.pair(e.cache, q, 0, e.size)
	}
	if before == nil {
		own.run.Start(state, own.in)
	} else {
		copy(state, before)
	}
	out, width := s.buf(e.step.Out)
	for r := int(q.Row); r < int(q.Row+q.N); r++ {
		if err := own.run.Step(state, own.in, r, out[r*width:(r+1)*width]); err != nil {
			return err
		}
	}
	return nil
}

// loopKernels computes those operations of a body that have kernels.
func loopKernels(body *graph.Graph) func(n *graph.Node, in []*ref.Value, out *ref.Value) bool {
	unary := make([]func(dst, x []float32), len(body.Nodes))
	for i, n := range body.Nodes {
		if a, ok := n.Attr.(*graph.UnaryAttr); ok {
			if f, err := unaryKernel(a); err == nil {
				unary[i] = f
			}
		}
	}
	return func(n *graph.Node, in []*ref.Value, out *ref.Value) bool {
		switch a := n.Attr.(type) {
		case *graph.UnaryAttr:
			if unary[n.ID] == nil {
				return false
			}
			unary[n.ID](out.Data, in[0].Data)
			return true
		case *graph.DotAttr:
			return dotVectors(body, n, in[0].Data, in[1].Data, out.Data)
		case *graph.BinaryAttr:
			x, y := body.Nodes[n.In[0]].Shape, body.Nodes[n.In[1]].Shape
			return slices.Equal(x, y) && elementwiseSame(a.F, out.Data, in[0].Data, in[1].Data)
		}
		return false
	}
}

// dotVectors is a graph.DotAttr of one row.
func dotVectors(body *graph.Graph, n *graph.Node, x, y, out []float32) bool {
	xs, ys := body.Nodes[n.In[0]].Shape, body.Nodes[n.In[1]].Shape
	d := xs[len(xs)-1]
	rows := ys[len(ys)-2]
	if d == 0 || rows == 0 {
		return false
	}
	shared := len(ys) == 2 && len(xs) != 1
	for v := range len(x) / d {
		m := y
		if !shared {
			m = y[v*rows*d:][:rows*d]
		}
		for i := range rows {
			out[v*rows+i] = vec.Dot(x[v*d:(v+1)*d], m[i*d:(i+1)*d])
		}
	}
	return true
}

// elementwiseSame computes a function of two arrays of the same shape.
func elementwiseSame(f string, dst, x, y []float32) bool {
	switch f {
	case "add":
		vec.Add(dst, x, y)
	case "mul":
		vec.Mul(dst, x, y)
	case "sub":
		for i, v := range x {
			dst[i] = v - y[i]
		}
	default:
		return false
	}
	return true
}
