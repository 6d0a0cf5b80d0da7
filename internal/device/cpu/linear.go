package cpu

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/gemm"
	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

// tileCols is the number of output columns of a claimed piece of a product at
// most: with all rows of a batch it stays in the second cache.
const tileCols = 64

// prep makes activations from rows of a buffer: an optional norm, then the
// form that each kind of weight wants.
type prep struct {
	norm  *norm
	k     int
	kinds [2]bool
	view  bool // rows may be read where they lie, if they need no preparing
}

func (l *loader) prep(a *graph.NormAttr, weights ...*graph.Weight) (p prep, err error) {
	for _, w := range weights {
		if w == nil {
			continue
		}
		kind, err := l.kindOf(w)
		if err != nil {
			return p, err
		}
		p.kinds[kind] = true
		p.k = w.Cols()
	}
	l.maxK = max(l.maxK, p.k)
	l.counters++
	p.norm, err = l.makeNorm(a)
	return p, err
}

// run prepares the rows of x. Few rows are prepared by every worker for
// itself, many are split with a barrier after.
func (p *prep) run(s *Stage, w *worker, x []float32, width, rows int) *[2]*gemm.Acts {
	c := s.counter(w)
	if p.view && rows > privateRows && p.norm == nil && !p.kinds[gemm.Int8] && width == p.k {
		w.view[gemm.Float].Alias(x, rows, p.k)
		return &w.view
	}
	if rows <= privateRows {
		p.rows(&w.acts, x, width, w.norm, rows, 0, rows)
		return &w.acts
	}
	chunk := max(1, rows/(4*s.team.Size()))
	for from, to, ok := claim(c, rows, chunk); ok; from, to, ok = claim(c, rows, chunk) {
		p.rows(&s.shared, x, width, s.normed, rows, from, to)
	}
	s.team.Barrier(w.id)
	return &s.shared
}

func (p *prep) rows(acts *[2]*gemm.Acts, x []float32, width int, tmp []float32, rows, from, to int) {
	stride := width
	if p.norm != nil {
		for r := from; r < to; r++ {
			p.norm.row(tmp[r*p.k:(r+1)*p.k], x[r*width:r*width+p.k])
		}
		x, stride = tmp, p.k
	}
	for kind, on := range p.kinds {
		if on {
			acts[kind].Prepare(gemm.Kind(kind), x, stride, rows, p.k, from, to)
		}
	}
}

// epilogue is what follows a product, on a tile of it.
type epilogue struct {
	act      func(x []float32)
	gelu     bool // act is the exact gelu, which has a kernel with a bias
	scale    float32
	softcap  float32
	residual program.Buf
}

func makeEpilogue(e program.Epilogue) (out epilogue, err error) {
	out = epilogue{scale: float32(e.Scale), softcap: float32(e.Softcap), residual: e.Residual}
	if e.Scale == 0 {
		out.scale = 1
	}
	if e.Act != nil {
		out.gelu = e.Act.F == "gelu"
		out.act, err = activation(e.Act)
	}
	return out, err
}

// finish applies the epilogue to y, the columns from col on of row r, and
// writes them to out.
func (e *epilogue) finish(s *Stage, out, y []float32, at int) {
	if e.scale != 1 {
		vec.Scale(y, y, e.scale)
	}
	if e.softcap != 0 {
		vec.Softcap(y, y, e.softcap)
	}
	if e.residual == program.None {
		copy(out[at:at+len(y)], y)
		return
	}
	vec.Add(out[at:at+len(y)], s.bufs[e.residual][at:at+len(y)], y)
}

// linear runs a program.Linear.
type linear struct {
	prep
	in, out program.Buf
	w, up   *gemm.Matrix
	b, upB  []float32
	epi     epilogue
	gate    func(dst, gate, up []float32)
}

func (l *loader) linear(x *program.Linear) (executor, error) {
	e := &linear{in: x.In, out: x.Out}
	var err error
	if e.prep, err = l.prep(x.PreNorm, x.W, x.Up); err != nil {
		return nil, err
	}
	if e.b, err = l.vector(x.B); err != nil {
		return nil, err
	}
	if e.upB, err = l.vector(x.UpB); err != nil {
		return nil, err
	}
	if err := l.matrix(x.W, &e.w); err != nil {
		return nil, err
	}
	if e.epi, err = makeEpilogue(x.Epi); err != nil {
		return nil, err
	}
	l.counters++
	e.view = true
	if x.Up == nil {
		return e, nil
	}
	e.epi.act = nil
	if e.gate, err = gating(x.Epi.Act); err != nil {
		return nil, err
	}
	return e, l.matrix(x.Up, &e.up)
}

// fewRows is the number of rows up to which a product is bound by reading its
// weights: long runs of panels keep the prefetch going.
const fewRows = 4

// maxPanels is the number of panels of a claim at most when rows are few.
const maxPanels = 32

// chunkOf is the number of panels of one claim: enough claims that threads end
// together, few enough that claiming costs nothing.
func chunkOf(panels, threads, rows int) int {
	if rows <= fewRows {
		return max(1, min(maxPanels, panels/(threads*2)))
	}
	return max(1, min(tileCols/16, panels/(threads*6)))
}

func (e *linear) run(s *Stage, w *worker) {
	x, width := s.buf(e.in)
	out, n := s.buf(e.out)
	rows := s.rowsOf(e.out)
	acts := e.prep.run(s, w, x, width, rows)
	c := s.counter(w)
	panels := e.w.Panels()
	chunk := chunkOf(panels, s.team.Size(), rows)
	g := gridOf(e.w, rows, panels, chunk)
	for i, _, ok := claim(c, g.size(), 1); ok; i, _, ok = claim(c, g.size(), 1) {
		row, end, from, to := g.tile(i)
		e.tile(s, w, acts, out, n, row, end, from, to)
	}
}

// grid cuts a product into tiles of rows and panels, those of one run of panels
// one after the other.
type grid struct{ rows, step, panels, chunk int }

func gridOf(m *gemm.Matrix, rows, panels, chunk int) grid {
	g := grid{rows, max(1, rowsAtOnce(m, rows)), panels, chunk} // no rows: no tiles
	if g.bands() >= manyBands && g.step*wideTile <= rows*tileCols/16 {
		g.chunk = max(chunk, min(wideTile, panels)) // the bands keep the threads level
	}
	return g
}

// manyBands is the number of bands of rows from which on tiles may be wide:
// finishing a row of a tile costs a call, whatever its width.
const manyBands = 4

// wideTile is the number of panels of a wide tile.
const wideTile = 12

func (g *grid) bands() int { return (g.rows + g.step - 1) / g.step }
func (g *grid) size() int  { return g.bands() * ((g.panels + g.chunk - 1) / g.chunk) }

// tile is the i-th: rows [row, end) of panels [from, to).
func (g *grid) tile(i int) (row, end, from, to int) {
	b := g.bands()
	row, from = i%b*g.step, i/b*g.chunk
	return row, min(g.rows, row+g.step), from, min(g.panels, from+g.chunk)
}

// tileRows is the number of rows of a product whose results stay in the first
// cache until they are finished: a multiple of the kernels' tiles.
const tileRows = 96

// rowsAtOnce is the number of rows of one tile: all of them where panels are
// unpacked for them, which pays the better the more there are.
func rowsAtOnce(m *gemm.Matrix, rows int) int {
	if m.Type() == quant.F32 {
		return min(rows, tileRows)
	}
	return rows
}

// tile computes rows [row, end) of panels [from, to).
func (e *linear) tile(s *Stage, w *worker, acts *[2]*gemm.Acts, out []float32, n, row, end, from, to int) {
	col, cols, stride := from*16, min(to*16, n)-from*16, (to-from)*16
	y := w.tile
	done := 0
	if e.inOnePass() {
		done = e.finished(s, acts, y, out, n, row, end, from, to, w)
	} else {
		product(e.w, acts, y, row, end, from, to, w)
	}
	var up []float32
	if e.up != nil {
		up = w.tile[len(w.tile)/2:]
		product(e.up, acts, up, row, end, from, to, w)
	}
	for r := done; r < end-row; r++ {
		yr := y[r*stride : r*stride+cols]
		if e.finishAtOnce(s, out[(row+r)*n+col:(row+r)*n+col+cols], yr, col, (row+r)*n+col) {
			continue
		}
		if e.b != nil {
			vec.Add(yr, yr, e.b[col:col+cols])
		}
		if up != nil {
			ur := up[r*stride : r*stride+cols]
			if e.upB != nil {
				vec.Add(ur, ur, e.upB[col:col+cols])
			}
			e.gate(yr, yr, ur)
		} else if e.epi.act != nil {
			e.epi.act(yr)
		}
		e.epi.finish(s, out, yr, (row+r)*n+col)
	}
}

// inOnePass reports whether a bias, and then a residual or an activation, are all
// that follows the product.
func (e *linear) inOnePass() bool {
	return e.up == nil && (e.epi.act == nil || e.epi.residual == program.None) && e.epi.scale == 1 && e.epi.softcap == 0
}

// finished computes a tile and finishes the first done rows of it in the same
// pass; the others are bare in y.
func (e *linear) finished(s *Stage, acts *[2]*gemm.Acts, y, out []float32, n, row, end, from, to int, w *worker) (done int) {
	at := row*n + from*16
	f := gemm.Finish{Out: out[at:], Stride: n}
	if e.b != nil {
		f.Bias = e.b[from*16:]
	}
	if e.epi.residual != program.None {
		f.Residual = s.bufs[e.epi.residual][at:]
	}
	done = e.w.MulFinish(y, &f, acts[gemm.KindOf(e.w.Type())], row, end, from, to, w.mul)
	if e.epi.act != nil {
		for r := range done {
			e.epi.act(f.Out[r*n:][:(to-from)*16])
		}
	}
	return done
}

// finishAtOnce writes y with bias, activation and residual to out in one pass;
// false where there is no kernel for what is to be done. col is y's first
// column, at its place in the whole buffer.
func (e *linear) finishAtOnce(s *Stage, out, y []float32, col, at int) bool {
	if !e.inOnePass() || e.b == nil {
		return false
	}
	b := e.b[col : col+len(y)]
	switch {
	case e.epi.act == nil && e.epi.residual == program.None:
		vec.Add(out, y, b)
	case e.epi.act == nil:
		vec.AddAdd(out, y, b, s.bufs[e.epi.residual][at:at+len(y)])
	case e.epi.gelu:
		vec.GELUErfAdd(out, y, b)
	default:
		return false
	}
	return true
}

// product computes panels [from, to) for rows [row, end) into y, whose rows are
// 16·(to−from) apart, with the first panel in column 0.
func product(m *gemm.Matrix, acts *[2]*gemm.Acts, y []float32, row, end, from, to int, w *worker) {
	m.MulTile(y, (to-from)*16, acts[gemm.KindOf(m.Type())], row, end, from, to, w.mul)
}
