package cpu

import (
	"unsafe"

	"github.com/inferflow/inferflow/internal/kernel/gemm"
	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

// headRows is the number of rows of one unit of a product a head.
const headRows = 32

// heads runs a program.Heads.
type heads struct {
	step  *program.Heads
	parts []headPart
	width int // values of a head
}

type headPart struct {
	*program.HeadPart
	at    int // first value inside a head
	norm  *norm
	scale float32
	kind  gemm.Kind
	m     []*gemm.Matrix // a head each
}

func (l *loader) heads(x *program.Heads) (executor, error) {
	e := &heads{step: x, parts: make([]headPart, len(x.Parts))}
	for i := range x.Parts {
		p := &e.parts[i]
		*p = headPart{HeadPart: &x.Parts[i], at: e.width, scale: float32(x.Parts[i].Scale)}
		e.width += p.Dim
		var err error
		if p.norm, err = l.makeNorm(p.Norm); err != nil {
			return nil, err
		}
		if p.M != program.None {
			p.m, l.headK = make([]*gemm.Matrix, x.Heads), max(l.headK, p.Width)
			continue
		}
		if p.W == nil {
			continue
		}
		if p.kind, err = l.kindOf(p.W); err != nil {
			return nil, err
		}
		p.m = make([]*gemm.Matrix, x.Heads)
		for h := range p.m {
			if err := l.submatrix(p.W, h*p.Dim, p.Dim, &p.m[h]); err != nil {
				return nil, err
			}
		}
		l.headK = max(l.headK, p.Width)
	}
	l.counters++
	return e, nil
}

// packConstants makes the matrices of parts that read constant values, once
// these are computed.
func (e *heads) packConstants(s *Stage) error {
	for i := range e.parts {
		p := &e.parts[i]
		if p.M == program.None {
			continue
		}
		data, width := s.buf(p.M)
		for h := range p.m {
			if h > 0 && width == p.Dim*p.Width { // one for all heads
				p.m[h] = p.m[0]
				continue
			}
			part := data[h*p.Dim*p.Width:]
			m, err := packFloats(p.Dim, p.Width, func(dst []float32, i int) error {
				copy(dst, part[i*p.Width:])
				return nil
			})
			if err != nil {
				return err
			}
			p.m[h] = m
		}
		p.kind = gemm.KindOf(quant.F32)
	}
	return nil
}

// lineAligned is n bytes at the beginning of a line of the processor's cache.
func lineAligned(n int) []byte {
	b := make([]byte, n+63)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 63
	return b[skip : skip+n : skip+n]
}

// run claims units: of a part with matrices a head for some rows, of the
// others all heads for some rows.
func (e *heads) run(s *Stage, w *worker) {
	rows := s.rowsOf(e.step.Out)
	blocks := (rows + headRows - 1) / headRows
	total := 0
	for i := range e.parts {
		total += e.parts[i].units(e.step.Heads, blocks)
	}
	c := s.counter(w)
	for u, end, ok := claim(c, total, 1); ok; u, end, ok = claim(c, total, 1) {
		for ; u < end; u++ {
			e.unit(s, w, u, blocks, rows)
			if s.stopped(w) {
				return
			}
		}
	}
}

func (p *headPart) units(heads, blocks int) int {
	if p.m == nil {
		return blocks
	}
	return heads * blocks
}

func (e *heads) unit(s *Stage, w *worker, u, blocks, rows int) {
	for i := range e.parts {
		p := &e.parts[i]
		n := p.units(e.step.Heads, blocks)
		if u >= n {
			u -= n
			continue
		}
		from := u % blocks * headRows
		to := min(from+headRows, rows)
		if p.m != nil {
			e.product(s, w, p, u/blocks, from, to)
			return
		}
		for h := range e.step.Heads {
			e.copy(s, p, h, from, to)
		}
		return
	}
}

// input is the row r of what a part reads, from head h on.
func (p *headPart) input(s *Stage, h, r int) []float32 {
	x, width := s.buf(p.In)
	if s.p.Buffers[p.In].Const {
		r = 0
	}
	return x[r*width+p.From+h*p.Stride:]
}

// output is where part p of head h of row r belongs.
func (e *heads) output(s *Stage, p *headPart, h, r int) []float32 {
	out, width := s.buf(e.step.Out)
	at := r*width + h*e.width + p.at
	return out[at : at+p.Dim]
}

func (e *heads) copy(s *Stage, p *headPart, h, from, to int) {
	for r := from; r < to; r++ {
		y := e.output(s, p, h, r)
		copy(y, p.input(s, h, r))
		p.finish(s, y, h, r)
	}
}

// product multiplies rows [from, to) of head h by its matrix.
func (e *heads) product(s *Stage, w *worker, p *headPart, h, from, to int) {
	_, width := s.buf(p.In)
	if s.p.Buffers[p.In].Const {
		width = 0
	}
	n := to - from
	acts := w.heads[p.kind]
	acts.Prepare(p.kind, p.input(s, h, from), width, n, p.Width, 0, n)
	m := p.m[h]
	for a := 0; a < m.Panels(); a += tileCols / 16 {
		b := min(a+tileCols/16, m.Panels())
		col, cols, stride := a*16, min(b*16, p.Dim)-a*16, (b-a)*16
		m.MulTile(w.tile, stride, acts, 0, n, a, b, w.mul)
		for r := range n {
			copy(e.output(s, p, h, from+r)[col:col+cols], w.tile[r*stride:])
		}
	}
	for r := from; r < to; r++ {
		p.finish(s, e.output(s, p, h, r), h, r)
	}
}

// finish normalises, scales and rotates the values of head h of row r.
func (p *headPart) finish(s *Stage, y []float32, h, r int) {
	if p.norm != nil {
		p.norm.part(y, y, h*p.Dim)
	}
	if p.scale != 0 && p.scale != 1 {
		vec.Scale(y, y, p.scale)
	}
	if p.Rope != nil {
		s.ropes[p.Rope.Table].turn(p.Rope, y, r)
	}
}
