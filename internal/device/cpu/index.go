package cpu

import (
	"math"
	"unsafe"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/kernel/attn"
	"github.com/inferflow/inferflow/internal/program"
)

const (
	// indexTiles is the number of tiles of one unit of scoring where rows are few.
	indexTiles = 64
	// indexRows is the number of rows whose positions are split over the team.
	indexRows = 4
)

// index runs a program.Index. Keys lie in tiles [d][16] of float32.
type index struct {
	step     *program.Index
	heads, d int
}

// choosing is one worker's room for the choice of positions.
type choosing struct {
	scores []float32 // of one row
	logits []float32 // of a tile, all heads
	tile   []byte    // put together from several segments
}

func (l *loader) index(x *program.Index) (executor, error) {
	c := l.s.p.Graph.Caches[x.Attr.Cache]
	e := &index{step: x, d: c.KeyDim, heads: l.s.p.Buffers[x.W].Width}
	l.index16 = max(l.index16, e.heads)
	l.indexDim = max(l.indexDim, e.d)
	l.counters += 3
	return e, nil
}

// indexRoom reserves what the choices of a stage need.
func (l *loader) indexRoom() {
	s := l.s
	if l.index16 == 0 {
		return
	}
	n := (s.o.Limits.Tokens + batch.BlockTokens - 1) / batch.BlockTokens * batch.BlockTokens
	s.scores = make([]float32, indexRows*n)
	for _, w := range s.workers {
		tile := make([]float32, l.indexDim*batch.BlockTokens)
		w.choose = &choosing{scores: make([]float32, n), logits: make([]float32, l.index16*batch.BlockTokens),
			tile: unsafe.Slice((*byte)(unsafe.Pointer(&tile[0])), 4*len(tile))}
	}
}

func (e *index) run(s *Stage, w *worker) {
	s.byRows(w, s.rows, e)
	s.team.Barrier(w.id)
	if s.rows > indexRows {
		s.byRows(w, s.rows, wholeIndex{e})
		return
	}
	// Few rows: the positions of each are split, then the rows chosen from.
	n := len(s.scores) / indexRows
	c := s.counter(w)
	units := s.rows * ((n/batch.BlockTokens + indexTiles - 1) / indexTiles)
	for u, end, ok := claim(c, units, 1); ok; u, end, ok = claim(c, units, 1) {
		for ; u < end; u++ {
			r, from := u%s.rows, u/s.rows*indexTiles
			e.score(s, w, r, from, from+indexTiles, s.scores[r*n:(r+1)*n])
		}
	}
	s.team.Barrier(w.id)
	s.byRows(w, s.rows, fewIndex{e})
}

// row keeps the key of row t.
func (e *index) row(s *Stage, w *worker, t int) {
	k, kw := s.buf(e.step.K)
	t0 := e.at(s, e.step.K, t)
	c := &s.lay.cache[e.step.Attr.Cache]
	tile := s.place.mem[int(s.place.row[t])*s.lay.block+c.k:][:attn.KeyTileBytes(attn.F32, e.d)]
	attn.PutKey(tile, attn.F32, e.d, int(s.place.slot[t]), k[t0*kw:(t0+1)*kw])
}

// at is the row of a buffer that row t reads: the only one of constants.
func (e *index) at(s *Stage, b program.Buf, t int) int {
	if s.p.Buffers[b].Const {
		return 0
	}
	return t
}

// wholeIndex scores and chooses for a row; fewIndex chooses by scores that are there.
type (
	wholeIndex struct{ *index }
	fewIndex   struct{ *index }
)

func (e wholeIndex) row(s *Stage, w *worker, t int) {
	n := int(s.b.Pos[t]) + 1
	if !e.all(n) {
		e.score(s, w, t, 0, (n+batch.BlockTokens-1)/batch.BlockTokens, w.choose.scores)
	}
	e.choose(s, t, w.choose.scores[:n])
}

func (e fewIndex) row(s *Stage, w *worker, t int) {
	at := t * (len(s.scores) / indexRows)
	e.choose(s, t, s.scores[at:at+int(s.b.Pos[t])+1])
}

func (e *index) choose(s *Stage, t int, scores []float32) {
	out, n := s.buf(e.step.Out)
	e.pick(out[t*n:(t+1)*n], scores)
}

// all says whether all that may be chosen of n positions is.
func (e *index) all(n int) bool {
	a := e.step.Attr
	if a.Closed && a.Local == 0 {
		return n/a.Block <= a.TopK
	}
	return n <= a.TopK*a.Size()
}

// pick lists the positions chosen by their scores, which it changes.
func (e *index) pick(out, scores []float32) {
	if e.step.Attr.Closed && e.step.Attr.Local == 0 {
		e.pickClosed(out, scores)
		return
	}
	size, n := e.step.Attr.Block, len(scores)
	if size == 0 || n <= len(out) {
		best(out, scores)
		return
	}
	blocks := (n + size - 1) / size
	for i := range blocks {
		from, to := i*size, min((i+1)*size, n)
		if e.step.Attr.Closed { // by its last position
			from = to - 1
		}
		top := scores[from]
		for _, x := range scores[from:to] {
			if rank(x) > rank(top) {
				top = x
			}
		}
		scores[i] = top
	}
	for i := blocks - e.step.Attr.Local; i < blocks; i++ {
		scores[i] = float32(math.Inf(1))
	}
	chosen := out[:e.step.Attr.TopK]
	best(chosen, scores[:blocks])
	for i := len(chosen) - 1; i >= 0; i-- { // from the end: what is still to be read lies before
		first := int(chosen[i]) * size
		for j := range size {
			out[i*size+j] = float32(first + j)
			if first+j >= n {
				out[i*size+j] = -1
			}
		}
	}
}

// pickClosed is pick of blocks that are complete.
func (e *index) pickClosed(out, scores []float32) {
	a := e.step.Attr
	n := len(scores)
	blocks := n / a.Block
	for i := range blocks {
		scores[i] = scores[(i+1)*a.Block-1]
	}
	best(out[:a.TopK], scores[:blocks])
	for i := a.TopK - 1; i >= 0; i-- { // from the end: what is still to be read lies before
		first := out[i] * float32(a.Block)
		switch {
		case a.Ends && out[i] >= 0:
			out[i] = first + float32(a.Block-1)
		case !a.Ends:
			for j := range a.Block {
				if out[i*a.Block+j] = first + float32(j); first < 0 {
					out[i*a.Block+j] = -1
				}
			}
		}
	}
	if !a.Tail {
		return
	}
	for j := range a.Block - 1 {
		out[a.TopK*a.Block+j] = -1
		if p := blocks*a.Block + j; p < n {
			out[a.TopK*a.Block+j] = float32(p)
		}
	}
}

// score writes the scores of row t and the positions of tiles [from, to), as far
// as it sees them; none where all of them are chosen anyway.
func (e *index) score(s *Stage, w *worker, t, from, to int, scores []float32) {
	n := int(s.b.Pos[t]) + 1
	if e.all(n) {
		return
	}
	q, qw := s.buf(e.step.Q)
	f, fw := s.buf(e.step.W)
	tq, tw := e.at(s, e.step.Q, t), e.at(s, e.step.W, t)
	seq := s.seqOf(int32(t))
	c := &s.lay.cache[e.step.Attr.Cache]
	for i := from; i < min(to, (n+batch.BlockTokens-1)/batch.BlockTokens); i++ {
		l := w.choose.logits[:e.heads*batch.BlockTokens]
		attn.Scores(l, q[tq*qw:(tq+1)*qw], e.d, e.heads, e.tile(s, w, c, seq, i), e.d)
		y := scores[i*batch.BlockTokens:][:batch.BlockTokens]
		clear(y)
		floor := float32(0)
		if e.step.Attr.Signed {
			floor = float32(math.Inf(-1))
		}
		for h, g := range f[tw*fw : (tw+1)*fw] {
			for j, x := range l[h*batch.BlockTokens:][:batch.BlockTokens] {
				y[j] += float32(g * max(x, floor))
			}
		}
	}
}

// tile is tile i of a sequence's keys.
func (e *index) tile(s *Stage, w *worker, c *cacheLayout, seq, i int) []byte {
	size := attn.KeyTileBytes(attn.F32, e.d)
	block := int(s.place.tiles[int(s.place.first[seq])+i])
	if block >= 0 {
		return s.place.mem[block*s.lay.block+c.k:][:size]
	}
	sp, dst := s.place.splits[-1-block], w.choose.tile[:size]
	for _, p := range s.b.Seqs[sp.seq].Spans[sp.from:sp.to] {
		from := int(p.Pos % batch.BlockTokens)
		attn.CopyKeySlots(dst, s.place.mem[int(p.Block)*s.lay.block+c.k:][:size], attn.F32, e.d, from, from+int(p.N))
	}
	return dst
}

// best lists the len(out) positions with the largest scores, ascending, the
// earlier of equal ones first; all where there are no more, then −1. What is no
// number counts least. The time grows with the number of scores alone.
func best(out, scores []float32) {
	for i := range out {
		out[i] = -1
	}
	if len(scores) <= len(out) {
		for i := range scores {
			out[i] = float32(i)
		}
		return
	}
	limit, ties := threshold(scores, len(out))
	n := 0
	for i, x := range scores {
		k := rank(x)
		if k < limit || k == limit && ties == 0 {
			continue
		}
		if k == limit {
			ties--
		}
		out[n] = float32(i)
		n++
	}
}

// threshold is the rank of the n-th largest score, and how many of that rank
// are among the n: found byte by byte from the top.
func threshold(scores []float32, n int) (limit uint32, ties int) {
	for shift := 24; shift >= 0; shift -= 8 {
		var count [256]int
		for _, x := range scores {
			if k := rank(x); shift == 24 || k>>(shift+8) == limit>>(shift+8) {
				count[k>>shift&255]++
			}
		}
		b := 255
		for ; count[b] < n; b-- {
			n -= count[b]
		}
		limit |= uint32(b) << shift
	}
	return limit, n
}

// rank orders floats as whole numbers; NaN is 0, and −0 equals 0.
func rank(x float32) uint32 {
	if x != x {
		return 0
	}
	b := math.Float32bits(x + 0)
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}
