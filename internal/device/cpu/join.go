package cpu

import (
	"math"
	"unsafe"

	"github.com/inferflow/inferflow/internal/kernel/attn"
	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
)

// join runs a program.Join. A row depends on its own inputs, taken in their order.
type join struct{ step *program.Join }

func (l *loader) join(x *program.Join) (executor, error) {
	l.counters++
	return &join{x}, nil
}

func (e *join) run(s *Stage, w *worker) { s.byRows(w, s.rowsOf(e.step.Out), e) }

func (e *join) row(s *Stage, _ *worker, r int) {
	out, n := s.buf(e.step.Out)
	width := n / e.step.Heads
	for h := range e.step.Heads {
		y := out[r*n+h*width:][:width]
		clear(y)
		top := float32(math.Inf(-1))
		for _, b := range e.step.In {
			top = max(top, headPartOf(s, b, e.step.Heads, r, h)[width])
		}
		sum := float32(0)
		for _, b := range e.step.In {
			x := headPartOf(s, b, e.step.Heads, r, h)
			p := float32(math.Exp(float64(x[width] - top)))
			sum += p
			vec.AXPY(y, p, x[:width])
		}
		vec.Scale(y, y, 1/sum)
	}
}

// stored runs a program.Stored: the keys and values lie in tiles of their own,
// which are filled once their constants are computed.
type stored struct {
	step         *program.Stored
	dk, dv       int
	keys, values []byte
	tileK, tileV [][]int // by key head
}

func (l *loader) stored(x *program.Stored) (executor, error) {
	e := &stored{step: x}
	e.dk = l.s.p.Buffers[x.K].Width / (x.Keys * x.KVHeads)
	e.dv = l.s.p.Buffers[x.V].Width / (x.Keys * x.KVHeads)
	l.counters++
	return e, nil
}

// pack fills the tiles.
func (e *stored) pack(s *Stage) {
	tiles, heads := (e.step.Keys+attn.Tile-1)/attn.Tile, e.step.KVHeads
	kb, vb := attn.KeyTileBytes(attn.F32, e.dk), attn.ValueTileBytes(attn.F32, e.dv)
	e.keys, e.values = floatBytes(heads*tiles*kb/4), floatBytes(heads*tiles*vb/4)
	k, _ := s.buf(e.step.K)
	v, _ := s.buf(e.step.V)
	for g := range heads {
		var tk, tv []int
		for t := range tiles {
			tk, tv = append(tk, (g*tiles+t)*kb), append(tv, (g*tiles+t)*vb)
		}
		for j := range e.step.Keys {
			at, slot := j/attn.Tile, j%attn.Tile
			attn.PutKey(e.keys[tk[at]:][:kb], attn.F32, e.dk, slot, k[(j*heads+g)*e.dk:][:e.dk])
			attn.PutValue(e.values[tv[at]:][:vb], attn.F32, e.dv, slot, v[(j*heads+g)*e.dv:][:e.dv])
		}
		e.tileK, e.tileV = append(e.tileK, tk), append(e.tileV, tv)
	}
}

// floatBytes is the memory of n float32.
func floatBytes(n int) []byte {
	f := make([]float32, n)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*n)
}

func (e *stored) run(s *Stage, w *worker) { s.byRows(w, s.rowsOf(e.step.Out), e) }

func (e *stored) row(s *Stage, w *worker, r int) {
	a, x := w.att, e.step
	call := &a.call
	q, qw := s.buf(x.Q)
	out, ow := s.buf(x.Out)
	q, out = q[r*qw:][:qw], out[r*ow:][:ow]
	head, group := ow/x.Heads, x.Heads/x.KVHeads
	*call = attn.Call{TileK: call.TileK, TileV: call.TileV, Lo: call.Lo, Hi: call.Hi,
		DK: e.dk, DV: e.dv, Keys: e.keys, Values: e.values, Open: x.Attr.Open,
		Scale: float32(x.Attr.Scale), Softcap: float32(x.Attr.Softcap), QStride: e.dk, OutStride: head}
	if x.Attr.Tile {
		call.QStride, call.OutStride = x.KVHeads*e.dk, x.KVHeads*head
	}
	ownK, ownV := call.TileK, call.TileV
	for g := range x.KVHeads {
		call.TileK, call.TileV = e.tileK[g], e.tileV[g]
		at := g * group
		if x.Attr.Tile {
			at = g
		}
		for j := 0; j < group; j += itemRows {
			call.Rows = min(itemRows, group-j)
			first := at + j*call.QStride/e.dk
			call.Q, call.Out = q[first*e.dk:], out[first*head:]
			for i := range call.Rows {
				call.Lo[i], call.Hi[i] = 0, int32(x.Keys)
			}
			call.Run(a.scratch)
		}
	}
	call.TileK, call.TileV = ownK, ownV
}
