package cpu

import (
	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
)

// conv runs a program.Conv1D: rows are independent, for the inputs before the
// batch are kept.
type conv struct {
	step *program.Conv1D
	d, k int
	taps [][]float32 // by tap, the oldest first: [d]; none of a shift
	bias []float32
	act  func(x []float32) // nil: none
	// passes says that the rows are those of a source, of which nothing is kept.
	passes bool
}

func (l *loader) conv(x *program.Conv1D) (executor, error) {
	e := &conv{step: x, d: x.In.Width, k: x.Attr.Past() + 1, passes: l.s.p.Graph.Caches[x.Attr.Cache].Memory}
	w, err := l.vector(x.Attr.W)
	if err != nil {
		return nil, err
	}
	if w != nil {
		e.pack(w)
	}
	if e.bias, err = l.vector(x.Attr.B); err != nil {
		return nil, err
	}
	if x.Act != nil {
		if e.act, err = activation(x.Act); err != nil {
			return nil, err
		}
	}
	if st := &l.s.states; len(st.zeros) < e.d {
		st.zeros = make([]float32, e.d)
	}
	l.counters += 2
	return e, nil
}

// pack lays a kernel [d, k] out by tap.
func (e *conv) pack(w []float32) {
	for j := range e.k {
		tap := make([]float32, e.d)
		for c := range tap {
			tap[c] = w[c*e.k+j]
		}
		e.taps = append(e.taps, tap)
	}
}

// convTile is the number of channels that are computed together.
const convTile = tileFloats

func (e *conv) run(s *Stage, w *worker) {
	tiles := (e.d + convTile - 1) / convTile
	c := s.counter(w)
	chunk := max(1, s.rows*tiles/(4*s.team.Size()))
	for from, to, ok := claim(c, s.rows*tiles, chunk); ok; from, to, ok = claim(c, s.rows*tiles, chunk) {
		for i := from; i < to; i++ {
			at := i % tiles * convTile
			e.tile(s, w, i/tiles, at, min(convTile, e.d-at))
		}
	}
	if e.k == 1 || e.passes {
		return
	}
	c = s.counter(w)
	for i, end, ok := claim(c, len(s.b.Seqs), 1); ok; i, end, ok = claim(c, len(s.b.Seqs), 1) {
		for ; i < end; i++ {
			e.keep(s, &s.b.Seqs[i])
		}
	}
}

// tile computes n channels from channel at on of row r.
func (e *conv) tile(s *Stage, w *worker, r, at, n int) {
	q := &s.b.Seqs[s.states.seq[r]]
	y, t := w.regs[:n], w.regs[tileFloats:tileFloats+n]
	switch {
	case len(e.taps) == 0 && e.step.Attr.Shift < 0:
		clear(y)
		if ahead := r - int(q.Row) - e.step.Attr.Shift; ahead < int(q.N) {
			copy(y, e.input(s, q, ahead)[at:at+n])
		}
	case len(e.taps) == 0:
		copy(y, e.input(s, q, r-int(q.Row)-(e.k-1))[at:at+n])
	case e.bias != nil:
		copy(y, e.bias[at:])
	default:
		clear(y)
	}
	for j, tap := range e.taps {
		vec.Mul(t, tap[at:at+n], e.input(s, q, r-int(q.Row)-(e.k-1)+j)[at:at+n])
		vec.Add(y, y, t)
	}
	if e.act != nil {
		e.act(y)
	}
	out, width := s.buf(e.step.Out)
	copy(out[r*width+at:], y)
}

// input is the input i positions after the first of q's rows, below 0 one that
// was kept.
func (e *conv) input(s *Stage, q *batch.Seq, i int) []float32 {
	if i >= 0 {
		return s.view(e.step.In, int(q.Row)+i)
	}
	if e.passes {
		return s.states.zeros[:e.d]
	}
	before, _ := s.states.pair(e.step.Attr.Cache, q, (e.k-1+i)*e.d, e.d)
	if before == nil {
		return s.states.zeros[:e.d]
	}
	return before
}

// keep stores the last k−1 inputs of q.
func (e *conv) keep(s *Stage, q *batch.Seq) {
	for j := range e.k - 1 {
		_, after := s.states.pair(e.step.Attr.Cache, q, j*e.d, e.d)
		copy(after, e.input(s, q, int(q.N)-(e.k-1)+j))
	}
}

// view is a part of row r of a buffer.
func (s *Stage) view(v program.View, r int) []float32 {
	x, width := s.buf(v.Buf)
	if s.p.Buffers[v.Buf].Const {
		r = 0
	}
	return x[r*width+v.At : r*width+v.At+v.Width]
}
