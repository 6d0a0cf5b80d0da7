package cpu

import (
	"fmt"

	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
)

const (
	tileFloats = 512 // values of one register
	maxRegs    = 32
)

// elementwise runs a chain of simple operations over tiles of each row.
type elementwise struct {
	step *program.Elementwise
	code []operation
}

// operation is one instruction with its kernel.
type operation struct {
	program.Instr
	unary  func(dst, x []float32)
	binary func(dst, x, y []float32)
}

func (l *loader) elementwise(x *program.Elementwise) (executor, error) {
	e := &elementwise{step: x}
	if len(x.Code) > maxRegs {
		return nil, fmt.Errorf("chain of %d operations; at most %d", len(x.Code), maxRegs)
	}
	for _, in := range x.Code {
		op := operation{Instr: in}
		var err error
		switch in.Args {
		case 1:
			op.unary, err = unaryKernel(&graph.UnaryAttr{F: in.Op, A: in.P, B: in.Q})
		case 2:
			op.binary, err = binaryKernel(in.Op)
		}
		if err != nil {
			return nil, err
		}
		e.code = append(e.code, op)
	}
	l.counters++
	return e, nil
}

func binaryKernel(name string) (func(dst, x, y []float32), error) {
	switch name {
	case "add":
		return vec.Add, nil
	case "mul":
		return vec.Mul, nil
	}
	f, err := ref.Binary(name)
	if err != nil {
		return nil, err
	}
	return func(dst, x, y []float32) {
		for i := range dst {
			dst[i] = float32(f(float64(x[i]), float64(y[i])))
		}
	}, nil
}

func (e *elementwise) run(s *Stage, w *worker) {
	rows := s.rowsOf(e.step.Out)
	tiles := (e.step.Width + tileFloats - 1) / tileFloats
	c := s.counter(w)
	chunk := max(1, rows*tiles/(4*s.team.Size()))
	for from, to, ok := claim(c, rows*tiles, chunk); ok; from, to, ok = claim(c, rows*tiles, chunk) {
		for i := from; i < to; i++ {
			at := i % tiles * tileFloats
			e.tile(s, w, i/tiles, at, min(tileFloats, e.step.Width-at))
		}
	}
}

func (e *elementwise) tile(s *Stage, w *worker, row, at, n int) {
	reg := func(i int) []float32 { return w.regs[i*tileFloats : i*tileFloats+n] }
	for i := range e.code {
		op := &e.code[i]
		dst := reg(op.Dst)
		switch {
		case op.unary != nil:
			op.unary(dst, reg(op.A))
		case op.binary != nil:
			op.binary(dst, reg(op.A), reg(op.B))
		case op.Op == "load":
			e.load(s, op, dst, row, at)
		case op.Op == "const":
			for k := range dst {
				dst[k] = float32(op.P)
			}
		default: // where
			a, b, c := reg(op.A), reg(op.B), reg(op.C)
			for k := range dst {
				dst[k] = c[k]
				if a[k] != 0 {
					dst[k] = b[k]
				}
			}
		}
	}
	copy(s.bufs[e.step.Out][row*e.step.Width+at:], reg(e.code[len(e.code)-1].Dst))
}

func (e *elementwise) load(s *Stage, op *operation, dst []float32, row, at int) {
	x, width := s.buf(op.Buf)
	if s.p.Buffers[op.Buf].Const {
		row = 0
	}
	x = x[row*width+op.At : row*width+op.At+op.Mod]
	for len(dst) > 0 {
		n := 0
		if o := at / op.Div; op.Div == 1 {
			n = copy(dst, x[o%op.Mod:])
		} else {
			n = min(len(dst), (o+1)*op.Div-at)
			fill(dst[:n], x[o%op.Mod])
		}
		dst, at = dst[n:], at+n
	}
}
