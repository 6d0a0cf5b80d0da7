package program

import (
	"errors"
	"fmt"
	"math"

	"github.com/inferflow/inferflow/internal/graph"
)

// ErrConstant marks a program with a step that would misread, or could not make,
// a value that is the same for all tokens.
var ErrConstant = errors.New("a value that is the same for all tokens is used where it cannot be")

// VisitRows calls f for each buffer that the step reads a row of the batch at a
// time, so that it must not be a constant. Every device may take the others that
// Visit lists to be one. Buffers of steps unknown here are all by row.
func (s *Step) VisitRows(f func(b *Buf)) {
	read := func(bs ...*Buf) {
		for _, b := range bs {
			if *b != None {
				f(b)
			}
		}
	}
	switch x := s.Body.(type) {
	case *Attention:
		read(&x.Q, &x.K, &x.V, &x.Allow)
	case *Stored:
		read(&x.Q)
	case *Put, *Index, *Heads, *Join, *Elementwise, *Conv1D, *Recurrent, *OpStep:
	default:
		s.Visit(func(b *Buf, write bool) {
			if !write {
				f(b)
			}
		})
	}
}

// visitConstants calls f for each buffer that the step reads when it is loaded,
// so that it must be a constant.
func (s *Step) visitConstants(f func(b Buf)) {
	switch x := s.Body.(type) {
	case *Stored:
		f(x.K)
		f(x.V)
	case *Conv1D:
		if x.Kernel != None {
			f(x.Kernel)
		}
	case *Heads:
		for i := range x.Parts {
			if m := x.Parts[i].M; m != None {
				f(m)
			}
		}
	}
}

// Spread puts a step before each step that reads a constant by row, which gives
// each row a copy. Buffers must not have been assigned yet.
func Spread(p *Program) {
	if !spreads(p) {
		return
	}
	var steps []Step
	for i := range p.Steps {
		s := &p.Steps[i]
		done := map[Buf]Buf{}
		s.VisitRows(func(b *Buf) {
			if !p.Buffers[*b].Const {
				return
			}
			to, ok := done[*b]
			if !ok {
				to = Buf(len(p.Buffers))
				p.Buffers = append(p.Buffers, s.rowsLike(p, *b))
				steps = append(steps, spreadStep(p, s, *b, to))
				done[*b] = to
			}
			*b = to
		})
		steps = append(steps, *s)
	}
	p.Steps = steps
}

// spreads says whether some step reads a constant by row.
func spreads(p *Program) (found bool) {
	look := func(b *Buf) { found = found || p.Buffers[*b].Const }
	for i := range p.Steps {
		p.Steps[i].VisitRows(look)
	}
	return found
}

// rowsLike is a buffer for b in the rows that the step reads.
func (s *Step) rowsLike(p *Program, b Buf) Buffer {
	f := Buffer{Width: p.Buffers[b].Width, Ids: p.Buffers[b].Ids, Memory: s.Rows == graph.RowsMemory}
	if s.Kind != KindRows && s.Kind != KindPool { // both read all rows
		s.Visit(func(b *Buf, write bool) { f.Out = f.Out || write && p.Buffers[*b].Out })
	}
	return f
}

// spreadStep writes the constant from to every row of to, for the step s.
func spreadStep(p *Program, s *Step, from, to Buf) Step {
	n := p.Buffers[from].Width
	return Step{Kind: KindElementwise, Layer: s.Layer, Rows: s.Rows, Body: &Elementwise{
		Code: []Instr{{Op: "load", Buf: from, Div: 1, Mod: n}}, Width: n, Out: to}}
}

// ConstantBytes is the memory that what is the same for all tokens takes on a
// device, in float32: each value, the packed copies of those that steps read when
// they are loaded, and the largest matrix that is packed to make one.
func ConstantBytes(p *Program) int64 {
	values, matrix := 0.0, 0.0 // sums of widths may overflow
	for _, b := range p.Buffers {
		if b.Const {
			values += float64(b.Width)
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		s.visitConstants(func(b Buf) { values += float64(p.Buffers[b].Width) })
		x, ok := s.Body.(*OpStep)
		if !ok || s.Rows != graph.RowsConst {
			continue
		}
		if a, ok := p.Graph.Nodes[x.Node].Attr.(*graph.LinearAttr); ok {
			matrix = max(matrix, float64(a.W.Rows())*float64(a.W.Cols()))
		}
	}
	return int64(min(4*(values+matrix), math.MaxInt64/2))
}

// CheckConstants makes sure that constants are made once, by Op steps of
// constants, and read only by what takes them. It is what a device may rely on.
func CheckConstants(p *Program) error {
	made := map[Buf]bool{}
	// What the functions share, of the step at hand: there are thousands of steps.
	var s *Step
	bad, constant := None, true // constant: all that it reads
	fail := func(b Buf, is bool) {
		if is && bad == None {
			bad = b
		}
	}
	byRow := func(b *Buf) { fail(*b, p.Buffers[*b].Const) }
	atLoad := func(b Buf) { fail(b, !p.Buffers[b].Const) }
	each := func(b *Buf, write bool) {
		if !write {
			constant = constant && p.Buffers[*b].Const
			fail(*b, p.Buffers[*b].Const && !made[*b])
		} else if p.Buffers[*b].Const {
			fail(*b, s.Kind != KindOp || !constant || s.Rows != graph.RowsConst)
			made[*b] = true
		}
	}
	for i := range p.Steps {
		s, constant = &p.Steps[i], true
		s.VisitRows(byRow)
		s.visitConstants(atLoad)
		s.Visit(each)
		if bad != None {
			return fmt.Errorf("program: step %d (%s, layer %d), value %d of %d numbers: %w", i, s.Kind, s.Layer, bad, p.Buffers[bad].Width, ErrConstant)
		}
	}
	if p.Logits != None && p.Buffers[p.Logits].Const {
		return fmt.Errorf("program: the output, value %d: %w", p.Logits, ErrConstant)
	}
	return nil
}
