package cpu

import (
	"math"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/vec"
)

// one is the key and the query where there are none.
var one = []float32{1}

// channels runs a block of channels from h on: sums with a decay, whose states
// are one number each.
func (e *recurrent) channels(s *Stage, w *worker, q *batch.Seq, h int, from, state []float32) {
	x, n := e.step, len(state)
	out, width := s.buf(x.Out)
	decay := w.rec[:n]
	for r := int(q.Row); r < int(q.Row+q.N); r++ {
		vec.Exp(decay, s.view(x.In[1], r)[h:h+n])
		vec.Mul(state, from, decay)
		vec.Add(state, state, s.view(x.In[0], r)[h:h+n])
		copy(out[r*width+h:r*width+h+n], state)
		from = state
	}
}

// linearStep is what one position does to every row of a head's state: the row
// becomes keep·row (or decay∘row) + take·k·v. Read before that, it counts for
// old, and the token itself for self.
type linearStep struct {
	q, k, decay           []float32 // decay nil: keep for all
	keep, take, old, self float32
	bonus                 bool
	seen                  float64 // the maximum that the output is scaled by
}

// row moves a row on by a value and reads it.
func (l *linearStep) row(row, old []float32, v float32) float32 {
	y := float32(0)
	if l.bonus {
		y = float32(l.old*vec.Dot(old, l.q)) + float32(l.self*v)
	}
	if l.decay != nil {
		vec.Mul(row, old, l.decay)
		old = row
	}
	after := vec.DecayDot(row, old, l.k, l.q, l.keep, l.take*v)
	if l.bonus {
		return y
	}
	return after
}

// linearAttention runs head h of q; states are [Width, Size], with a norm one
// row more, which gathers 1, and the maximum.
func (e *recurrent) linearAttention(s *Stage, w *worker, q *batch.Seq, h int, from, state []float32) {
	x, a := e.step, e.step.Linear
	dk, dv := x.Size, x.Width
	if q.Start == 0 && a.Norm == "sum" {
		state[e.tile-1] = graph.NoMaximum
	}
	out, width := s.buf(x.Out)
	for r := int(q.Row); r < int(q.Row+q.N); r++ {
		l := e.linearStep(s, w, r, h, from, state)
		v, y := s.view(x.In[0], r)[h*dv:(h+1)*dv], out[r*width+h*dv:r*width+(h+1)*dv]
		div := float32(1)
		if a.Norm != "" {
			div = l.row(state[dv*dk:(dv+1)*dk], from[dv*dk:(dv+1)*dk], 1)
			if a.Norm == "max" {
				div = max(float32(math.Abs(float64(div))), float32(math.Exp(-l.seen)))
			}
			div += float32(a.Eps)
		}
		for i := range y {
			y[i] = l.row(state[i*dk:(i+1)*dk], from[i*dk:(i+1)*dk], v[i])
			if a.Norm != "" {
				y[i] /= div
			}
		}
		from = state
	}
}

// linearStep gathers the factors of row r for head h, and moves the maximum on.
func (e *recurrent) linearStep(s *Stage, w *worker, r, h int, from, state []float32) linearStep {
	x, a := e.step, e.step.Linear
	dk, kh := x.Size, h/(x.Heads/x.Groups)
	if a.Tile {
		kh = h % x.Groups
	}
	l := linearStep{q: one, k: one, keep: 1, take: 1, old: 1, bonus: a.Bonus}
	_, gi, qi, ki, ii, ui := a.Inputs()
	if a.Keys {
		l.q, l.k = s.view(x.In[qi], r)[kh*dk:(kh+1)*dk], s.view(x.In[ki], r)[kh*dk:(kh+1)*dk]
	}
	g := s.view(x.In[gi], r)
	if x.PerChannel {
		l.decay = w.rec[:dk]
		vec.Exp(l.decay, g[h*dk:(h+1)*dk])
	}
	switch {
	case a.Gate:
		before, i := float64(from[e.tile-1]), float64(s.view(x.In[ii], r)[h])
		after := max(before+float64(g[h]), i)
		l.keep, l.take, l.seen = float32(math.Exp(before+float64(g[h])-after)), float32(math.Exp(i-after)), after
		if a.Bonus {
			u := float64(s.view(x.In[ui], r)[h])
			l.seen = max(before, i+u)
			l.old, l.self = float32(math.Exp(before-l.seen)), float32(math.Exp(i+u-l.seen))*vec.Dot(l.q, l.k)
		}
		state[e.tile-1] = float32(after)
	case a.Bonus:
		u, t := s.view(x.In[ui], r), w.rec[dk:2*dk]
		if x.BonusPerChannel {
			vec.Mul(t, u[h*dk:(h+1)*dk], l.k)
		} else {
			vec.Scale(t, l.k, u[h])
		}
		l.self = vec.Dot(l.q, t)
	}
	if !a.Gate && !x.PerChannel {
		l.keep = float32(math.Exp(float64(g[h])))
	}
	return l
}
