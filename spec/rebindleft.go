package spec

import (
	"slices"

	"github.com/inferflow/inferflow/internal/graph"
)

// noteLeft tells of stored tensors that do not go along: those of other parts
// of a model of images and sound, and others that the specification ignores.
func (r *rebinder) noteLeft() {
	if part, ok := r.files.(*textFiles); ok {
		if list := otherParts(r.files.TensorNames()); len(list) > 0 {
			r.note("only the text model is converted, the one of %s; %d tensors of other parts do not go along (such as %s)", part.key, len(list), namedTensor(list[0]))
		}
	}
	if list := r.left(); len(list) > 0 {
		r.note("%d tensors that the specification does not read do not go along (such as %s)", len(list), namedTensor(list[0]))
	}
}

// left lists the stored matrices that nothing of the result is made of, but for
// buffers, copies of the table of tokens, and what was filled in for other readers.
func (r *rebinder) left() (names []string) {
	used := map[string]bool{}
	for _, t := range slices.Concat(r.result.Tensors, r.result.Aside) {
		for _, name := range t.Value.Tensors(nil) {
			used[name] = true
		}
	}
	table := r.tokenTable()
	for _, name := range r.files.TensorNames() {
		v, ok := r.files.Tensor(name)
		if !ok || used[name] || len(v.Shape) < 2 || slices.Equal([]int(v.Shape), table) || r.from.used[name] || r.from.others[name] || r.from.filled[name] {
			continue
		}
		if key, _ := generalise(name); !slices.ContainsFunc(standardIgnored, func(m matcher) bool { return m.fits(name, key) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tokenTable is the shape of the table of tokens.
func (r *rebinder) tokenTable() []int {
	for _, n := range r.from.b.G.Nodes {
		if a, ok := n.Attr.(*graph.EmbedAttr); ok && a.Table != nil {
			return a.Table.Shape
		}
	}
	return nil
}
