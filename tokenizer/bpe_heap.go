package tokenizer

import (
	"unicode/utf8"
)

// candidate is a merge that may be done: of the symbol at pos with its right neighbour, while both still are what they were.
type candidate struct {
	rank  int32
	pos   int32
	id    int32 // what the pair becomes
	left  int32 // ids of the pair (merges by pair) or the ends of both symbols (merges by text)
	right int32
}

// mergeQueue is a binary heap of candidates: lowest rank first, leftmost of equals.
type mergeQueue []candidate

func (a candidate) before(b candidate) bool {
	return a.rank < b.rank || a.rank == b.rank && a.pos < b.pos
}

func (q *mergeQueue) push(c candidate) {
	*q = append(*q, c)
	h := *q
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = c
}

func (q *mergeQueue) pop() candidate {
	h := *q
	top := h[0]
	last := h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(last) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return top
}

// mergeHeap merges long words in O(n log n) and appends the ids to out.
func (m *bpe) mergeHeap(ids []int32, sc *scratch, out []int32) []int32 {
	symbols := sc.symbols[:0]
	for i, id := range ids {
		symbols = append(symbols, symbol{id: id, end: 1, prev: int32(i - 1), next: int32(i + 1)})
	}
	symbols[len(symbols)-1].next = -1
	sc.symbols, sc.queue = symbols, sc.queue[:0]
	offer := func(left int32) {
		right := symbols[left].next
		if right < 0 {
			return
		}
		a, b := symbols[left].id, symbols[right].id
		if p := m.merges.get(a, b); p.rank != noPair {
			sc.queue.push(candidate{rank: p.rank, pos: left, id: p.id, left: a, right: b})
		}
	}
	for i := range symbols {
		offer(int32(i))
	}
	for len(sc.queue) > 0 {
		c := sc.queue.pop()
		l := &symbols[c.pos]
		if l.end == 0 || l.id != c.left || l.next < 0 || symbols[l.next].id != c.right {
			continue
		}
		join(symbols, c.pos, c.id)
		if l.prev >= 0 {
			offer(l.prev)
		}
		offer(c.pos)
	}
	return collect(symbols, out)
}

// join merges the symbol at pos with its right neighbour into id.
func join(symbols []symbol, pos, id int32) {
	l := &symbols[pos]
	r := &symbols[l.next]
	l.id, l.end = id, r.end
	l.next = r.next
	if l.next >= 0 {
		symbols[l.next].prev = pos
	}
	r.end = 0
}

func collect(symbols []symbol, out []int32) []int32 {
	for i := int32(0); i >= 0 && int(i) < len(symbols); i = symbols[i].next {
		out = append(out, symbols[i].id)
	}
	return out
}

// mergeTexts is merging by text: two neighbours may merge if their concatenation is a token, ranked by that token (by falling score in SentencePiece
// BPE, by rising id in rank files without merges).
func (m *bpe) mergeTexts(word string, sc *scratch, out []int32) []int32 {
	symbols := sc.symbols[:0]
	for i := 0; i < len(word); {
		w, frozen := m.width(word[i:], sc)
		n := int32(len(symbols))
		id, ok := m.lookup[word[i:i+w]]
		if !ok {
			id = -1
		}
		symbols = append(symbols, symbol{id: id, start: int32(i), end: int32(i + w), prev: n - 1, next: n + 1, frozen: frozen})
		i += w
	}
	if len(symbols) == 0 {
		return out
	}
	symbols[len(symbols)-1].next = -1
	sc.symbols, sc.queue = symbols, sc.queue[:0]
	offer := func(left int32) {
		right := symbols[left].next
		if right < 0 || symbols[left].frozen || symbols[right].frozen {
			return
		}
		end := symbols[right].end
		id, ok := m.lookup[word[symbols[left].start:end]]
		if ok && m.ranks[id] != noPair {
			sc.queue.push(candidate{rank: m.ranks[id], pos: left, id: id, left: symbols[left].end, right: end})
			if m.unused != nil && m.unused[id] {
				sc.apart(word[symbols[left].start:end], symbols[left].end-symbols[left].start)
			}
		}
	}
	for i := range symbols {
		offer(int32(i))
	}
	for len(sc.queue) > 0 {
		c := sc.queue.pop()
		l := &symbols[c.pos]
		if l.end != c.left || l.next < 0 || symbols[l.next].end != c.right {
			continue
		}
		join(symbols, c.pos, c.id)
		if l.prev >= 0 {
			offer(l.prev)
		}
		offer(c.pos)
	}
	return m.collectTexts(word, symbols, sc, out)
}

// collectTexts appends the ids of symbols; characters without a token are spelled in bytes or become unknown.
func (m *bpe) collectTexts(word string, symbols []symbol, sc *scratch, out []int32) []int32 {
	unknown := false
	for i := int32(0); i >= 0; i = symbols[i].next {
		s := symbols[i]
		out, unknown = m.appendSymbol(word[s.start:s.end], s.id, unknown, sc, out)
	}
	return out
}

// appendSymbol appends the id of a symbol, or what stands for it. A piece that is not to be used falls apart into the two that it was last seen to be
// merged from, which are shorter, so it ends; one that was never merged is unknown.
func (m *bpe) appendSymbol(text string, id int32, unknown bool, sc *scratch, out []int32) ([]int32, bool) {
	if id >= 0 && m.unused != nil && m.unused[id] {
		if left, ok := sc.parts[text]; ok {
			for _, part := range []string{text[:left], text[left:]} {
				id, ok := m.lookup[part]
				if !ok {
					id = -1
				}
				out, unknown = m.appendSymbol(part, id, unknown, sc, out)
			}
			return out, unknown
		}
		id = -1
	}
	switch {
	case id >= 0:
		return append(out, id), false
	case m.fallback && m.hasBytes(text):
		for _, b := range []byte(text) {
			out = append(out, m.bytes[b])
		}
		return out, false
	case m.unk >= 0 && !(m.fuseUnk && unknown):
		return append(out, m.unk), true
	}
	return out, unknown
}

// width is the size of the symbol that text begins with, and whether it never merges.
func (m *bpe) width(text string, sc *scratch) (size int, frozen bool) {
	if m.user != nil && !sc.strict {
		if _, size = m.user.longest(text, nil); size > 0 {
			return size, true
		}
	}
	if m.byteLevel {
		return 1, false
	}
	_, size = utf8.DecodeRuneInString(text)
	return size, false
}

// apart remembers that a piece was offered as the merge of two parts, the first of so many bytes.
func (sc *scratch) apart(piece string, left int32) {
	if sc.parts == nil {
		sc.parts = map[string]int32{}
	}
	sc.parts[piece] = left
}
