package pattern

import (
	"unicode/utf8"
)

// look reports whether lookahead n holds at pos.
func (s *searcher) look(n, pos int) bool {
	l := &s.p.looks[n]
	if l.class != nil {
		return s.one(l.class, pos) > 0
	}
	if s.tables == nil {
		s.tables = make([][]uint64, len(s.p.looks))
	}
	if s.tables[n] == nil {
		s.tables[n] = s.lookTable(l)
	}
	return s.tables[n][pos>>6]>>(pos&63)&1 != 0
}

// lookTable answers a lookahead for every position of the text in one pass from its end: whether instruction pc leads to the body's end from pos
// depends only on the instructions at pos and on those behind the rune at pos. So long lookaheads cost the same as short ones.
func (s *searcher) lookTable(l *look) []uint64 {
	table := make([]uint64, len(s.text)/64+1)
	after := make([]bool, len(l.prog)) // at the position behind the rune
	here := make([]bool, len(l.prog))
	for pos := len(s.text); pos >= 0 && !s.spent(); {
		clear(here)
		for changed := true; changed; s.looked += len(l.prog) { // until nothing changes: a loop's exit may be known later than its entry
			changed = false
			for pc := len(l.prog) - 1; pc >= 0; pc-- {
				if !here[pc] && s.holds(l.prog, pc, pos, here, after) {
					here[pc], changed = true, true
				}
			}
		}
		if here[0] {
			table[pos>>6] |= 1 << (pos & 63)
		}
		here, after = after, here
		_, w := utf8.DecodeLastRuneInString(s.text[:pos])
		pos -= max(w, 1)
	}
	return table
}

// holds reports whether instruction pc leads to the end of the body from pos, as far as here and after tell.
func (s *searcher) holds(prog []inst, pc, pos int, here, after []bool) bool {
	i := prog[pc]
	switch i.op {
	case opClass:
		return s.one(s.p.classes[i.x], pos) > 0 && after[pc+1]
	case opSplit:
		return here[i.x] || here[i.y]
	case opJump:
		return here[i.x]
	case opMatch:
		return true
	case opAssert:
		return here[pc+1] && s.assert(assertKind(i.x), pos)
	case opLook:
		return here[pc+1] && s.look(int(i.x), pos) == (i.y == 0)
	case opBehind:
		r, w := utf8.DecodeLastRuneInString(s.text[:pos])
		return here[pc+1] && (w > 0 && s.p.classes[i.x].has(r)) == (i.y == 0)
	}
	return false
}
