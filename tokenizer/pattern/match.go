package pattern

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// An attempt may take so many steps before failed states are remembered: fastSteps, or slowSteps in a text where an attempt was that long.
const (
	fastSteps = 4096
	slowSteps = 64
)

// While states are remembered, maxStates bounds them, for they take some 40 bytes each, and maxWork the steps, of which a short text may take workBase
// and workPerByte. A pattern that needs more in one text (none in use comes near) fails with ErrTooCostly.
const (
	maxStates   = 1 << 22
	maxWork     = 1 << 25
	workBase    = 1 << 12
	workPerByte = 1 << 10
)

// ErrTooCostly says that a pattern would take too many steps to find its matches in a text.
var ErrTooCostly = errors.New("the pattern takes too many steps on this text")

type frame struct {
	pc    int32
	trail int32 // states on the way when the frame was made (memo only)
	pos   int
	low   int // a run may give back runes down to here; -1 for a plain frame
}

type state struct {
	pc  int32
	pos int
}

// searcher matches one pattern over one text.
type searcher struct {
	p      *Pattern
	text   string
	stack  []frame
	failed map[state]struct{} // states that lead to no match, and those on the way of the attempt in progress
	trail  []state            // the latter, in order
	budget int                // steps left; below 0 while states are remembered
	work   int                // steps while states were remembered
	looked int                // steps of lookaheads
	quick  int                // steps of attempts before states were remembered
	most   int                // work of all kinds that is allowed, for EachWithin; 0: any
	tables [][]uint64         // per lookahead: a bit for each position where it holds
}

// Each calls yield with the start and end of every match in text, left to right. An empty match right behind the last match is passed over, as the
// reference does. Invalid UTF-8 is read as one U+FFFD a byte. The error wraps ErrTooCostly where the search gave up; further matches are then missing.
func (p *Pattern) Each(text string, yield func(start, end int)) error {
	return p.each(text, 0, nil, yield)
}

// EachWithin is Each at the expense of a budget for several texts, in steps: a search gives up where it is used up.
func (p *Pattern) EachWithin(text string, budget *int, yield func(start, end int)) error {
	if *budget <= 0 {
		return fmt.Errorf("pattern: %.200q: %w: the texts together", p.src, ErrTooCostly)
	}
	return p.each(text, *budget, budget, yield)
}

func (p *Pattern) each(text string, most int, budget *int, yield func(start, end int)) error {
	if p.fast != nil {
		p.eachFast(text, yield)
		return nil
	}
	s := searcher{p: p, text: text, most: most}
	if budget != nil {
		defer func() { *budget -= s.cost() }()
	}
	var stack [32]frame
	s.stack = stack[:0]
	pos, last := 0, -1
	for pos <= len(text) {
		start, end, ok := s.next(pos)
		if !ok || s.over() {
			break
		}
		if start == end && end == last {
			pos = end + s.width(end)
			continue
		}
		yield(start, end)
		pos, last = end, end
	}
	if s.spent() {
		return fmt.Errorf("pattern: %.200q: %w: %d bytes", p.src, ErrTooCostly, len(text))
	}
	return nil
}

func (p *Pattern) eachFast(text string, yield func(start, end int)) {
	for pos := 0; pos < len(text); {
		for pos < len(text) && !p.first[text[pos]] {
			pos++
		}
		if pos == len(text) {
			return
		}
		end := p.fast(text, pos)
		if end == pos {
			_, w := utf8.DecodeRuneInString(text[pos:])
			pos += w
			continue
		}
		yield(pos, end)
		pos = end
	}
}

// Match returns the end of a match that begins exactly at pos.
func (p *Pattern) Match(text string, pos int) (end int, ok bool) {
	s := searcher{p: p, text: text}
	return s.at(pos)
}

func (s *searcher) width(pos int) int {
	if pos >= len(s.text) {
		return 1
	}
	_, w := utf8.DecodeRuneInString(s.text[pos:])
	return w
}

// next finds the leftmost match that begins at pos or later.
func (s *searcher) next(pos int) (start, end int, ok bool) {
	for ; pos <= len(s.text); pos += s.width(pos) {
		if !s.p.empty {
			for pos < len(s.text) && !s.p.first[s.text[pos]] && s.text[pos] < utf8.RuneSelf {
				pos++
			}
			if pos == len(s.text) || !s.p.first[s.text[pos]] {
				continue
			}
		}
		if end, ok = s.at(pos); ok {
			return pos, end, true
		}
		if s.spent() {
			break
		}
	}
	return 0, 0, false
}

func (s *searcher) at(pos int) (int, bool) {
	steps := fastSteps
	if s.failed != nil {
		steps = slowSteps
	}
	end, ok, long := s.run(pos, steps)
	s.quick += 1 + steps - max(s.budget, 0)
	if !long {
		return end, ok
	}
	if s.failed == nil {
		s.failed = map[state]struct{}{}
	}
	if s.spent() {
		return 0, false
	}
	s.trail = s.trail[:0]
	end, ok, _ = s.run(pos, -1)
	if ok {
		for _, st := range s.trail { // the way to the match did not fail
			delete(s.failed, st)
		}
	}
	return end, ok
}

// cost is the work so far in steps of a quick attempt; one whose state is remembered is worth many.
func (s *searcher) cost() int { return s.quick + 16*s.work + s.looked }

func (s *searcher) over() bool { return s.most > 0 && s.cost() > s.most }

func (s *searcher) spent() bool {
	return s.over() || s.work > min(maxWork, workBase+workPerByte*len(s.text)) || len(s.failed) > maxStates || s.looked > maxWork+workPerByte*len(s.text)
}

// run makes one attempt at pos. With steps >= 0 it gives up after so many (long is true); with steps < 0 it remembers failed states instead.
func (s *searcher) run(pos, steps int) (end int, ok, long bool) {
	memo := steps < 0
	s.stack, s.budget = s.stack[:0], steps
	pc := int32(0)
	for {
		if memo {
			st := state{pc, pos}
			s.work++
			if _, seen := s.failed[st]; seen || s.spent() {
				pc = -1
			} else {
				s.failed[st] = struct{}{}
				s.trail = append(s.trail, st)
			}
		} else if s.budget--; s.budget < 0 {
			return 0, false, true
		}
		if pc >= 0 {
			if pc, pos = s.step(pc, pos, memo); pc == matched {
				return pos, true, false
			}
		}
		if pc < 0 {
			if pc, pos, ok = s.back(); !ok {
				return 0, false, false
			}
		}
	}
}

const (
	failedPC = -1
	matched  = -2
)

// step executes the instruction at pc and returns where to go on, failedPC or matched.
func (s *searcher) step(pc int32, pos int, memo bool) (int32, int) {
	i := &s.p.prog[pc]
	switch i.op {
	case opClass:
		if w := s.one(s.p.classes[i.x], pos); w > 0 {
			return pc + 1, pos + w
		}
		return failedPC, pos
	case opSplit:
		s.push(i.y, pos, -1)
		return i.x, pos
	case opJump:
		return i.x, pos
	case opMatch:
		return matched, pos
	case opStar, opStarP:
		return s.star(pc, pos, memo)
	case opRun, opRunP:
		return s.bounded(pc, pos)
	case opAssert:
		if s.assert(assertKind(i.x), pos) {
			return pc + 1, pos
		}
	case opLook:
		if s.look(int(i.x), pos) == (i.y == 0) {
			return pc + 1, pos
		}
	case opBehind:
		r, w := utf8.DecodeLastRuneInString(s.text[:pos])
		if (w > 0 && s.p.classes[i.x].has(r)) == (i.y == 0) {
			return pc + 1, pos
		}
	}
	return failedPC, pos
}

func (s *searcher) push(pc int32, pos, low int) {
	s.stack = append(s.stack, frame{pc: pc, pos: pos, low: low, trail: int32(len(s.trail))})
}

// back returns to the latest choice that is left. What was tried since then has failed and stays remembered.
func (s *searcher) back() (int32, int, bool) {
	n := len(s.stack)
	if n == 0 {
		return 0, 0, false
	}
	f := &s.stack[n-1]
	if int(f.trail) < len(s.trail) {
		s.trail = s.trail[:f.trail]
	}
	pc, pos := f.pc, f.pos
	if f.low < 0 {
		s.stack = s.stack[:n-1]
		return pc, pos, true
	}
	_, w := utf8.DecodeLastRuneInString(s.text[:pos])
	pos -= w
	if f.pos = pos; pos <= f.low {
		s.stack = s.stack[:n-1]
	}
	return pc, pos, true
}

// star takes a run of any length. While states are remembered it goes rune by rune, so that each place in the run is a state that can be known to fail.
// Before that a rune costs a quarter of a step, and a run that costs too much ends the attempt.
func (s *searcher) star(pc int32, pos int, memo bool) (int32, int) {
	i := &s.p.prog[pc]
	class := s.p.classes[i.x]
	if memo {
		w := s.one(class, pos)
		if w == 0 {
			return pc + 1, pos
		}
		if i.op == opStar {
			s.push(pc+1, pos, -1)
		}
		return pc, pos + w
	}
	end, n := s.scan(class, pos, 4*s.budget+4)
	s.budget -= n / 4
	if i.op == opStar && end > pos {
		s.push(pc+1, end, pos)
	}
	return pc + 1, end
}

func (s *searcher) bounded(pc int32, pos int) (int32, int) {
	i := &s.p.prog[pc]
	class := s.p.classes[i.x]
	low, n := s.scan(class, pos, int(i.min))
	if n < int(i.min) {
		return failedPC, pos
	}
	end, n := s.scan(class, low, int(i.max-i.min))
	if n > 0 && i.op == opRun {
		s.push(pc+1, end, low)
	}
	return pc + 1, end
}

// one returns the width of the rune at pos if it is of class c, else 0.
func (s *searcher) one(c *class, pos int) int {
	if pos >= len(s.text) {
		return 0
	}
	b := s.text[pos]
	if b < utf8.RuneSelf {
		if c.hasASCII(b) {
			return 1
		}
		return 0
	}
	r, w := utf8.DecodeRuneInString(s.text[pos:])
	if c.hasWide(r) {
		return w
	}
	return 0
}

// scan passes up to most runes of class c (all for most < 0) and returns where it stopped and how many they were.
func (s *searcher) scan(c *class, pos, most int) (end, n int) {
	for n != most {
		w := s.one(c, pos)
		if w == 0 {
			break
		}
		pos += w
		n++
	}
	return pos, n
}

func (s *searcher) assert(kind assertKind, pos int) bool {
	switch kind {
	case assertLineStart:
		return pos == 0 || s.text[pos-1] == '\n'
	case assertLineEnd:
		return pos == len(s.text) || s.text[pos] == '\n'
	case assertTextStart:
		return pos == 0
	case assertTextEnd:
		return pos == len(s.text)
	case assertTextEndOrNewline:
		return pos == len(s.text) || s.text[pos:] == "\n"
	}
	before, w := utf8.DecodeLastRuneInString(s.text[:pos])
	after, v := utf8.DecodeRuneInString(s.text[pos:])
	boundary := (w > 0 && IsWord(before)) != (v > 0 && IsWord(after))
	return boundary == (kind == assertBoundary)
}
