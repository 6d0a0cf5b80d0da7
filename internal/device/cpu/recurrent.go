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
	step  *program.Recurrent
	tile  int // values of a head's state
	block int // heads that are computed together
	// passes says that the rows are those of a source: a state begins with each, and ends with it.
	passes bool
}

// recurBlock is the number of channels that a sum with a decay computes together.
const recurBlock = 256

// recurGrain is the number of values of states that a worker takes at least.
const recurGrain = 2048

func (l *loader) recurrent(x *program.Recurrent) (executor, error) {
	e := &recurrent{step: x, tile: x.Width * x.Size, block: 1}
	if a := x.Linear; a != nil {
		e.tile = a.HeadState(x.Width, x.Size)
		if !a.Keys && !a.Bonus && a.Norm == "" && x.Width == 1 {
			e.block = recurBlock
		}
	}
	if e.passes = l.s.p.Graph.Caches[x.Cache()].Memory; e.passes {
		l.passing = max(l.passing, e.tile*e.block)
	}
	l.recurrence = max(l.recurrence, 3*x.Size, e.block)
	l.counters++
	return e, nil
}

func (e *recurrent) run(s *Stage, w *worker) {
	x := e.step
	c := s.counter(w)
	blocks := (x.Heads + e.block - 1) / e.block
	items := len(s.b.Seqs) * blocks
	chunk := max(1, min(recurGrain/max(1, e.tile*e.block), items/(2*s.team.Size())))
	for i, end, ok := claim(c, items, chunk); ok; i, end, ok = claim(c, items, chunk) {
		for ; i < end; i++ {
			q, h := &s.b.Seqs[i/blocks], i%blocks*e.block
			n := min(e.block, x.Heads-h)
			before, state := []float32(nil), w.passing
			if e.passes {
				state = state[:n*e.tile]
			} else {
				before, state = s.states.pair(x.Cache(), q, h*e.tile, n*e.tile)
			}
			if before == nil {
				clear(state)
				before = state
			}
			switch {
			case x.Scan != nil:
				e.scan(s, w, q, h, before, state)
			case x.Delta != nil:
				e.delta(s, w, q, h, before, state)
			case e.block > 1:
				e.channels(s, w, q, h, before, state)
			default:
				e.linearAttention(s, w, q, h, before, state)
			}
			if s.stopped(w) {
				return
			}
		}
	}
}

// scan runs head h of q; states are [Width, Size]. The first position reads the
// state from before, the others read what was written.
func (e *recurrent) scan(s *Stage, w *worker, q *batch.Seq, h int, from, state []float32) {
	x := e.step
	p, n, g := x.Width, x.Size, h/(x.Heads/x.Groups)
	out, width := s.buf(x.Out)
	decay := w.rec[:n]
	for r := int(q.Row); r < int(q.Row+q.N); r++ {
		in, dt, rate := s.view(x.In[0], r)[h*p:(h+1)*p], s.view(x.In[3], r)[h], s.view(x.In[4], r)
		b, c := s.view(x.In[1], r)[g*n:(g+1)*n], s.view(x.In[2], r)[g*n:(g+1)*n]
		y := out[r*width+h*p : r*width+(h+1)*p]
		if x.PerChannel {
			vec.Scale(decay, rate[h*n:(h+1)*n], dt)
			vec.Exp(decay, decay)
			for i := range y {
				row := state[i*n : (i+1)*n]
				vec.Mul(row, from[i*n:(i+1)*n], decay)
				y[i] = vec.DecayDot(row, row, b, c, 1, dt*in[i])
			}
		} else {
			keep := float32(math.Exp(float64(dt) * float64(rate[h])))
			for i := range y {
				y[i] = vec.DecayDot(state[i*n:(i+1)*n], from[i*n:(i+1)*n], b, c, keep, dt*in[i])
			}
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
		g := s.view(x.In[3], r)
		y := out[r*width+h*dv : r*width+(h+1)*dv]
		keep := float32(1)
		if x.PerChannel {
			vec.Exp(decay, g[h*dk:(h+1)*dk])
		} else {
			keep = float32(math.Exp(float64(g[h])))
		}
		for j := range max(1, x.Delta.Steps) {
			at := j*x.Groups + kh
			unit(ks, s.view(x.In[1], r)[at*dk:(at+1)*dk], x.Unit[1])
			v := s.view(x.In[2], r)[(j*x.Heads+h)*dv:][:dv]
			if j > 0 {
				keep = 1 // the decay is that of the first step
			}
			fades := x.PerChannel && j == 0
			if x.Delta.General {
				e.general(s, r, at, keep, fades, decay, qs, ks, v, y, from, state)
			} else {
				rule(s.view(x.In[4], r)[j*x.Heads+h], keep, fades, decay, qs, ks, v, y, from, state)
			}
			from = state
		}
	}
}

// rule is one step of the gated delta rule; fades says that each channel has a
// decay of its own.
func rule(beta, keep float32, fades bool, decay, q, k, v, y, from, state []float32) {
	dk := len(k)
	for i := range y {
		old, row := from[i*dk:(i+1)*dk], state[i*dk:(i+1)*dk]
		if fades {
			vec.Mul(row, old, decay)
			old = row
		}
		change := beta * (v[i] - float32(keep*vec.Dot(old, k)))
		y[i] = vec.DecayDot(row, old, k, q, keep, change)
	}
}

// general is one step of the general delta rule, with a and b number at.
func (e *recurrent) general(s *Stage, r, at int, keep float32, fades bool, decay, q, k, v, y, from, state []float32) {
	dk := e.step.Size
	a, b := s.view(e.step.In[4], r)[at*dk:(at+1)*dk], s.view(e.step.In[5], r)[at*dk:(at+1)*dk]
	for i := range y {
		old, row := from[i*dk:(i+1)*dk], state[i*dk:(i+1)*dk]
		read := vec.Dot(old, a)
		if fades {
			vec.Mul(row, old, decay)
		} else {
			vec.Scale(row, old, keep)
		}
		vec.AXPY(row, read, b)
		y[i] = vec.DecayDot(row, row, k, q, 1, v[i])
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
