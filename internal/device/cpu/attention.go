package cpu

import (
	"math"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/attn"
	"github.com/inferflow/inferflow/internal/program"
)

// attention is one worker's room for attention calls.
type attention struct {
	call    attn.Call
	scratch *attn.Scratch
	q, out  []float32
	slopes  []float32
	at      []int32 // the position of each row
	sinks   []float32
	bias    []float32 // rows × positions, where a step has a relative bias or one row sees positions of its own
	skip    []bool
	from    []int32 // where the range of each token of an item begins, beside the first positions
}

func newAttention(s *Stage) *attention {
	rows, dk, dv, relative, alone := 1, 1, 1, false, false
	for i := range s.p.Steps {
		if x, ok := s.p.Steps[i].Body.(*program.Attention); ok {
			c := s.lay.cache[x.Attr.Cache]
			rows = max(rows, itemRows, x.Attr.Heads/x.Attr.KVHeads)
			dk, dv = max(dk, c.KeyDim), max(dv, c.ValueDim)
			relative = relative || x.Attr.Relative != nil || x.Attr.Buckets != nil || x.Attr.First > 0 || x.Attr.Counted || x.Attr.Faded || sparse(x.Attr)
			alone = alone || x.Allow != program.None || x.Attr.Every > 0
		}
		if x, ok := s.p.Steps[i].Body.(*program.Stored); ok {
			n := x.Keys * x.KVHeads
			rows, dk, dv = max(rows, itemRows), max(dk, s.p.Buffers[x.K].Width/n), max(dv, s.p.Buffers[x.V].Width/n)
		}
	}
	a := &attention{scratch: attn.NewScratch(rows, dk, dv)}
	a.q, a.out = make([]float32, rows*dk), make([]float32, rows*(dv+1))
	a.slopes, a.sinks, a.at = make([]float32, rows), make([]float32, rows), make([]int32, rows)
	tiles := (max(s.o.Limits.Tokens, s.o.Limits.Source) + batch.BlockTokens - 1) / batch.BlockTokens
	a.call.TileK, a.call.TileV = make([]int, 0, tiles), make([]int, 0, tiles)
	a.skip, a.from = make([]bool, tiles), make([]int32, rows)
	if alone {
		a.bias = make([]float32, tiles*batch.BlockTokens)
	}
	if relative {
		a.bias = make([]float32, rows*tiles*batch.BlockTokens)
	}
	a.call.Lo, a.call.Hi = make([]int32, rows), make([]int32, rows)
	return a
}

// attend runs a program.Attention.
type attend struct {
	step  *program.Attention
	sinks []float32
	bias  *ref.Distances // nil: none
	shape shape
	score func(dst, x []float32) // what makes weights of scores, where no softmax does
}

func (l *loader) attention(x *program.Attention) (executor, error) {
	e := &attend{step: x, shape: shape{x.Attr.Heads, x.Attr.KVHeads, x.Allow != program.None}}
	var err error
	if e.sinks, err = l.vector(x.Attr.Sinks); err != nil {
		return nil, err
	}
	if r := x.Attr.Relative; r != nil {
		table, err := l.vector(r)
		if err != nil {
			return nil, err
		}
		e.bias = l.distances(x.Attr, table)
	}
	if e.score, err = scoreKernel(x.Attr); err != nil {
		return nil, err
	}
	if l.s.place.items == nil {
		l.s.place.items = map[shape][]item{}
	}
	l.s.place.items[e.shape] = nil
	l.counters += 2
	return e, err
}

// distances unrolls a table of relative biases, once for all layers that share it.
func (l *loader) distances(a *graph.AttentionAttr, table []float32) *ref.Distances {
	key := unrolled{a.Relative, a.Farthest, a.TwoSided}
	if l.unrolled[key] == nil {
		if l.unrolled == nil {
			l.unrolled = map[unrolled]*ref.Distances{}
		}
		l.unrolled[key] = ref.Unroll(table, a.Heads, a.Farthest, a.TwoSided)
	}
	return l.unrolled[key]
}

type unrolled struct {
	table    *graph.Weight
	farthest int
	twoSided bool
}

func (e *attend) run(s *Stage, w *worker) {
	if e.step.K != program.None {
		s.byRows(w, s.rows, e)
		s.team.Barrier(w.id)
	}
	items := s.place.items[e.shape]
	c := s.counter(w)
	for i, end, ok := claim(c, len(items), 1); ok; i, end, ok = claim(c, len(items), 1) {
		for ; i < end; i++ {
			e.item(s, w.att, w.id, &items[i])
			if s.stopped(w) {
				return
			}
		}
	}
}

// row appends row t of the key and value buffers to the cache.
func (e *attend) row(s *Stage, w *worker, t int) {
	k, kw := s.buf(e.step.K)
	var values []float32
	if e.step.V != program.None {
		v, vw := s.buf(e.step.V)
		values = v[t*vw : (t+1)*vw]
	}
	s.put(e.step.Attr.Cache, t, 1, k[t*kw:(t+1)*kw], values, kw, len(values))
}

// headOf is query head j of key head g.
func headOf(a *graph.AttentionAttr, g, j int) int {
	if a.Tile {
		return j*a.KVHeads + g
	}
	return g*(a.Heads/a.KVHeads) + j
}

// item runs one unit: rows are the tokens, and for each the query heads.
func (e *attend) item(s *Stage, a *attention, worker int, it *item) {
	attr, q := e.step.Attr, &s.b.Seqs[it.seq]
	c := &s.lay.cache[attr.Cache]
	call := &a.call
	n, heads, total := int(it.n), int(it.nHeads), int(q.Start+q.N)
	if attr.Cross {
		total = q.MemoryLen()
	}
	lo, hi := int32(1<<30), int32(0)
	for t := 0; t < n; t++ {
		pos := int(q.Start+it.token) + t
		from, to := ref.Visible(attr, pos, total)
		if attr.First > 0 {
			a.from[t] = int32(from)
			if from > 0 {
				from = 0 // what lies between is hidden
			}
		}
		lo, hi = min(lo, int32(from)), max(hi, int32(to))
		for j := 0; j < heads; j++ {
			h, r := headOf(attr, int(it.group), int(it.head)+j), t*heads+j
			call.Lo[r], call.Hi[r] = int32(from), int32(to)
			switch {
			case e.sinks != nil:
				a.sinks[r] = e.sinks[h]
			case e.step.Sinks != program.None:
				a.sinks[r] = headPartOf(s, e.step.Sinks, attr.Heads, int(q.Row+it.token)+t, h)[0]
			}
			if attr.Slopes != nil {
				a.slopes[r], a.at[r] = float32(attr.Slopes[h]), int32(pos)
			}
		}
	}
	e.fill(call, c, s, n*heads)
	if e.sinks != nil || e.step.Sinks != program.None {
		call.Sinks = a.sinks
	}
	if attr.Slopes != nil {
		call.Slopes = a.slopes
		if slopesCount(attr) {
			call.At = a.at
		}
	}
	if attr.Cross {
		e.source(s, call, c, it, hi)
	} else {
		e.tiles(s, call, c, worker, it, lo, hi)
	}
	if e.bias != nil || e.step.Attr.Buckets != nil {
		e.biases(a, int(q.Start+it.token), it)
	}
	if e.step.Attr.Buckets != nil {
		e.near(s, a, it, lo, hi)
	}
	if e.step.Allow != program.None {
		e.allow(s, a, int(q.Row+it.token), int(hi))
	}
	if attr.First > 0 {
		e.between(a, it)
	}
	if attr.Every > 0 {
		e.ends(a)
	}
	e.compute(s, a, c, it, int(q.Row+it.token))
}

// slopesCount says that a constant of the row matters to the result, and that
// rows do not end with their own position.
func slopesCount(a *graph.AttentionAttr) bool {
	return (a.Mask == graph.MaskFull || a.Mask == graph.MaskBefore) && (a.Open || a.Sinks != nil || a.SinkOf || a.Score != "")
}

// compute runs the call that is filled in. Rows of one head are read and
// written where they lie, from the given row on; those of more are brought together.
func (e *attend) compute(s *Stage, a *attention, c *cacheLayout, it *item, first int) {
	call, n, heads, wide := &a.call, int(it.n), int(it.nHeads), c.ValueDim
	if call.Open {
		wide++
	}
	qb, qw := s.buf(e.step.Q)
	out, ow := s.buf(e.step.Out)
	if heads == 1 {
		h := headOf(e.step.Attr, int(it.group), int(it.head))
		call.Q, call.QStride = qb[first*qw+h*c.KeyDim:], qw
		call.Out, call.OutStride = out[first*ow+h*wide:], ow
		e.evaluate(s, a, it, first)
		return
	}
	each := func(f func(q, o []float32, r int)) {
		for r := range n * heads {
			t, h := first+r/heads, headOf(e.step.Attr, int(it.group), int(it.head)+r%heads)
			f(qb[t*qw+h*c.KeyDim:][:c.KeyDim], out[t*ow+h*wide:][:wide], r)
		}
	}
	call.Q, call.Out, call.QStride, call.OutStride = a.q, a.out, c.KeyDim, wide
	each(func(q, _ []float32, r int) { copy(a.q[r*c.KeyDim:], q) })
	e.evaluate(s, a, it, first)
	each(func(_, o []float32, r int) { copy(o, a.out[r*wide:]) })
}

func (e *attend) fill(call *attn.Call, c *cacheLayout, s *Stage, rows int) {
	call.DK, call.DV = c.KeyDim, c.ValueDim
	call.KeyType, call.ValueType = s.o.Keys, s.o.Values
	call.Keys, call.Values = s.place.mem, s.place.mem
	call.Rows, call.Scale, call.Softcap = rows, float32(e.step.Attr.Scale), float32(e.step.Attr.Softcap)
	call.Sinks, call.Slopes, call.At, call.Bias, call.Skip = nil, nil, nil, nil, nil
	call.Open = e.step.Attr.Open
	call.ValuesOfKeys = c.Kind == graph.CacheLatent
}

// allow hides from a row, which stands at position hi − 1, the positions that
// it is not to see, and says which tiles hold none of the others.
func (e *attend) allow(s *Stage, a *attention, row, hi int) {
	list, n := s.buf(e.step.Allow)
	list = list[row*n : (row+1)*n]
	if hi <= n && int(list[hi-1]) == hi-1 { // all of them
		return
	}
	tiles := (hi + batch.BlockTokens - 1) / batch.BlockTokens
	bias, skip := a.bias[:tiles*batch.BlockTokens], a.skip[:tiles]
	for i := range bias {
		bias[i] = hidden
	}
	for i := range skip {
		skip[i] = true
	}
	for _, p := range list {
		if i := int(p); i >= 0 && i < hi {
			bias[i], skip[i/batch.BlockTokens] = 0, false
		}
	}
	a.call.Bias, a.call.BiasStride, a.call.Skip = bias, 0, skip
}

// between hides from each row what lies between the first positions, which all
// see, and the row's own range, and says which tiles no row sees.
func (e *attend) between(a *attention, it *item) {
	call, first, n, heads := &a.call, e.step.Attr.First, int(it.n), int(it.nHeads)
	begin, gap := len(call.TileK)*batch.BlockTokens, false // of the ranges
	for _, lo := range a.from[:n] {
		begin, gap = min(begin, int(lo)), gap || int(lo) > first
	}
	if !gap {
		return
	}
	skip := a.skip[:len(call.TileK)]
	for t := range skip {
		skip[t] = t*batch.BlockTokens >= first && (t+1)*batch.BlockTokens <= begin
	}
	call.Skip = skip
	fresh := call.Bias == nil
	if fresh {
		call.Bias, call.BiasStride = a.bias, len(skip)*batch.BlockTokens
	}
	for r := range n * heads {
		dst, lo := call.Bias[r*call.BiasStride:][:call.BiasStride], int(a.from[r/heads])
		for t, out := range skip {
			if out {
				continue
			}
			tile := dst[t*batch.BlockTokens:][:batch.BlockTokens]
			if fresh {
				clear(tile)
			}
			for j := max(0, first-t*batch.BlockTokens); j < min(batch.BlockTokens, lo-t*batch.BlockTokens); j++ {
				tile[j] = hidden
			}
		}
	}
}

// ends hides from all rows what does not end a block, and says which tiles hold
// no such position. Where keys fade, each row gets biases of its own later.
func (e *attend) ends(a *attention) {
	call, every := &a.call, e.step.Attr.Every
	bias, skip := a.bias[:len(call.TileK)*batch.BlockTokens], a.skip[:len(call.TileK)]
	for i := range skip {
		skip[i] = true
	}
	for i := range bias {
		bias[i] = hidden
		if (call.FirstTile*batch.BlockTokens+i+1)%every == 0 {
			bias[i], skip[i/batch.BlockTokens] = 0, false
		}
	}
	call.Bias, call.BiasStride, call.Skip = bias, 0, skip
}

var hidden = float32(math.Inf(-1))

// tiles lists where the tiles of positions [lo, hi) lie for the item's head.
func (e *attend) tiles(s *Stage, call *attn.Call, c *cacheLayout, worker int, it *item, lo, hi int32) {
	first, last := int(lo)/batch.BlockTokens, (int(hi)+batch.BlockTokens-1)/batch.BlockTokens
	call.FirstTile = first
	call.TileK, call.TileV = call.TileK[:0], call.TileV[:0]
	spare := s.o.Limits.Blocks + worker*spareTiles
	for t := first; t < last; t++ {
		block := int(s.place.tiles[int(s.place.first[it.seq])+t])
		if block < 0 {
			s.join(c, int(it.group), &s.place.splits[-1-block], spare)
			block = spare
			spare++
		}
		at := block * s.lay.block
		call.TileK = append(call.TileK, at+c.k+int(it.group)*c.kTile)
		call.TileV = append(call.TileV, at+c.v+int(it.group)*c.vTile)
	}
}

// source lists where the tiles of the encoded source's hi rows lie.
func (e *attend) source(s *Stage, call *attn.Call, c *cacheLayout, it *item, hi int32) {
	call.FirstTile = 0
	call.TileK, call.TileV = call.TileK[:0], call.TileV[:0]
	first := int(s.place.source[it.seq])
	for t := 0; t*batch.BlockTokens < int(hi); t++ {
		at := int(s.place.memory[first+t]) * s.lay.block
		call.TileK = append(call.TileK, at+c.k+int(it.group)*c.kTile)
		call.TileV = append(call.TileV, at+c.v+int(it.group)*c.vTile)
	}
}

// biases fills the relative biases of an item's rows, the first of which stands
// at position pos, for all positions of the call's tiles.
func (e *attend) biases(a *attention, pos int, it *item) {
	call := &a.call
	call.Bias, call.BiasStride = a.bias, len(call.TileK)*batch.BlockTokens
	for t := range int(it.n) {
		for j := range int(it.nHeads) {
			h, r := headOf(e.step.Attr, int(it.group), int(it.head)+j), t*int(it.nHeads)+j
			dst := a.bias[r*call.BiasStride:][:call.BiasStride]
			if e.bias == nil {
				clear(dst)
				continue
			}
			e.bias.Fill(dst, h, pos+t, call.FirstTile*batch.BlockTokens)
		}
	}
}

// near adds to the biases of an item's rows, for the positions [lo, hi), what
// the query's row and the key's have at the bucket of their distance.
func (e *attend) near(s *Stage, a *attention, it *item, lo, hi int32) {
	call, attr, q := &a.call, e.step.Attr, &s.b.Seqs[it.seq]
	first, half := call.FirstTile*batch.BlockTokens, len(attr.Buckets)/2
	for t := range int(it.n) {
		row, pos := int(q.Row+it.token)+t, int(q.Start+it.token)+t
		for j := range int(it.nHeads) {
			h, r := headOf(attr, int(it.group), int(it.head)+j), t*int(it.nHeads)+j
			dst := a.bias[r*call.BiasStride:][:call.BiasStride]
			if e.step.ByQuery != program.None {
				of := headPartOf(s, e.step.ByQuery, attr.Heads, row, h)
				for p := int(lo); p < int(hi); p++ {
					dst[p-first] += of[attr.Buckets[min(max(p-pos, -half), half)+half]]
				}
			}
			if e.step.ByKey == program.None {
				continue
			}
			for p := int(lo); p < int(hi); p++ {
				of := headPartOf(s, e.step.ByKey, attr.Heads, int(q.Row)+p, h)
				dst[p-first] += of[attr.Buckets[min(max(p-pos, -half), half)+half]]
			}
		}
	}
}

// headPartOf is what a buffer has for head h in a row.
func headPartOf(s *Stage, b program.Buf, heads, row, h int) []float32 {
	x, width := s.buf(b)
	n := width / heads
	if s.p.Buffers[b].Const {
		row = 0
	}
	return x[row*width+h*n:][:n]
}

// put runs a program.Put.
type put struct{ step *program.Put }

func (e *put) run(s *Stage, w *worker) { s.byRows(w, s.rows, e) }

func (e *put) row(s *Stage, _ *worker, t int) {
	var values []float32 // none where they are a part of the keys
	if e.step.V != program.None {
		values = s.rowOf(e.step.V, t)
	}
	k := s.rowOf(e.step.K, t)
	s.put(e.step.Cache, t, 1, k, values, len(k), len(values))
}

// rowOf is row t of a buffer, the only one of a constant.
func (s *Stage) rowOf(b program.Buf, t int) []float32 { return headPartOf(s, b, 1, t, 0) }

// join copies the slots of one head from the spans that supply a tile together
// into a spare block.
func (s *Stage) join(c *cacheLayout, head int, sp *split, spare int) {
	spans := s.b.Seqs[sp.seq].Spans[sp.from:sp.to]
	dst := s.place.mem[spare*s.lay.block:]
	kt, vt := dst[c.k+head*c.kTile:][:c.kTile], dst[c.v+head*c.vTile:][:c.vTile]
	for _, p := range spans {
		src := s.place.mem[int(p.Block)*s.lay.block:]
		from := int(p.Pos % batch.BlockTokens)
		attn.CopyKeySlots(kt, src[c.k+head*c.kTile:][:c.kTile], s.o.Keys, c.KeyDim, from, from+int(p.N))
		if c.Kind == graph.CacheLatent {
			continue
		}
		attn.CopyValueSlots(vt, src[c.v+head*c.vTile:][:c.vTile], s.o.Values, c.ValueDim, from, from+int(p.N))
	}
}
