package cpu

import (
	"github.com/inferflow/inferflow/internal/kernel/gemm"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

// bands runs two products of float weights of which the second alone reads the
// first, as in a feed-forward, a band of rows at a time, and of these a segment of what
// is between them: that stays in the second-level cache, where a whole batch of it
// would go through the third. Every sum is that of one step after the other.
type bands struct{ up, down *linear }

// after stands at the place of the second step, whose rows bands may have computed.
type after struct{ *bands }

// bandRows is the number of rows of a band at most, for whom all weights pass by;
// tests change it.
var bandRows = 48

// bandsEach is the least number of bands of a thread: the threads would wait for
// the last.
const bandsEach = 2

// bandBytes bounds what a band reads and writes: it is to stay in the second-level cache.
const bandBytes = 480 << 10

// joinBands joins steps whose products may run by bands.
func (l *loader) joinBands() {
	s := l.s
	for i := 0; i+1 < len(s.exec); i++ {
		up, ok := s.exec[i].(*linear)
		down, next := s.exec[i+1].(*linear)
		if !ok || !next || down.in != up.out || down.epi.residual == up.out || !up.banded() || !down.banded() || down.norm != nil || down.epi.act != nil {
			continue
		}
		rows, width := s.p.Steps[i].Rows, up.k+down.w.N()+gemm.Segment
		if s.p.Steps[i+1].Rows != rows || !s.sameRows(up.in, up.out, down.out) || !s.onlyNext(i, up.out) || 4*bandRows*width > bandBytes {
			continue
		}
		b := &bands{up, down}
		s.exec[i], s.exec[i+1] = b, after{b}
		l.bandY = max(l.bandY, down.w.N())
	}
}

// banded reports whether the product may be one of bands.
func (e *linear) banded() bool {
	return e.inOnePass() && e.w.Type() == quant.F32 && e.w.WholeTiles(bandRows) == bandRows
}

// sameRows reports whether the buffers hold the same rows.
func (s *Stage) sameRows(bs ...program.Buf) bool {
	f := &s.p.Buffers[bs[0]]
	for _, b := range bs[1:] {
		if g := &s.p.Buffers[b]; g.Out != f.Out || g.Const != f.Const || g.Memory != f.Memory {
			return false
		}
	}
	return !f.Const
}

// onlyNext reports whether nothing but the step after step i reads what i writes to b.
func (s *Stage) onlyNext(i int, b program.Buf) bool {
	read, written, n := false, false, len(s.p.Steps)
	for j := i + 1; j < i+n && !written; j++ { // also those before, in the next run
		s.p.Steps[j%n].Visit(func(x *program.Buf, write bool) {
			read = read || *x == b && !write && j > i+1
			written = written || *x == b && write
		})
		if j == n-1 && !written {
			for _, x := range append([]program.Buf{s.p.Logits}, s.p.Out...) {
				read = read || x == b
			}
		}
	}
	return !read
}

// whole is the number of rows that go by bands in this batch: all but the last
// few, or none. A search for what is not finite sees every step's output.
func (b *bands) whole(s *Stage) int {
	n := b.up.w.WholeTiles(s.rowsOf(b.up.out))
	if s.checking || n < bandsEach*bandRows*s.team.Size() {
		return 0
	}
	return n
}

// step is the number of rows of a band: as many bands for each thread, if possible.
func (b *bands) step(whole, threads int) int {
	for n := bandRows; n > bandRows/2; n-- {
		if b.up.w.WholeTiles(n) == n && (whole+n-1)/n%threads == 0 {
			return n
		}
	}
	return bandRows
}

func (a after) run(s *Stage, w *worker) {
	if a.whole(s) == 0 {
		a.down.run(s, w)
	}
}

func (b *bands) run(s *Stage, w *worker) {
	whole := b.whole(s)
	if whole == 0 {
		b.up.run(s, w)
		return
	}
	x, width := s.buf(b.up.in)
	rows := s.rowsOf(b.up.out)
	acts := b.up.prep.run(s, w, x, width, rows)
	c, step := s.counter(w), b.step(whole, s.team.Size())
	for row, _, ok := claim(c, rows, step); ok; row, _, ok = claim(c, rows, step) {
		if row < whole {
			b.band(s, w, acts[gemm.Float], row, min(row+step, whole))
		}
		if row+step >= whole && whole < rows && row < whole {
			b.rest(s, w, acts, whole, rows)
		}
	}
}

// band computes rows [row, end).
func (b *bands) band(s *Stage, w *worker, acts *gemm.Acts, row, end int) {
	out, n := s.buf(b.down.out)
	last := gemm.Finish{Out: out[row*n:], Stride: n, Bias: b.down.b}
	if r := b.down.epi.residual; r != program.None {
		last.Residual = s.bufs[r][row*n:]
	}
	for from := 0; from < b.up.w.N(); from += gemm.Segment {
		cols := min(gemm.Segment, b.up.w.N()-from)
		f := gemm.Finish{Out: w.between, Stride: cols}
		if b.up.b != nil {
			f.Bias = b.up.b[from:]
		}
		b.up.w.MulFinish(w.tile, &f, acts, row, end, from/16, (from+cols)/16, w.mul)
		if act := b.up.epi.act; act != nil {
			act(w.between[:(end-row)*cols])
		}
		w.band[gemm.Float].Alias(w.between, end-row, cols)
		b.down.w.AddSegment(w.sums, &last, w.band[gemm.Float], end-row, from/gemm.Segment, 0, n/16, w.mul)
	}
}

// rest computes rows [row, end), too few for a tile, one step after the other.
func (b *bands) rest(s *Stage, w *worker, acts *[2]*gemm.Acts, row, end int) {
	mid, n := s.buf(b.up.out)
	const chunk = tileCols / 16
	for p := 0; p < b.up.w.Panels(); p += chunk {
		b.up.tile(s, w, acts, mid, n, row, end, p, min(p+chunk, b.up.w.Panels()))
	}
	w.band[gemm.Float].Alias(mid, end, n)
	out, n := s.buf(b.down.out)
	for p := 0; p < b.down.w.Panels(); p += chunk {
		b.down.tile(s, w, &w.band, out, n, row, end, p, min(p+chunk, b.down.w.Panels()))
	}
}
