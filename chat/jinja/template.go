package jinja

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Limits bound what a template may use; a zero field means its default.
type Limits struct {
	Steps  int   // nodes evaluated and items visited; default 4 million
	Output int   // bytes of any one string and of the output; default 16 MiB
	Memory int64 // bytes allocated in all for strings and lists; default 256 MiB
	Source int   // bytes of template source; default 1 MiB
	// Time is the last resort against work that steps do not count; default 30 s.
	Time time.Duration
}

func (l Limits) orDefaults() Limits {
	if l.Steps == 0 {
		l.Steps = 4_000_000
	}
	if l.Output == 0 {
		l.Output = 16 << 20
	}
	if l.Memory == 0 {
		l.Memory = 256 << 20
	}
	if l.Source == 0 {
		l.Source = 1 << 20
	}
	if l.Time == 0 {
		l.Time = 30 * time.Second
	}
	return l
}

// maxDepth bounds nested evaluations, macro calls among them.
const maxDepth = 2000

// Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct {
	body  []stmt
	lim   Limits
	reads map[string]bool
}

// Parse reads a template. Errors are *Error of kind ErrSyntax (with line and
// column) or ErrLimit.
func Parse(source string, lim Limits) (*Template, error) {
	lim = lim.orDefaults()
	if len(source) > lim.Source {
		return nil, limitf("the template has %d bytes, more than the limit of %d", len(source), lim.Source)
	}
	toks, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{toks: toks, reads: map[string]bool{}}
	body, _, err := p.body(pos{})
	if err != nil {
		return nil, err
	}
	return &Template{body, lim, p.reads}, nil
}

// Reads says whether the template names a variable, be it one of its own.
func (t *Template) Reads(name string) bool { return t.reads[name] }

// Names are those that Reads knows, in order.
func (t *Template) Names() []string { return slices.Sorted(maps.Keys(t.reads)) }

// Piece is a stretch of rendered text that came either from the template or,
// with User set, from the data that the caller gave.
type Piece struct {
	Text string
	User bool
}

// Render runs the template over the variables; now is what strftime_now tells.
// Neighbouring pieces differ in User, and none is empty. Errors are *Error.
func (t *Template) Render(vars *Dict, now time.Time) ([]Piece, error) {
	return t.RenderWithin(context.Background(), 0, vars, now)
}

// RenderWithin is Render in at most the given steps (0, or more than the
// template's own limit: that one). It ends with ctx's error soon after ctx does.
func (t *Template) RenderWithin(ctx context.Context, steps int, vars *Dict, now time.Time) ([]Piece, error) {
	lim := t.lim
	if steps > 0 {
		lim.Steps = min(lim.Steps, steps)
	}
	pieces, _, err := t.render(ctx, lim, vars, now)
	return pieces, err
}

// Budget is what is left for several renderings together.
type Budget struct {
	Steps  int
	Memory int64
}

// RenderFrom is Render at the expense of a budget, within the template's own
// limits. A rendering that needs more than is left is ErrLimit, as are all
// behind it.
func (t *Template) RenderFrom(b *Budget, vars *Dict, now time.Time) ([]Piece, error) {
	if b.Steps <= 0 || b.Memory <= 0 {
		return nil, limitf("the budget of several renderings is used up")
	}
	lim := t.lim
	lim.Steps, lim.Memory = min(lim.Steps, b.Steps), min(lim.Memory, b.Memory)
	pieces, r, err := t.render(context.Background(), lim, vars, now)
	b.Steps, b.Memory = b.Steps-r.steps, b.Memory-r.mem
	return pieces, err
}

func (t *Template) render(ctx context.Context, lim Limits, vars *Dict, now time.Time) ([]Piece, *run, error) {
	r := &run{ctx: ctx, lim: lim, end: time.Now().Add(lim.Time), now: now, out: &strBuilder{}, filters: filters, tests: tests,
		attrOf: (*run).attr, itemOf: (*run).item}
	root := &scope{vars: map[string]Value{}, parent: &scope{vars: globals}}
	for i, k := range vars.keys {
		if name, ok := k.(Str); ok {
			root.vars[name.s] = vars.vals[i]
		}
	}
	if err := r.block(t.body, root); err != nil {
		if err == errBreak || err == errContinue {
			err = errorf("break or continue outside a loop")
		}
		return nil, r, err
	}
	return r.out.str().pieces(), r, nil
}

func (s Str) pieces() []Piece {
	var out []Piece
	at := 0
	for _, u := range s.user {
		if u.lo > at {
			out = append(out, Piece{s.s[at:u.lo], false})
		}
		out = append(out, Piece{s.s[u.lo:u.hi], true})
		at = u.hi
	}
	if at < len(s.s) {
		out = append(out, Piece{s.s[at:], false})
	}
	return out
}

// run is the state of one rendering.
type run struct {
	ctx   context.Context
	lim   Limits
	now   time.Time
	end   time.Time
	steps int
	look  int // steps at which ctx is asked again
	mem   int64
	depth int
	out   *strBuilder
	// the tables are fields so that what they hold may look into them
	filters map[string]filterFunc
	tests   map[string]testFunc
	attrOf  func(*run, Value, string) (Value, error)
	itemOf  func(*run, Value, Value) (Value, error)
}

// step pays for n units of work.
func (r *run) step(n int) error {
	if r.steps += n; r.steps > r.lim.Steps {
		return limitf("more than %d steps", r.lim.Steps)
	}
	if r.steps >= r.look {
		r.look = r.steps + 4096
		if !r.end.IsZero() && time.Now().After(r.end) {
			return limitf("more than %v of time", r.lim.Time)
		}
		return r.ctx.Err()
	}
	return nil
}

// enter pays for a node and bounds the nesting; leave undoes the latter.
func (r *run) enter() error {
	if r.depth++; r.depth > maxDepth {
		return limitf("evaluation nested deeper than %d levels", maxDepth)
	}
	return r.step(1)
}

func (r *run) leave() { r.depth-- }

// text pays for a string about to be made of n bytes. Copying costs steps too,
// so that doubling a string over and over is soon too dear.
func (r *run) text(n int) error {
	if n > r.lim.Output {
		return limitf("a string of %d bytes, more than the limit of %d", n, r.lim.Output)
	}
	if r.mem += int64(n) + 32; r.mem > r.lim.Memory {
		return limitf("more than %d bytes of memory", r.lim.Memory)
	}
	return r.step(n / 256)
}

// chars pays for work on each of n bytes of a string.
func (r *run) chars(n int) error {
	if err := r.text(n); err != nil {
		return err
	}
	return r.step(n / charBytes)
}

// list pays for n list items.
func (r *run) list(n int) error {
	if r.mem += int64(n) * 64; r.mem > r.lim.Memory {
		return limitf("more than %d bytes of memory", r.lim.Memory)
	}
	return r.step(n / 8)
}

func (r *run) write(s Str) error {
	if r.out.len()+len(s.s) > r.lim.Output {
		return limitf("more than %d bytes of output", r.lim.Output)
	}
	if err := r.text(len(s.s)); err != nil {
		return err
	}
	r.out.add(s)
	return r.made(s)
}

// scope holds the names of one block; names not found are looked for outwards.
// The few that a loop's body has lie in few, without a map for each turn.
type scope struct {
	few    [fewNames]binding
	n      int
	vars   map[string]Value // all names where there are more, else nil
	parent *scope
}

type binding struct {
	name string
	v    Value
}

const fewNames = 4

func (s *scope) inner() *scope { return &scope{parent: s} }

func (s *scope) get(name string) (Value, bool) {
	for ; s != nil; s = s.parent {
		if s.vars != nil {
			if v, ok := s.vars[name]; ok {
				return v, true
			}
			continue
		}
		for i := range s.few[:s.n] {
			if s.few[i].name == name {
				return s.few[i].v, true
			}
		}
	}
	return nil, false
}

func (s *scope) set(name string, v Value) {
	if s.vars != nil {
		s.vars[name] = v
		return
	}
	for i := range s.few[:s.n] {
		if s.few[i].name == name {
			s.few[i].v = v
			return
		}
	}
	if s.n < fewNames {
		s.few[s.n] = binding{name, v}
		s.n++
		return
	}
	s.vars = make(map[string]Value, 2*fewNames)
	for _, b := range s.few {
		s.vars[b.name] = b.v
	}
	s.vars[name] = v
}
