package cpu

import (
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/attn"
	"github.com/inferflow/inferflow/internal/kernel/gemm"
	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
)

// rope holds the angles of the current batch's rows for one table.
type rope struct {
	table     *graph.RopeTable
	div, long []float32
	freq      []float32 // of a table that does not depend on length
	cos, sin  []float32 // [rows][Dim/2]
}

// angles computes the cosines and sines of the batch, split by rows.
func (s *Stage) angles(w *worker) {
	c := s.counter(w)
	chunk := max(1, s.rows/(4*s.team.Size()))
	for from, to, ok := claim(c, s.rows, chunk); ok; from, to, ok = claim(c, s.rows, chunk) {
		for _, r := range s.ropes {
			r.rows(s, from, to)
		}
	}
}

func (r *rope) rows(s *Stage, from, to int) {
	half := r.table.Dim / 2
	for i := range s.b.Seqs {
		q := &s.b.Seqs[i]
		lo, hi := max(from, int(q.Row)), min(to, int(q.Row+q.N))
		if lo >= hi {
			continue
		}
		freq := r.freq
		if r.table.Kind != "" {
			freq = ref.Frequencies(r.table, int(q.Length), r.div, r.long)
		}
		for t := lo; t < hi; t++ {
			for j, f := range freq {
				r.cos[t*half+j], r.sin[t*half+j] = ref.Angle(s.b.Pos[t], f, r.table.Factor)
			}
		}
	}
}

// turn rotates one head of row t.
func (r *rope) turn(a *graph.RopeAttr, x []float32, t int) {
	half := r.table.Dim / 2
	cos, sin := r.cos[t*half:(t+1)*half], r.sin[t*half:(t+1)*half]
	x = x[a.At : a.At+r.table.Dim]
	if a.Interleaved {
		vec.RopeInterleaved(x, cos, sin)
	} else {
		vec.RopeHalf(x, cos, sin)
	}
}

// head is one of q, k, v.
type head struct {
	*program.Head
	m    *gemm.Matrix
	b    []float32
	norm *norm
	at   int // first value in a row of projections
}

// rows is where the head's projections are written, with its row width: those of
// the query go to their buffer at once.
func (e *qkv) rows(s *Stage, i int) (dst []float32, width int) {
	if i == 0 {
		return s.buf(e.step.OutQ)
	}
	return s.qkv[e.h[i].at:], e.width
}

func (h *head) width() int { return h.Heads * h.Dim }

// qkv runs a program.QKV.
type qkv struct {
	prep
	step  *program.QKV
	h     [3]head
	width int
	first [4]int // first panel of q, k, v; the total
}

func (l *loader) lowerQKV(x *program.QKV) (executor, error) {
	e := &qkv{step: x, h: [3]head{{Head: &x.Q}, {Head: &x.K}, {Head: &x.V}}}
	var err error
	if e.prep, err = l.prep(x.PreNorm, x.Q.W, x.K.W, x.V.W); err != nil {
		return nil, err
	}
	e.view = true
	for i := range e.h {
		h := &e.h[i]
		if i > 0 {
			h.at = e.width
			e.width += h.width()
		}
		if h.b, err = l.vector(h.B); err != nil {
			return nil, err
		}
		if h.norm, err = l.makeNorm(h.Norm); err != nil {
			return nil, err
		}
		if err = l.matrix(h.W, &h.m); err != nil {
			return nil, err
		}
		e.first[i+1] = e.first[i] + (h.width()+15)/16
	}
	l.qkv = max(l.qkv, e.width)
	l.counters += 2
	return e, nil
}

func (e *qkv) run(s *Stage, w *worker) {
	x, width := s.buf(e.step.In)
	acts := e.prep.run(s, w, x, width, s.rows)
	c := s.counter(w)
	chunk := chunkOf(e.first[3], s.team.Size(), s.rows)
	g := gridOf(e.h[0].m, s.rows, e.first[3], chunk)
	for t, _, ok := claim(c, g.size(), 1); ok; t, _, ok = claim(c, g.size(), 1) {
		row, end, from, to := g.tile(t)
		for i := range e.h {
			if lo, hi := max(from, e.first[i]), min(to, e.first[i+1]); lo < hi {
				dst, width := e.rows(s, i)
				e.h[i].product(w, acts, dst, width, row, end, lo-e.first[i], hi-e.first[i])
			}
		}
	}
	s.team.Barrier(w.id)
	c = s.counter(w)
	chunk = max(1, s.rows/(4*s.team.Size()))
	for from, to, ok := claim(c, s.rows, chunk); ok; from, to, ok = claim(c, s.rows, chunk) {
		e.rest(s, from, to)
	}
}

// product writes panels [from, to) of rows [row, end) to dst.
func (h *head) product(w *worker, acts *[2]*gemm.Acts, dst []float32, width, row, end, from, to int) {
	y := w.tile
	col, cols, stride := from*16, min(to*16, h.m.N())-from*16, (to-from)*16
	f := gemm.Finish{Out: dst[row*width+col:], Stride: width}
	if h.b != nil {
		f.Bias = h.b[col:]
	}
	done := h.m.MulFinish(y, &f, acts[gemm.KindOf(h.m.Type())], row, end, from, to, w.mul)
	for r := done; r < end-row; r++ {
		out := dst[(row+r)*width+col:][:cols]
		if h.b != nil {
			vec.Add(out, y[r*stride:r*stride+cols], h.b[col:col+cols])
		} else {
			copy(out, y[r*stride:r*stride+cols])
		}
	}
}

// rest finishes the projections of rows [from, to): norms, rotation, the cache.
func (e *qkv) rest(s *Stage, from, to int) {
	for t := from; t < to; t++ {
		for i := range e.h {
			dst, width := e.rows(s, i)
			e.h[i].finish(s, dst[t*width:][:e.h[i].width()], t)
		}
	}
	for t := from; t < to; {
		n := s.neighbours(t, to)
		at := t * e.width
		s.put(e.step.Cache, t, n, s.qkv[at:], s.qkv[at+e.h[2].at:], e.width, e.width)
		t += n
	}
}

// neighbours is the number of rows from t on, before the given one, that have
// neighbouring slots of one block.
func (s *Stage) neighbours(t, before int) int {
	n := 1
	for t+n < before && s.place.row[t+n] == s.place.row[t] && s.place.slot[t+n] == s.place.slot[t]+int32(n) {
		n++
	}
	return n
}

func (h *head) finish(s *Stage, x []float32, t int) {
	if h.Clamp > 0 {
		c := float32(h.Clamp)
		for i, v := range x {
			x[i] = min(max(v, -c), c)
		}
	}
	if h.norm != nil && h.WholeN {
		h.norm.row(x, x)
	}
	for o := 0; o < len(x); o += h.Dim {
		v := x[o : o+h.Dim]
		if h.norm != nil && !h.WholeN && !h.NormLast {
			h.norm.part(v, v, o)
		}
		if h.Rope != nil {
			s.ropes[h.Rope.Table].turn(h.Rope, v, t)
		}
		if h.norm != nil && h.NormLast {
			h.norm.part(v, v, o)
		}
	}
}

// put appends the keys and values of n rows from t on, neighbours in a block, to
// a cache. Rows of k and v are kw and vw apart.
func (s *Stage) put(cache, t, n int, k, v []float32, kw, vw int) {
	c := &s.lay.cache[cache]
	block := s.place.mem[int(s.place.row[t])*s.lay.block:][:s.lay.block]
	slot := int(s.place.slot[t])
	for h := 0; h < c.Heads; h++ {
		kt, vt := block[c.k+h*c.kTile:][:c.kTile], block[c.v+h*c.vTile:][:c.vTile]
		attn.PutKeys(kt, s.o.Keys, c.KeyDim, slot, n, k[h*c.KeyDim:], kw)
		if c.Kind == graph.CacheLatent {
			continue
		}
		for i := range n {
			attn.PutValue(vt, s.o.Values, c.ValueDim, slot+i, v[i*vw+h*c.ValueDim:][:c.ValueDim])
		}
	}
}
