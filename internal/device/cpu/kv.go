package cpu

import (
	"fmt"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/attn"
	"github.com/inferflow/inferflow/internal/sys"
)

// layout places keys and values inside a block: a block holds 16 positions of
// all caches of the stage in one run of bytes.
type layout struct {
	block int // bytes of a block
	spare int // blocks behind the pool, for tiles that two segments supply
	cache []cacheLayout
}

type cacheLayout struct {
	graph.Cache
	used         bool
	k, v         int // offset of head 0's tile
	kTile, vTile int // bytes of one head's tile
}

// spareTiles is the number of tiles of one sequence that several segments may supply.
const spareTiles = 16

// BlockBytes is what one block of a program's caches takes.
func BlockBytes(caches []graph.Cache, used func(int) bool, keys, values attn.Elem) int {
	l := layoutOf(caches, used, keys, values)
	return l.block
}

// layoutOf gives a block the larger of what positions of a sequence take and
// what positions of an encoded source do: a block holds one or the other. What
// only the encoder's own attention needs lies in one place for all its layers.
func layoutOf(caches []graph.Cache, used func(int) bool, keys, values attn.Elem) (l layout) {
	own, kept := 0, 0 // bytes of a sequence, of a source
	size := func(c *graph.Cache) (k, v int) {
		return batch.BlockTokens * c.KeyDim * keys.Size(), batch.BlockTokens * c.ValueDim * values.Size()
	}
	l.cache = make([]cacheLayout, len(caches))
	place := func(i, at int) int {
		cl := &l.cache[i]
		cl.used = true
		if cl.Kind == graph.CacheRows {
			cl.k = at
			return (at + batch.BlockTokens*cl.KeyDim*4 + 63) &^ 63
		}
		if cl.kTile, cl.vTile = size(&cl.Cache); cl.Kind == graph.CacheLatent {
			cl.vTile = 0 // the values are a part of the keys
		}
		cl.k = at
		cl.v = cl.k + cl.Heads*cl.kTile
		return (cl.v + cl.Heads*cl.vTile + 63) &^ 63
	}
	for i, c := range caches {
		l.cache[i].Cache = c
		switch {
		case !used(i) || c.Kind == graph.CacheState:
		case !c.Memory:
			own = place(i, own)
		case c.Kept:
			kept = place(i, kept)
		}
	}
	l.block = max(own, kept)
	for i, c := range caches {
		if used(i) && c.Kind == graph.CacheKV && c.Memory && !c.Kept {
			l.block = max(l.block, place(i, kept))
		}
	}
	return l
}

func (s *Stage) layOut() error {
	used := usedCaches(s.p)
	if err := s.layOutStates(used); err != nil {
		return err
	}
	s.lay = layoutOf(s.p.Graph.Caches, used, s.o.Keys, s.o.Values)
	s.lay.spare = s.team.Size() * spareTiles
	a, err := sys.NewArena(max(64, (s.o.Limits.Blocks+s.lay.spare)*s.lay.block))
	if err != nil {
		return fmt.Errorf("key/value memory of %d blocks: %w", s.o.Limits.Blocks, err)
	}
	s.kv = a
	mem, err := a.Bytes(max(64, (s.o.Limits.Blocks+s.lay.spare)*s.lay.block))
	s.place.mem = mem
	return err
}

// copyBlocks copies whole blocks in order, none if one of them is not there.
func (s *Stage) copyBlocks(list []batch.BlockCopy) error {
	at := func(b int32) []byte { return s.place.mem[int(b)*s.lay.block:][:s.lay.block] }
	for _, c := range list {
		if n := int32(s.o.Limits.Blocks); c.From < 0 || c.To < 0 || c.From >= n || c.To >= n {
			return fmt.Errorf("cpu: a copy of block %d to %d; there are %d", c.From, c.To, n)
		}
	}
	for _, c := range list {
		copy(at(c.To), at(c.From))
	}
	return nil
}

// placement is where the rows and tiles of the current batch lie.
type placement struct {
	mem    []byte
	row    []int32 // block of each row
	slot   []int32
	tiles  []int32 // block of each tile of each sequence; −1−i: spans[i] supply it together
	first  []int32 // first tile of each sequence in tiles
	splits []split
	items  map[shape][]item
	memory []int32 // block of each tile of each sequence's encoded source
	source []int32 // first tile of each sequence in memory
}

type split struct{ seq, from, to int32 } // spans [from, to) of a sequence

// shape is what the cut of an attention into items depends on. Rows that each
// see positions of their own stand alone.
type shape struct {
	heads, kv int
	alone     bool
}

// item is a unit of attention work: some query heads of one key head for some
// tokens of a sequence.
type item struct {
	seq, group   int32
	token, n     int32
	head, nHeads int32 // of the group's query heads
}

func (p *placement) set(s *Stage, b *batch.Batch) error {
	p.row, p.slot, p.tiles, p.first, p.splits = p.row[:0], p.slot[:0], p.tiles[:0], p.first[:0], p.splits[:0]
	p.memory, p.source = p.memory[:0], p.source[:0]
	for i := range b.Seqs {
		if err := p.sequence(s, int32(i), &b.Seqs[i]); err != nil {
			return err
		}
		if err := p.encoded(s, &b.Seqs[i], b.Encode); err != nil {
			return err
		}
	}
	for sh := range p.items {
		p.items[sh] = s.itemsOf(sh, b, p.items[sh][:0])
	}
	return nil
}

func (p *placement) sequence(s *Stage, id int32, q *batch.Seq) error {
	p.first = append(p.first, int32(len(p.tiles)))
	pos, splits := int32(0), 0
	row := q.Start
	for i, sp := range q.Spans {
		if sp.Pos != pos || sp.N < 1 || sp.Pos%batch.BlockTokens+sp.N > batch.BlockTokens || int(sp.Block) >= s.o.Limits.Blocks || sp.Block < 0 {
			return fmt.Errorf("cpu: sequence %d: span %d (block %d, position %d, %d tokens) does not continue at %d", q.ID, i, sp.Block, sp.Pos, sp.N, pos)
		}
		switch {
		case sp.Pos%batch.BlockTokens == 0:
			p.tiles = append(p.tiles, sp.Block)
		case p.tiles[len(p.tiles)-1] >= 0:
			if splits++; splits > spareTiles {
				return fmt.Errorf("cpu: sequence %d has more than %d tiles of several segments", q.ID, spareTiles)
			}
			p.splits = append(p.splits, split{id, int32(i - 1), int32(i + 1)})
			p.tiles[len(p.tiles)-1] = int32(-len(p.splits))
		default:
			p.splits[len(p.splits)-1].to = int32(i + 1)
		}
		for ; row >= sp.Pos && row < min(sp.Pos+sp.N, q.Start+q.N); row++ {
			p.row, p.slot = append(p.row, sp.Block), append(p.slot, row%batch.BlockTokens)
		}
		pos += sp.N
	}
	if row != q.Start+q.N {
		return fmt.Errorf("cpu: sequence %d: blocks hold %d positions of %d", q.ID, pos, q.Start+q.N)
	}
	return nil
}

// encoded finds the tiles of a sequence's encoded source. Its blocks are never
// shared in part, so each is a tile.
func (p *placement) encoded(s *Stage, q *batch.Seq, encode bool) error {
	p.source = append(p.source, int32(len(p.memory)))
	if !s.crosses || encode && len(q.Memory) == 0 {
		return nil // another stage may read it
	}
	if encode || len(q.Memory) == 0 || q.MemoryLen() > s.o.Limits.Source {
		return fmt.Errorf("cpu: sequence %d brings %d rows of an encoded source; 1 to %d fit a batch that decodes, 0 one that encodes", q.ID, q.MemoryLen(), s.o.Limits.Source)
	}
	pos := int32(0)
	for i, sp := range q.Memory {
		last := i == len(q.Memory)-1
		if sp.Pos != pos || sp.N < 1 || sp.N > batch.BlockTokens || !last && sp.N < batch.BlockTokens || sp.Block < 0 || int(sp.Block) >= s.o.Limits.Blocks {
			return fmt.Errorf("cpu: sequence %d: span %d of its source (block %d, position %d, %d rows) does not continue at %d", q.ID, i, sp.Block, sp.Pos, sp.N, pos)
		}
		p.memory = append(p.memory, sp.Block)
		pos += sp.N
	}
	return nil
}

// itemRows bounds the query rows of one attention call.
const itemRows = 64

func (s *Stage) itemsOf(sh shape, b *batch.Batch, out []item) []item {
	group := int32(sh.heads / sh.kv)
	for i, q := range b.Seqs {
		step, part := max(1, itemRows/group), min(group, itemRows)
		if sh.alone {
			step = 1
		}
		if n := len(b.Seqs) * sh.kv; q.N == 1 && n < 4*s.team.Size() { // few items: finer ones keep the threads level
			part = max(1, min(part, (group+1)/2))
			if group > itemRows/4 {
				part = max(itemRows/8, min(part, group*int32(n)/int32(4*s.team.Size())))
			}
		}
		for g := int32(0); g < int32(sh.kv); g++ {
			for t := int32(0); t < q.N; t += step {
				for h := int32(0); h < group; h += part {
					out = append(out, item{int32(i), g, t, min(step, q.N-t), h, min(part, group-h)})
				}
			}
		}
	}
	return out
}
