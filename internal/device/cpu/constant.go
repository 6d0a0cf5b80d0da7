package cpu

import (
	"fmt"
	"unsafe"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/gemm"
	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

// constants computes once what is the same for all tokens, whatever the batch,
// and takes its steps out of the walk. Their buffers are shared with nothing else.
func (s *Stage) constants() error {
	fixed := map[program.Buf]bool{}
	for i := range s.exec {
		e, ok := s.exec[i].(*opExec)
		if !ok || !s.p.Buffers[e.step.Out].Const || !all(e.step.In, fixed) {
			continue
		}
		s.b = &batch.Batch{}
		e.run(s, s.workers[0])
		if f := s.failed.Swap(nil); f != nil {
			return *f
		}
		s.exec[i] = nil
		fixed[e.step.Out] = true
	}
	s.b = nil
	for i := range s.exec {
		switch e := s.exec[i].(type) {
		case *heads:
			if err := e.packConstants(s); err != nil {
				return err
			}
		case *stored:
			e.pack(s)
		case *conv:
			if e.step.Kernel != program.None {
				w, _ := s.buf(e.step.Kernel)
				e.pack(w)
			}
		}
	}
	return nil
}

// all says whether every buffer is in a set.
func all(bs []program.Buf, set map[program.Buf]bool) bool {
	for _, b := range bs {
		if !set[b] {
			return false
		}
	}
	return true
}

// op lowers a node that runs as it stands. A product of a constant value is
// computed with the packed kernels: the reference would take seconds for the
// projected positions of a deep model.
func (l *loader) op(x *program.OpStep) (executor, error) {
	e := &opExec{step: x, node: l.s.p.Graph.Nodes[x.Node]}
	if a, ok := e.node.Attr.(*graph.LoopAttr); ok {
		return l.loop(x, e.node, a)
	}
	a, ok := e.node.Attr.(*graph.LinearAttr)
	if !ok || !l.s.p.Buffers[x.Out].Const {
		return e, nil
	}
	var err error
	if e.w, err = l.resolve(a.W); err != nil {
		return nil, err
	}
	l.headK = max(l.headK, e.w.Shape.Cols())
	e.bias, err = l.vector(a.B)
	return e, err
}

// product multiplies the vectors of a constant by the matrix, which is packed
// for this once.
func (e *opExec) product(s *Stage, w *worker) error {
	n, k := e.w.Shape.Rows(), e.w.Shape.Cols()
	m, err := packFloats(n, k, func(dst []float32, i int) error { return e.w.Floats(dst, i) })
	if err != nil {
		return err
	}
	x, width := s.buf(e.step.In[0])
	out, _ := s.buf(e.step.Out)
	kind := gemm.KindOf(quant.F32)
	acts := w.heads[kind]
	for from := 0; from < width/k; from += headRows {
		rows := min(headRows, width/k-from)
		acts.Prepare(kind, x[from*k:], k, rows, k, 0, rows)
		for a := 0; a < m.Panels(); a += tileCols / 16 {
			b := min(a+tileCols/16, m.Panels())
			col, cols, stride := a*16, min(b*16, n)-a*16, (b-a)*16
			m.MulTile(w.tile, stride, acts, 0, rows, a, b, w.mul)
			for r := range rows {
				y := out[(from+r)*n+col:][:cols]
				copy(y, w.tile[r*stride:])
				if e.bias != nil {
					vec.Add(y, y, e.bias[col:col+cols])
				}
			}
		}
	}
	return nil
}

// packFloats packs a matrix [n, k] whose rows are read one by one.
func packFloats(n, k int, read func(dst []float32, i int) error) (*gemm.Matrix, error) {
	size, err := gemm.PackedBytes(quant.F32, n, k)
	if err != nil {
		return nil, err
	}
	buf, bad := make([]float32, k), error(nil)
	m, err := gemm.Pack(lineAligned(size), quant.F32, n, k, func(i int) []byte {
		if err := read(buf, i); err != nil {
			bad = fmt.Errorf("row %d: %w", i, err)
		}
		return unsafe.Slice((*byte)(unsafe.Pointer(&buf[0])), 4*k)
	})
	if bad != nil {
		return nil, bad
	}
	return m, err
}
