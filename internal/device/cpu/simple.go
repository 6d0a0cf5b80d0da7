package cpu

import (
	"fmt"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/internal/weight"
)

// byRows runs f for all of n rows, split over the team.
func (s *Stage) byRows(w *worker, n int, f rowFunc) {
	c := s.counter(w)
	chunk := max(1, n/(4*s.team.Size()))
	for from, to, ok := claim(c, n, chunk); ok; from, to, ok = claim(c, n, chunk) {
		for r := from; r < to; r++ {
			f.row(s, w, r)
		}
	}
}

type rowFunc interface {
	row(s *Stage, w *worker, r int)
}

// embed reads rows of the table in the file's own type.
type embed struct {
	step   *program.Embed
	table  *weight.Rows
	lead   *weight.Rows // of the ids behind the table's; nil: there are none
	places *places      // positions by count
}

func (l *loader) embed(x *program.Embed) (executor, error) {
	t, err := weight.Resolve(l.src, x.Table)
	l.counters++
	e := &embed{step: x, table: t}
	if err == nil && x.Lead != nil {
		e.lead, err = weight.Resolve(l.src, x.Lead)
	}
	if x.At != nil && x.At.Count {
		e.places = l.s.placesOf(x.At.Pad)
	}
	return e, err
}

func (e *embed) run(s *Stage, w *worker) { s.byRows(w, s.rows, e) }

func (e *embed) row(s *Stage, w *worker, r int) {
	id, what := e.index(s, r)
	if e.step.Guard > 0 && id >= e.step.Guard {
		id = 0
	}
	table := e.table
	if e.lead != nil && id >= table.Shape.Rows() {
		table, id = e.lead, id-table.Shape.Rows()
	}
	if id < 0 || id >= table.Shape.Rows() {
		s.fail(fmt.Errorf("cpu: %s %d is outside the table of %d rows", what, id, table.Shape.Rows()))
		return
	}
	out, n := s.buf(e.step.Out)
	y := out[r*n : (r+1)*n]
	if err := table.Floats(y, id); err != nil {
		s.fail(err)
	}
	if e.step.Scale != 1 {
		vec.Scale(y, y, float32(e.step.Scale))
	}
}

// index is the row of the table that row r of the batch reads, and what it is.
func (e *embed) index(s *Stage, r int) (id int, what string) {
	switch at := e.step.At; {
	case e.step.Types && len(s.b.Types) == 0:
		return 0, "token type"
	case e.step.Types:
		return int(s.b.Types[r]), "token type"
	case at == nil:
		return int(s.b.Tokens[r]), "token id"
	case at.Count:
		return int(e.places.at[r]) + at.Offset, "position"
	default:
		return int(s.b.Pos[r]) + at.Offset, "position"
	}
}

// places is the batch's positions by count for one pad token.
type places struct {
	pad int32
	at  []int32
}

// placesOf finds or makes the column of a pad token.
func (s *Stage) placesOf(pad int) *places {
	for _, p := range s.places {
		if p.pad == int32(pad) {
			return p
		}
	}
	s.places = append(s.places, &places{int32(pad), make([]int32, s.o.Limits.Capacity())})
	return s.places[len(s.places)-1]
}

// normExec runs a program.Norm.
type normExec struct {
	step  *program.Norm
	n     *norm
	scale float32
}

func (l *loader) norm(x *program.Norm) (executor, error) {
	n, err := l.makeNorm(x.Norm)
	e := &normExec{step: x, n: n, scale: float32(x.Scale)}
	if x.Scale == 0 {
		e.scale = 1
	}
	l.counters++
	l.maxK = max(l.maxK, l.s.p.Buffers[x.Out].Width)
	return e, err
}

func (e *normExec) run(s *Stage, w *worker) { s.byRows(w, s.rowsOf(e.step.Out), e) }

func (e *normExec) row(s *Stage, w *worker, r int) {
	x, n := s.buf(e.step.In)
	out, _ := s.buf(e.step.Out)
	x, part := x[r*n:(r+1)*n], e.step.Part
	if part == 0 {
		part = n
	}
	y := out[r*n : (r+1)*n]
	finished := e.scale == 1 && e.step.Residual == program.None
	if !finished {
		y = w.norm[:n]
	}
	for at := 0; at < n; at += part {
		e.n.part(y[at:at+part], x[at:at+part], at)
	}
	if finished {
		return
	}
	if e.scale != 1 {
		vec.Scale(y, y, e.scale)
	}
	if e.step.Residual == program.None {
		copy(out[r*n:(r+1)*n], y)
		return
	}
	vec.Add(out[r*n:(r+1)*n], s.bufs[e.step.Residual][r*n:(r+1)*n], y)
}

// rowsExec keeps the wanted rows.
type rowsExec struct{ step *program.Rows }

func (e *rowsExec) run(s *Stage, w *worker) { s.byRows(w, s.outs, e) }

func (e *rowsExec) row(s *Stage, w *worker, r int) {
	x, n := s.buf(e.step.In)
	out, _ := s.buf(e.step.Out)
	from := int(s.b.Out[r])
	copy(out[r*n:(r+1)*n], x[from*n:(from+1)*n])
}

// opExec runs one node of the graph with its reference, on one thread.
type opExec struct {
	step *program.OpStep
	node *graph.Node
	done bool         // a constant was computed
	w    *weight.Rows // of a product of a constant
	bias []float32
}

func (e *opExec) run(s *Stage, w *worker) {
	if w.id != 0 || e.done {
		return
	}
	if e.w != nil {
		if err := e.product(s, w); err != nil {
			s.fail(fmt.Errorf("cpu: %s (line %s): %w", graph.Written(e.node.Op, e.node.Attr), e.node.Line, err))
		}
		e.done = true
		return
	}
	in := make([]*ref.Value, len(e.step.In))
	for i, b := range e.step.In {
		in[i] = s.value(b)
	}
	b := s.b
	if s.p.Buffers[e.step.Out].Out {
		b = wanted(s.b)
	}
	v, err := s.mach.Eval(e.node, in, b)
	if err != nil {
		s.fail(fmt.Errorf("cpu: %s (line %s): %w", graph.Written(e.node.Op, e.node.Attr), e.node.Line, err))
		return
	}
	out, _ := s.buf(e.step.Out)
	e.done = s.p.Buffers[e.step.Out].Const
	if v.Idx != nil {
		putRoute(out, v)
		return
	}
	copy(out, v.Data)
}

// value is what a buffer holds, as the reference takes it.
func (s *Stage) value(b program.Buf) *ref.Value {
	data, width := s.buf(b)
	rows, k := s.rowsOf(b), s.p.Buffers[b].Ids
	if k == 0 {
		return &ref.Value{Rows: rows, Width: width, Data: data[:rows*width]}
	}
	v := &ref.Value{Rows: rows, Width: width - k}
	for r := range rows {
		row := data[r*width:][:width]
		v.Data = append(v.Data, row[:width-k]...)
		for _, id := range row[width-k:] {
			v.Idx = append(v.Idx, int32(id))
		}
	}
	return v
}

// putRoute writes each row's weights and its ids behind them.
func putRoute(out []float32, v *ref.Value) {
	for r := range v.Rows {
		row := out[2*r*v.Width:][:2*v.Width]
		copy(row, v.Row(r))
		for j, id := range v.Idx[r*v.Width:][:v.Width] {
			row[v.Width+j] = float32(id)
		}
	}
}

// wanted is the batch of the wanted rows alone, for operations local to a row.
func wanted(b *batch.Batch) *batch.Batch {
	o := &batch.Batch{Stop: b.Stop}
	for _, r := range b.Out {
		o.Tokens, o.Pos = append(o.Tokens, b.Tokens[r]), append(o.Pos, b.Pos[r])
	}
	return o
}
