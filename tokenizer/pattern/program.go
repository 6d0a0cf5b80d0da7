package pattern

import (
	"fmt"
)

type opcode uint8

const (
	opClass  opcode = iota // one rune of class x, then the next instruction
	opSplit                // try x first, then y
	opJump                 // go on at x
	opMatch                // the end
	opRun                  // min to max runes of class x, as many as there are first
	opStar                 // any number of runes of class x, as many as there are first
	opStarP                // the same without giving any back
	opRunP                 // min to max runes without giving any back
	opAssert               // assertion x holds here
	opLook                 // lookahead x holds here (y != 0: does not)
	opBehind               // the rune before is of class x (y != 0: is not, or there is none)
)

type inst struct {
	op       opcode
	x, y     int32
	min, max int32
}

// look is a lookahead: of one class, or a program of its own (free of opRun and its kin) whose entry is at.
type look struct {
	class *class
	prog  []inst
}

// maxProgram bounds the instructions of a pattern after its repeats are unfolded.
const maxProgram = 1 << 14

// Pattern is a compiled pattern. It is immutable and safe for concurrent use.
type Pattern struct {
	src     string
	prog    []inst
	classes []*class
	looks   []look
	first   [256]bool // bytes that a match can begin with
	empty   bool      // the pattern can match without reading a rune, so first says nothing
	fast    scanner   // a matcher of its own; nil: none
	covers  bool      // fast matches everywhere
}

// Compile parses src and prepares it. The error says where in src it stands and what is not supported.
func Compile(src string) (*Pattern, error) {
	n, err := parse(src)
	if err != nil {
		return nil, fmt.Errorf("pattern: %.200q: %w", src, err)
	}
	p := &Pattern{src: src}
	c := compiler{p: p}
	if err := c.node(n); err != nil {
		return nil, fmt.Errorf("pattern: %.200q: %w", src, err)
	}
	c.emit(inst{op: opMatch})
	p.prog = c.prog
	p.empty = !p.reachFirst(0, make([]bool, len(p.prog)))
	if p.fast, p.covers = scannerFor(src); p.fast == nil {
		p.fast = p.runScanner()
	}
	return p, nil
}

// Scanner returns a function that gives the end of the match at a position, for patterns that match something everywhere and have a matcher of their
// own; nil for others. Positions must lie inside the text.
func (p *Pattern) Scanner() func(text string, pos int) int {
	if !p.covers {
		return nil
	}
	return p.fast
}

// String returns the source of the pattern.
func (p *Pattern) String() string { return p.src }

type compiler struct {
	p      *Pattern
	prog   []inst
	inLook bool // the program is a lookahead's: loops stay loops, for the pass that reads them backwards
}

func (c *compiler) emit(i inst) int {
	c.prog = append(c.prog, i)
	return len(c.prog) - 1
}

func (c *compiler) class(s *set) int32 {
	k := newClass(s)
	for i, d := range c.p.classes {
		if k.equal(d) {
			return int32(i)
		}
	}
	c.p.classes = append(c.p.classes, k)
	return int32(len(c.p.classes) - 1)
}

func (c *compiler) node(n *node) error {
	if len(c.prog) > maxProgram {
		return fmt.Errorf("the pattern unfolds to more than %d steps", maxProgram)
	}
	switch n.kind {
	case nodeSet:
		c.emit(inst{op: opClass, x: c.class(n.set)})
	case nodeConcat:
		for _, sub := range n.subs {
			if err := c.node(sub); err != nil {
				return err
			}
		}
	case nodeAlternate:
		return c.alternate(n)
	case nodeRepeat:
		return c.repeat(n)
	case nodeLook:
		return c.look(n)
	case nodeBehind:
		c.emit(inst{op: opBehind, x: c.class(asSet(n.subs[0])), y: flag(n.negated)})
	case nodeAssert:
		c.emit(inst{op: opAssert, x: int32(n.assert)})
	}
	return nil
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func (c *compiler) alternate(n *node) error {
	if s := asSet(n); s != nil {
		c.emit(inst{op: opClass, x: c.class(s)})
		return nil
	}
	var ends []int
	for i, sub := range n.subs {
		last := i == len(n.subs)-1
		split := -1
		if !last {
			split = c.emit(inst{op: opSplit})
			c.prog[split].x = int32(len(c.prog))
		}
		if err := c.node(sub); err != nil {
			return err
		}
		if !last {
			ends = append(ends, c.emit(inst{op: opJump}))
			c.prog[split].y = int32(len(c.prog))
		}
	}
	for _, e := range ends {
		c.prog[e].x = int32(len(c.prog))
	}
	return nil
}

func (c *compiler) repeat(n *node) error {
	sub := n.subs[0]
	s := asSet(sub)
	if n.mode == possessive && s == nil {
		return fmt.Errorf("a possessive repeat of more than one character is not supported")
	}
	if s != nil && !c.inLook && n.mode != lazy {
		c.run(n, c.class(s))
		return nil
	}
	if n.mode == possessive {
		return fmt.Errorf("a possessive repeat inside a lookahead is not supported")
	}
	for range n.min {
		if err := c.node(sub); err != nil {
			return err
		}
	}
	if n.max < 0 {
		return c.loop(sub, n.mode == lazy)
	}
	var splits []int
	for range n.max - n.min {
		splits = append(splits, c.emit(inst{op: opSplit}))
		if err := c.node(sub); err != nil {
			return err
		}
	}
	for _, at := range splits {
		c.branch(at, at+1, len(c.prog), n.mode == lazy)
	}
	return nil
}

// run compiles a repeat of one class. An unbounded one is its least count and a star, so that a state of the star says nothing of how it was reached.
func (c *compiler) run(n *node, class int32) {
	run, star := opRun, opStar
	if n.mode == possessive {
		run, star = opRunP, opStarP
	}
	switch {
	case n.max >= 0:
		c.emit(inst{op: run, x: class, min: int32(n.min), max: int32(n.max)})
	case n.min == 0:
		c.emit(inst{op: star, x: class})
	case n.min == 1:
		c.emit(inst{op: opClass, x: class})
		c.emit(inst{op: star, x: class})
	default:
		c.emit(inst{op: opRunP, x: class, min: int32(n.min), max: int32(n.min)})
		c.emit(inst{op: star, x: class})
	}
}

func (c *compiler) loop(sub *node, lazy bool) error {
	split := c.emit(inst{op: opSplit})
	if err := c.node(sub); err != nil {
		return err
	}
	c.emit(inst{op: opJump, x: int32(split)})
	c.branch(split, split+1, len(c.prog), lazy)
	return nil
}

// branch points the split at to its body and its exit, in the order of preference.
func (c *compiler) branch(at, body, exit int, lazy bool) {
	if lazy {
		body, exit = exit, body
	}
	c.prog[at].x, c.prog[at].y = int32(body), int32(exit)
}

func (c *compiler) look(n *node) error {
	l := look{}
	if s := asSet(n.subs[0]); s != nil {
		l.class = c.p.classes[c.class(s)]
	} else {
		sub := compiler{p: c.p, inLook: true}
		if err := sub.node(n.subs[0]); err != nil {
			return err
		}
		sub.emit(inst{op: opMatch})
		l.prog = sub.prog
	}
	c.p.looks = append(c.p.looks, l)
	c.emit(inst{op: opLook, x: int32(len(c.p.looks) - 1), y: flag(n.negated)})
	return nil
}

// reachFirst marks the bytes that can begin a match from instruction pc on. It reports false if the end can be reached without reading.
func (p *Pattern) reachFirst(pc int, seen []bool) bool {
	for {
		if seen[pc] {
			return true
		}
		seen[pc] = true
		i := p.prog[pc]
		switch i.op {
		case opClass:
			p.markFirst(p.classes[i.x])
			return true
		case opRun, opRunP, opStar, opStarP:
			p.markFirst(p.classes[i.x])
			if i.min > 0 {
				return true
			}
			pc++
		case opSplit:
			if !p.reachFirst(int(i.x), seen) {
				return false
			}
			pc = int(i.y)
		case opJump:
			pc = int(i.x)
		case opMatch:
			return false
		default: // assertions narrow, they never widen
			pc++
		}
	}
}

func (p *Pattern) markFirst(c *class) {
	for b := range 0x80 {
		if c.hasASCII(byte(b)) {
			p.first[b] = true
		}
	}
	if c.mask != 0 || c.wide != nil {
		for b := 0x80; b < 0x100; b++ {
			p.first[b] = true
		}
	}
}
