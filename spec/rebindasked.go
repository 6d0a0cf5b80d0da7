package spec

import (
	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// asked records what a trace asked for. A nil one records nothing.
type asked struct {
	tensors []askedTensor
	seen    map[string]bool
	paused  int
	groups  []askedKeys
	ropes   []askedRope         // of each rotary table
	keys    map[string][]string // gguf(config=…): key of config.json → GGUF keys
	write   []*starlark.Dict    // gguf(write=…): GGUF key → value or function of c
	differs []starlark.Callable // gguf(differs=…): how llama.cpp answers otherwise
	folder  []*starlark.Dict    // gguf(folder=…): key of config.json → value or function of c
	shapes  []*starlark.Dict    // gguf(shape=…): tensor of a block → sizes or function of c
	aside   []starlark.Callable // gguf(aside=…): tensors that llama.cpp has no room for
	fill    []*starlark.Dict    // gguf(fill=…): tensors that llama.cpp wants → what they repeat
	lines   map[any]graph.Line  // of the gguf(…) that each of these stands in
	// supply adds a stack of experts that the other binding names otherwise.
	supply func(t *tracer, pattern string, n int)
	// lacking adds a tensor that only the other binding has.
	lacking func(t *tracer, name string, shape []int) (stored string)
}

// askedTensor is a reference name that was found; experts is above 0 for a
// pattern with {e}.
type askedTensor struct {
	name    string
	experts int
	shape   []int
	w       *graph.Weight
}

// askedKeys are the names under which a value was looked for.
type askedKeys struct {
	prefix  string
	keys    []string
	value   starlark.Value
	missing bool // value is the specification's default
}

// askedRope is what a rotary table was made of.
type askedRope struct {
	theta float64
	kind  string
}

func (a *asked) rope(theta float64, kind string) {
	if a != nil {
		a.ropes = append(a.ropes, askedRope{theta, kind})
	}
}

func (a *asked) tensor(name string, experts int, w *weightValue) {
	if a == nil || a.paused > 0 || w == nil || w.w == nil || a.seen[name] {
		return
	}
	a.seen[name] = true
	a.tensors = append(a.tensors, askedTensor{name, experts, w.w.Shape, w.w})
}

func (a *asked) pause() {
	if a != nil {
		a.paused++
	}
}

func (a *asked) goOn() {
	if a != nil {
		a.paused--
	}
}

func (a *asked) config(prefix string, keys []string, v starlark.Value, missing bool) {
	if a != nil {
		a.groups = append(a.groups, askedKeys{prefix, keys, v, missing})
	}
}

func (a *asked) mapped(key string, alts []string) {
	if a != nil {
		a.keys[key] = alts
	}
}

func (a *asked) declared(line graph.Line, write, shape, folder, fill *starlark.Dict, differs, aside starlark.Callable) {
	if a == nil {
		return
	}
	for _, part := range []any{write, fill, differs, aside} {
		if part != nil {
			a.lines[part] = line
		}
	}
	if aside != nil {
		a.aside = append(a.aside, aside)
	}
	if folder != nil {
		a.folder = append(a.folder, folder)
	}
	if differs != nil {
		a.differs = append(a.differs, differs)
	}
	if write != nil {
		a.write = append(a.write, write)
	}
	if fill != nil {
		a.fill = append(a.fill, fill)
	}
	if shape != nil {
		a.shapes = append(a.shapes, shape)
	}
}

func newAsked() *asked {
	return &asked{seen: map[string]bool{}, keys: map[string][]string{}, lines: map[any]graph.Line{}}
}
