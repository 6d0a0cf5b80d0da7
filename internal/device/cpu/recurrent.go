package cpu

import (
	"math"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
)

// recurrent runs a program.Recurrent: one head of one sequence at a time, its
// state in the processor's cache, a position after the other. So the bits
// depend neither on how a prompt is cut nor on who else is computed.
type recurrent struct {
	step *program.Recurrent
	a    []float32 // of a scan
	tile int       // values of a head's state
}

func (l *loader) recurrent(x *program.Recurrent) (executor, error) {
	e := &recurrent{step: x, tile: x.Width * x.Size}
	if x.Scan != nil {
		var err error
		if e.a, err = l.vector(x.Scan.A); err != nil {
			return nil, err
		}
	}
	l.recurrence = max(l.recurrence, 3*x.Size)
	l.counters++
	return e, nil
}

func (e *recurrent) run(s *Stage, w *worker) {
	x := e.step
	c := s.counter(w)
	items := len(s.b.Seqs) * x.Heads
	for i, end, ok := claim(c, items, 1); ok; i, end, ok = claim(c, items, 1) {
		for ; i < end; i++ {
			q, h := &s.b.Seqs[i/x.Heads], i%x.Heads
			before, state := s.states.pair(x.Cache(), q, h*e.tile, e.tile)
			if before == nil {
				clear(state)
				before = state
			}
			if x.Scan != nil {
				e.scan(s, q, h, before, state)
			} else {
				e.delta(s, w, q, h, before, state)
			}
		}
	}
}

// scan runs head h of q; states are [Width, Size]. The first position reads the
// state from before, the others read what was written.
func (e *recurrent) scan(s *Stage, q *batch.Seq, h int, from, state []float32) {
	x := e.step
	p, n, g := x.Width, x.Size, h/(x.Heads/x.Groups)
	out, width := s.buf(x.Out)
	for r := int(q.Row); r < int(q.Row+q.N); r++ {
		in, dt := s.view(x.In[0], r)[h*p:(h+1)*p], s.view(x.In[3], r)[h]
		b, c := s.view(x.In[1], r)[g*n:(g+1)*n], s.view(x.In[2], r)[g*n:(g+1)*n]
		y := out[r*width+h*p : r*width+(h+1)*p]
		keep := float32(math.Exp(float64(dt) * float64(e.a[h])))
		for i := range y {
			y[i] = vec.DecayDot(state[i*n:(i+1)*n], from[i*n:(i+1)*n], b, c, keep, dt*in[i])
		}
		from = state
	}
}

// delta runs head h of q; states are [Width, Size], so that a row is what one
// component of the value reads.
func (e *recurrent) delta(s *Stage, w *worker, q *batch.Seq, h int, from, state []float32) {
	x := e.step
	dk, dv, kh := x.Size, x.Width, h/(x.Heads/x.Groups)
	if x.Delta.Tile {
		kh = h % x.Groups
	}
	qs, ks, decay := w.rec[:dk], w.rec[dk:2*dk], w.rec[2*dk:3*dk]
	out, width := s.buf(x.Out)
	for r := int(q.Row); r < int(q.Row+q.N); r++ {
		unit(qs, s.view(x.In[0], r)[kh*dk:(kh+1)*dk], x.Unit[0])
		unit(ks, s.view(x.In[1], r)[kh*dk:(kh+1)*dk], x.Unit[1])
		v, g, beta := s.view(x.In[2], r)[h*dv:(h+1)*dv], s.view(x.In[3], r), s.view(x.In[4], r)[h]
		y := out[r*width+h*dv : r*width+(h+1)*dv]
		keep := float32(1)
		if x.PerChannel {
			vec.Exp(decay, g[h*dk:(h+1)*dk])
		} else {
			keep = float32(math.Exp(float64(g[h])))
		}
		for i := range y {
			old, row := from[i*dk:(i+1)*dk], state[i*dk:(i+1)*dk]
			if x.PerChannel {
				vec.Mul(row, old, decay)
				old = row
			}
			change := beta * (v[i] - float32(keep*vec.Dot(old, ks)))
			y[i] = vec.DecayDot(row, old, ks, qs, keep, change)
		}
		from = state
	}
}

// unit is what happens to a head of q or k before the rule.
func unit(dst, x []float32, u program.Unit) {
	f := float32(1)
	if u.Norm {
		f = float32(1 / math.Sqrt(float64(vec.SumSquares(x))+u.Eps))
	}
	if u.Scale != 0 {
		f *= float32(u.Scale)
	}
	vec.Scale(dst, x, f)
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}
