package pattern

import (
	"unicode"
)

// set is a set of runes as a pattern writes it: a union of categories, ranges, a script and other sets, perhaps negated, perhaps cut with others.
type set struct {
	mask    uint32
	ranges  []runeRange
	table   *unicode.RangeTable
	subs    []*set
	with    []*set // intersection: every one of these must hold too
	negated bool
	fold    bool // case-insensitive
}

type runeRange struct{ lo, hi rune }

func (s *set) addRune(r rune) { s.ranges = append(s.ranges, runeRange{r, r}) }

// has answers by the definition; class is the fast form.
func (s *set) has(r rune) bool {
	in := s.hasExact(r)
	if !in && s.fold {
		for f := unicode.SimpleFold(r); f != r && !in; f = unicode.SimpleFold(f) {
			in = s.hasExact(f)
		}
	}
	for _, w := range s.with {
		in = in && w.has(r)
	}
	return in != s.negated
}

func (s *set) hasExact(r rune) bool {
	if categories().bit(r)&s.mask != 0 {
		return true
	}
	for _, x := range s.ranges {
		if r >= x.lo && r <= x.hi {
			return true
		}
	}
	if s.table != nil && unicode.Is(s.table, r) {
		return true
	}
	for _, sub := range s.subs {
		if sub.has(r) {
			return true
		}
	}
	return false
}

// wideMask returns the categories that s holds among runes from U+0080 on, and whether that says all there is to say about them.
func (s *set) wideMask() (uint32, bool) {
	if s.table != nil {
		return 0, false
	}
	mask := s.mask
	for _, x := range s.ranges {
		if x.hi >= 0x80 || s.fold && foldsWide(x) {
			return 0, false
		}
	}
	for _, sub := range s.subs {
		m, ok := sub.wideMask()
		if !ok {
			return 0, false
		}
		mask |= m
	}
	if s.fold && mask != 0 && mask != maskL {
		return 0, false
	}
	for _, w := range s.with {
		m, ok := w.wideMask()
		if !ok {
			return 0, false
		}
		mask &= m
	}
	if s.negated {
		mask = ^mask & maskAll
	}
	return mask, true
}

// foldsWide reports whether an ASCII range holds k or s, whose folds (U+212A, U+017F) are not ASCII.
func foldsWide(x runeRange) bool {
	for _, r := range "kKsS" {
		if r >= x.lo && r <= x.hi {
			return true
		}
	}
	return false
}

// class is a set made ready for matching.
type class struct {
	ascii [2]uint64
	mask  uint32
	wide  *set // asked for runes from U+0080 on, if the mask does not say all
	table *categoryTable
}

func newClass(s *set) *class {
	c := &class{table: categories()}
	for r := rune(0); r < 0x80; r++ {
		if s.has(r) {
			c.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	if mask, ok := s.wideMask(); ok {
		c.mask = mask
	} else {
		c.wide = s
	}
	return c
}

func (c *class) hasASCII(b byte) bool { return c.ascii[b>>6]&(1<<(b&63)) != 0 }

func (c *class) hasWide(r rune) bool {
	if c.wide != nil {
		return c.wide.has(r)
	}
	return c.table.bit(r)&c.mask != 0
}

func (c *class) has(r rune) bool {
	if r < 0x80 {
		return c.hasASCII(byte(r))
	}
	return c.hasWide(r)
}

// equal reports whether two sets were written alike: enough to let equal classes share one program entry.
func (c *class) equal(d *class) bool {
	return c.ascii == d.ascii && c.mask == d.mask && c.wide == nil && d.wide == nil
}
