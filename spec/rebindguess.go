package spec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// guess looks for what config.json must say where a GGUF file says it by its
// tensors alone: that there are biases, which layers have experts, how wide a
// part is. The values for which the mirror's trace took a default are tried
// one after another, and those kept that bring it nearer to the trace of the
// file. Nothing is taken on trust: attempt compares the two in the end.
func (r *rebinder) guess() error {
	if r.result.Binding != HF || r.from.config.owns() {
		return ErrRebind
	}
	r.guessed = map[string]any{}
	best, err := r.near()
	budget := max(minTrials, trialNodes/max(1, len(r.from.b.G.Nodes)))
	for better := true; better && err == nil && !best.same(); {
		better = false
		for _, k := range best.open {
			for _, v := range r.values(k) {
				if budget--; budget < 0 {
					return fmt.Errorf("spec: %w: too many settings could be otherwise", ErrRebind)
				}
				was, had := r.guessed[k.name]
				r.guessed[k.name] = v
				if now, err := r.near(); err == nil && now.better(best) {
					best, better = now, true
					break
				}
				if delete(r.guessed, k.name); had {
					r.guessed[k.name] = was
				}
			}
			if better { // its trace may ask for other settings
				break
			}
		}
	}
	if err != nil {
		return err
	}
	if err := r.mirror(); err != nil {
		return err
	}
	return r.attempt()
}

// A guess traces the mirror at most so often: at least minTrials times, and
// until so many steps were traced.
const (
	minTrials  = 60
	trialNodes = 400_000
)

// nearness is how far the trace of the mirror is from that of the file.
type nearness struct {
	stopped  bool // by an error, after so many steps
	steps    int  // that are the same from the first on
	problems int
	other    int          // attributes that differ
	open     []openConfig // settings that it took defaults for
}

// openConfig is a setting that config.json lacks.
type openConfig struct {
	name  string
	value starlark.Value // the default
}

func (n nearness) same() bool { return !n.stopped && n.problems == 0 && n.other == 0 && n.steps < 0 }

func (n nearness) better(than nearness) bool {
	if n.stopped != than.stopped {
		return than.stopped
	}
	if n.stopped && n.steps != than.steps {
		return n.steps > than.steps
	}
	if n.problems != than.problems {
		return n.problems < than.problems
	}
	if n.steps != than.steps {
		return than.steps >= 0 && (n.steps < 0 || n.steps > than.steps)
	}
	return n.other < than.other
}

// near traces the mirror with what was guessed.
func (r *rebinder) near() (n nearness, err error) {
	if err = r.mirror(); err != nil {
		return n, err
	}
	if err = r.describe(); err != nil {
		return n, err
	}
	t, err := r.traceMirror()
	if t == nil {
		return n, err
	}
	n.problems, n.steps = len(t.problems), len(t.b.G.Nodes)
	n.stopped = err != nil && len(t.b.G.Outputs) == 0
	if !n.stopped {
		n.steps, n.other = r.sameSteps(t.b.G)
	}
	seen := map[string]bool{}
	for _, g := range r.from.asked.groups { // defaults of the file's trace, which config.json then says
		if name := g.prefix + g.keys[0]; r.defaults && g.missing && g.value != starlark.None && !seen[name] {
			seen[name] = true
			n.open = append(n.open, openConfig{name, g.value})
		}
	}
	for _, g := range t.asked.groups {
		if name := g.prefix + g.keys[0]; g.missing && !seen[name] {
			seen[name] = true
			n.open = append(n.open, openConfig{name, g.value})
		}
	}
	slices.SortStableFunc(n.open, func(a, b openConfig) int { return choices(a.name, a.value) - choices(b.name, b.value) })
	return n, nil
}

// choices puts settings with few other values first.
func choices(name string, v starlark.Value) int {
	switch v.(type) {
	case starlark.Bool:
		return 0
	case starlark.Float:
		return 2
	case starlark.NoneType, *starlark.List:
		return 3
	}
	if isSize(name) {
		return 4
	}
	return 1
}

// sameSteps counts the steps from the first on that both traces have, −1 for
// all, and the attributes that differ.
func (r *rebinder) sameSteps(b *graph.Graph) (steps, other int) {
	a := r.from.b.G
	c := &comparison{pair: func(a, b *graph.Weight, _ graph.Line) error {
		if graph.Product(a.Shape) != graph.Product(b.Shape) {
			return ErrRebind
		}
		return nil
	}}
	for i, x := range a.Nodes {
		if i >= len(b.Nodes) || graph.Product(x.Shape) != graph.Product(b.Nodes[i].Shape) || c.nodes(x, b.Nodes[i]) != nil {
			return i, len(c.other)
		}
	}
	for i, x := range a.Ropes {
		if i < len(b.Ropes) {
			c.ropes(x, b.Ropes[i])
		}
	}
	if len(b.Nodes) > len(a.Nodes) {
		return len(a.Nodes), len(c.other)
	}
	return -1, len(c.other)
}

// values are what a setting may be in place of its default.
func (r *rebinder) values(k openConfig) []any {
	last := k.name[strings.LastIndex(k.name, ".")+1:]
	switch v := k.value.(type) {
	case starlark.Bool:
		return []any{!bool(v)}
	case starlark.NoneType, *starlark.List:
		if strings.Contains(last, "layer") || strings.Contains(last, "types") {
			return r.kindLists()
		}
		if v == starlark.None && isSize(last) {
			return r.sizes()
		}
	case starlark.Float:
		if strings.Contains(last, "partial") || strings.Contains(last, "pct") || strings.Contains(last, "percent") {
			return r.parts()
		}
	case starlark.Int:
		if strings.Contains(last, "dense") {
			if n, ok := r.leadingDense(); ok {
				return []any{int64(n)}
			}
		}
		if isSize(last) {
			return r.sizes()
		}
	}
	return nil
}

// isSize says that a setting's name is that of a size.
func isSize(name string) bool {
	return slices.ContainsFunc([]string{"size", "dim", "rank", "heads", "groups", "kernel", "conv", "expand", "state", "width", "head_num"}, func(s string) bool { return strings.Contains(name, s) })
}

// parts are the shares of a head that rotary tables turn.
func (r *rebinder) parts() (list []any) {
	for _, t := range r.from.b.G.Ropes {
		for _, d := range r.headWidths() {
			if t.Dim < d {
				list = append(list, float64(t.Dim)/float64(d))
			}
		}
	}
	return append(list, 1.0)
}

// leadingDense counts the first layers without experts, where all after them
// have some and there are any.
func (r *rebinder) leadingDense() (first int, ok bool) {
	g := r.from.b.G
	sparse := make([]bool, g.Layers)
	for _, x := range g.Nodes {
		if x.Op == graph.OpExperts && x.Layer >= 0 && x.Layer < g.Layers {
			sparse[x.Layer] = true
		}
	}
	first = slices.Index(sparse, true)
	return first, first >= 0 && !slices.Contains(sparse[first:], false)
}

// headWidths are those of the attentions, each once.
func (r *rebinder) headWidths() (list []int) {
	for _, n := range r.from.b.G.Nodes {
		if n.Op != graph.OpAttention || len(n.In) == 0 {
			continue
		}
		shape := r.from.b.G.Nodes[n.In[0]].Shape
		if d := shape[len(shape)-1]; !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return list
}

// maxSizes bounds the sizes that are tried for one setting.
const maxSizes = 80

// sizes are the dimensions of the file's tensors and their quotients by the
// small numbers of its metadata.
func (r *rebinder) sizes() (list []any) {
	seen := map[int]bool{}
	add := func(n int) {
		if n > 0 && !seen[n] && len(list) < maxSizes {
			seen[n] = true
			list = append(list, int64(n))
		}
	}
	var dims []int
	for _, a := range r.from.asked.tensors {
		for _, d := range a.shape {
			if !slices.Contains(dims, d) {
				dims = append(dims, d)
			}
		}
	}
	var counts []int
	for _, k := range slices.Sorted(maps.Keys(r.files.Config())) {
		if n, ok := wholeOf(r.files.Config()[k]); ok && n > 1 && strings.HasPrefix(k, r.files.Architecture()+".") && !slices.Contains(counts, n) {
			counts = append(counts, n)
		}
	}
	for _, d := range dims {
		add(d)
	}
	for _, d := range append(dims, counts...) {
		for _, n := range counts {
			if d%n == 0 {
				add(d / n)
			}
		}
	}
	for _, n := range counts {
		add(n)
	}
	return list
}

// kindLists say of each layer in the usual words what the trace of the file does there.
func (r *rebinder) kindLists() (lists []any) {
	g := r.from.b.G
	attends, windowed, experts := make([]bool, g.Layers), make([]bool, g.Layers), make([]bool, g.Layers)
	for _, n := range g.Nodes {
		if n.Layer < 0 || n.Layer >= g.Layers {
			continue
		}
		switch a := n.Attr.(type) {
		case *graph.AttentionAttr:
			attends[n.Layer], windowed[n.Layer] = true, windowed[n.Layer] || a.Window > 0
		case *graph.ExpertsAttr:
			experts[n.Layer] = true
		}
	}
	for _, x := range []struct {
		flags   []bool
		yes, no string
	}{
		{experts, "sparse", "dense"}, {windowed, "sliding_attention", "full_attention"},
		{attends, "full_attention", "linear_attention"}, {attends, "full_attention", "conv"},
	} {
		if !slices.Contains(x.flags, true) {
			continue
		}
		list := make([]any, len(x.flags))
		for i, f := range x.flags {
			if list[i] = x.no; f {
				list[i] = x.yes
			}
		}
		lists = append(lists, list)
	}
	return lists
}

// wholeOf is a value of GGUF's metadata as an int.
func wholeOf(x any) (int, bool) {
	v := reflect.ValueOf(x)
	switch {
	case v.CanInt() && v.Int() == int64(int(v.Int())):
		return int(v.Int()), true
	case v.CanUint() && v.Uint() <= 1<<31:
		return int(v.Uint()), true
	}
	return 0, false
}
