package cpu

import (
	"math"

	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
)

// pool runs a program.Pool: rows of a sequence are added in their order, so a
// result does not depend on the company.
type pool struct {
	step *program.Pool
	out  bool // rows are the wanted ones
}

func (l *loader) pool(x *program.Pool) (executor, error) {
	l.counters++
	return &pool{x, l.s.p.Buffers[x.Out].Out}, nil
}

func (e *pool) run(s *Stage, w *worker) { s.byRows(w, s.rowsOf(e.step.Out), e) }

func (e *pool) row(s *Stage, w *worker, r int) {
	at := int32(r)
	if e.out {
		at = s.b.Out[r]
	}
	x, n := s.buf(e.step.In)
	out, _ := s.buf(e.step.Out)
	y := out[r*n : (r+1)*n]
	q := &s.b.Seqs[s.seqOf(at)]
	from, rows := int(q.Row+q.Skip), int(q.N-q.Skip)
	switch e.step.How {
	case "cls":
		from, rows = int(q.Row), 1
	case "last":
		from, rows = from+rows-1, 1
	}
	copy(y, x[from*n:(from+1)*n])
	for t := 1; t < rows; t++ {
		e.add(y, x[(from+t)*n:(from+t+1)*n], t)
	}
	switch e.step.How {
	case "mean":
		vec.Scale(y, y, 1/float32(rows))
	case "mean_sqrt":
		vec.Scale(y, y, float32(1/math.Sqrt(float64(rows))))
	case "weighted":
		vec.Scale(y, y, float32(2/(float64(rows)*float64(rows+1))))
	}
}

// reverse runs a program.Reverse.
type reverse struct{ step *program.Reverse }

func (e *reverse) run(s *Stage, w *worker) { s.byRows(w, s.rows, e) }

func (e *reverse) row(s *Stage, _ *worker, r int) {
	q := &s.b.Seqs[s.seqOf(int32(r))]
	copy(s.rowOf(e.step.Out, r), s.rowOf(e.step.In, int(2*q.Row+q.N)-1-r))
}

// add takes row t of a sequence into what was pooled before.
func (e *pool) add(y, x []float32, t int) {
	switch e.step.How {
	case "max":
		for i, v := range x {
			y[i] = max(y[i], v)
		}
	case "weighted":
		for i, v := range x {
			y[i] += float32(t+1) * v
		}
	default:
		vec.Add(y, y, x)
	}
}

// seqOf finds the sequence of a row: they lie in order.
func (s *Stage) seqOf(row int32) int {
	lo, hi := 0, len(s.b.Seqs)-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if s.b.Seqs[mid].Row <= row {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}
