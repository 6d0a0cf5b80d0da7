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
	l.recurrence = max(l.recurrence, 3*x.Size+2*x.Width)
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
			} else {
				copy(state, before)
			}
			if x.Scan != nil {
				e.scan(s, q, h, state)
			} else {
				e.delta(s, w, q, h, state)
			}
		}
	}
}

// scan runs head h of q; state is [Width, Size].
func (e *recurrent) scan(s *Stage, q *batch.Seq, h int, state []float32) {
	x := e.step
	p, n, g := x.Width, x.Size, h/(x.Heads/x.Groups)
	out, width := s.buf(x.Out)
	for r := int(q.Row); r < int(q.Row+q.N); r++ {
		in, dt := s.view(x.In[0], r)[h*p:(h+1)*p], s.view(x.In[3], r)[h]
		b, c := s.view(x.In[1], r)[g*n:(g+1)*n], s.view(x.In[2], r)[g*n:(g+1)*n]
		y := out[r*width+h*p : r*width+(h+1)*p]
		vec.Scale(state, state, float32(math.Exp(float64(dt)*float64(e.a[h]))))
		for i := range y {
			row := state[i*n : (i+1)*n]
			vec.AXPY(row, dt*in[i], b)
			y[i] = vec.Dot(row, c)
		}
	}
}

// delta runs head h of q; state is [Size, Width].
func (e *recurrent) delta(s *Stage, w *worker, q *batch.Seq, h int, state []float32) {
	x := e.step
	dk, dv, kh := x.Size, x.Width, h/(x.Heads/x.Groups)
	if x.Delta.Tile {
		kh = h % x.Groups
	}
	qs, ks, keep := w.rec[:dk], w.rec[dk:2*dk], w.rec[2*dk:3*dk]
	read, change := w.rec[3*dk:3*dk+dv], w.rec[3*dk+dv:3*dk+2*dv]
	out, width := s.buf(x.Out)
	for r := int(q.Row); r < int(q.Row+q.N); r++ {
		unit(qs, s.view(x.In[0], r)[kh*dk:(kh+1)*dk], x.Unit[0])
		unit(ks, s.view(x.In[1], r)[kh*dk:(kh+1)*dk], x.Unit[1])
		v, beta := s.view(x.In[2], r)[h*dv:(h+1)*dv], s.view(x.In[4], r)[h]
		y := out[r*width+h*dv : r*width+(h+1)*dv]
		if g := s.view(x.In[3], r); x.PerChannel {
			vec.Exp(keep, g[h*dk:(h+1)*dk])
		} else {
			fill(keep, float32(math.Exp(float64(g[h]))))
		}
		clear(read)
		for i, k := range ks {
			row := state[i*dv : (i+1)*dv]
			vec.Scale(row, row, keep[i])
			vec.AXPY(read, k, row)
		}
		vec.Sub(change, v, read)
		vec.Scale(change, change, beta)
		clear(y)
		for i, k := range ks {
			row := state[i*dv : (i+1)*dv]
			vec.AXPY(row, k, change)
			vec.AXPY(y, qs[i], row)
		}
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
