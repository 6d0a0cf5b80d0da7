package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/tensor"
)

// columnOrders are attributes of steps that say in which order the columns of
// their weights lie: files of one format may have another, with the same answer.
var columnOrders = []string{"gated_delta.Tile"}

// readBack traces the files to be made as this program will read them, and
// holds that against the files at hand: a conversion may not be read otherwise
// than what it was made of. The mirror's own trace does not show that, as a
// specification may take convertingKey for leave to read otherwise.
func (r *rebinder) readBack() error {
	plain := *r.to
	plain.config = maps.Clone(r.to.config)
	delete(plain.config, convertingKey)
	o := Options{AllowUnused: true}
	if r.result.Binding == GGUF {
		o.Set = r.s.opts.Set
	}
	t := newTracer(&plain, o)
	if _, err := t.run(r.s.fileName(), r.s.Source); err != nil {
		return fmt.Errorf("spec: %w: read back: %w", ErrRebind, err)
	}
	s := newSolver()
	c := &comparison{pair: func(a, b *graph.Weight, _ graph.Line) error { return s.set(b, a) }, known: r.numbersIn}
	if err := c.graphs(r.from.b.G, t.b.G); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if slices.Equal(c.other, columnOrders) {
		return nil
	}
	if len(c.other)+len(c.heads) > 0 {
		return fmt.Errorf("spec: %w: read back, these are others: %s", ErrRebind, strings.Join(append(slices.DeleteFunc([]string{inWords(c.other)}, func(s string) bool { return s == "" }), c.heads...), ", "))
	}
	if err := s.join(); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	for _, list := range [][]ReboundTensor{r.result.Tensors, r.result.Aside} {
		for _, x := range list {
			if v := s.values[x.Name]; v != nil && place(v) != place(x.Value) {
				return fmt.Errorf("spec: %w: read back, %s is %s, not %s", ErrRebind, x.Name, place(v), place(x.Value))
			}
		}
	}
	return nil
}

// opens reads the folder to be made as it will be read: what the file carries, or
// was given by Set, may make it another model's, or one that nothing reads. s is
// what the caller chose, who may need to do so for the folder as well.
func (r *rebinder) opens(s *Spec) error {
	given := len(s.opts.Set) > 0
	if r.result.Binding != HF || !given && s.opts.Name+s.opts.SpecFile != "" {
		return nil
	}
	folder := &mirror{binding: HF, config: r.result.Config, views: map[string]tensor.View{}}
	for _, t := range r.result.Tensors {
		folder.add(t.Name, t.Value.Shape)
	}
	chosen, err := Resolve(folder, Options{Name: s.opts.Name, SpecFile: s.opts.SpecFile, AllowUnused: true})
	switch {
	case err != nil && !given:
		return fmt.Errorf("spec: %w: the folder could not be read back: %w", ErrRebind, err)
	case err != nil:
		return fmt.Errorf("spec: %w: %w", ErrGiven, err)
	case !given:
		return nil
	}
	if s.opts.Name == "" && chosen.Name != r.s.Name {
		return fmt.Errorf("spec: %w: it would be read by the specification %s, and the file is by %s", ErrGiven, chosen.Name, r.s.Name)
	}
	if _, err := chosen.Trace(folder); err != nil {
		return fmt.Errorf("spec: %w: %w", ErrGiven, err)
	}
	return nil
}
