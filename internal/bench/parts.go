package bench

import (
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

func cachesOf(g *graph.Graph) []CacheInfo {
	var out []CacheInfo
	for _, c := range g.Caches {
		i := CacheInfo{Kind: string(c.Kind), Heads: c.Heads, KeyDim: c.KeyDim, ValueDim: c.ValueDim, Window: c.Window, First: c.First, Size: c.Size}
		switch {
		case c.Memory && c.Kept:
			i.Source = "kept"
		case c.Memory:
			i.Source = "encoding"
		}
		at := slices.IndexFunc(out, func(o CacheInfo) bool {
			o.Layers = nil
			return o.Kind == i.Kind && o.Source == i.Source && o.Heads == i.Heads && o.KeyDim == i.KeyDim && o.ValueDim == i.ValueDim && o.Window == i.Window && o.First == i.First && o.Size == i.Size
		})
		if at < 0 {
			at = len(out)
			out = append(out, i)
		}
		out[at].Layers = append(out[at].Layers, c.Layer)
	}
	return out
}

// lines groups the nodes by the line that made them, in order of the file.
func lines(t *spec.Traced) []Line {
	var out []Line
	at := map[graph.Line]int{}
	for _, n := range t.Graph.Nodes {
		i, ok := at[n.Line]
		if !ok {
			i = len(out)
			at[n.Line] = i
			out = append(out, Line{File: n.Line.File, Line: n.Line.Line, Text: lineText(t, n.Line)})
		}
		out[i].add(n)
	}
	slices.SortStableFunc(out, func(a, b Line) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return out
}

func (l *Line) add(n *graph.Node) {
	if !slices.Contains(l.Layers, n.Layer) {
		l.Layers = append(l.Layers, n.Layer)
	}
	name := nodeName(n)
	for i := range l.Nodes {
		if l.Nodes[i].Op == name && slices.Equal(l.Nodes[i].Shape, n.Shape) {
			l.Nodes[i].Count++
			return
		}
	}
	l.Nodes = append(l.Nodes, NodeCount{name, n.Shape, 1})
}

// lineText is the specification's own line, "" for one of another file.
func lineText(t *spec.Traced, l graph.Line) string {
	if l.Line < 1 || l.Line > len(t.Lines) || strings.TrimSuffix(l.File, ".star") != strings.TrimSuffix(t.SpecName, ".star") {
		return ""
	}
	return t.Lines[l.Line-1]
}

// nodeName is a node's operation, or its function where that says more.
func nodeName(n *graph.Node) string {
	switch a := n.Attr.(type) {
	case *graph.UnaryAttr:
		return a.F
	case *graph.BinaryAttr:
		return a.F
	case *graph.ReduceAttr:
		return a.F
	case *graph.NormAttr:
		return string(a.Kind) + " norm"
	}
	return string(n.Op)
}

func groups(p *program.Program, src Source, r *reads) []Group {
	var out []Group
	for _, g := range program.Groups(p) {
		o := Group{Title: g.Title, Layers: g.Layers}
		for i, text := range g.Text {
			s := &p.Steps[g.First[0]+i]
			step := Step{Kind: string(s.Kind), Text: strings.TrimSpace(strings.TrimPrefix(text, string(s.Kind))), Why: s.Why, Types: []string{}, Lines: []int{}}
			for _, l := range s.Lines(p.Graph) {
				step.Lines = append(step.Lines, l.Line)
			}
			for _, first := range g.First {
				step.at = append(step.at, first+i)
				step.Bytes += r.steps[first+i].all()
				step.types(&p.Steps[first+i], p, src)
			}
			o.Steps = append(o.Steps, step)
		}
		out = append(out, o)
	}
	return out
}

// types adds the storage types of a step's matrices.
func (s *Step) types(st *program.Step, p *program.Program, src Source) {
	for _, w := range st.Weights(p.Graph) {
		if len(w.Shape) < 2 || tensor.Shape(w.Shape).Rows() == 1 {
			continue
		}
		if t, ok := storedType(src, w); ok && !slices.Contains(s.Types, t.String()) {
			s.Types = append(s.Types, t.String())
		}
	}
}

// notFused lists the steps that give a reason, alike ones together.
func notFused(p *program.Program) []NotFused {
	out := []NotFused{}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Why == "" {
			continue
		}
		n := NotFused{Why: s.Why, Op: string(s.Kind)}
		if len(s.Nodes) > 0 {
			n.Op, n.Line = nodeName(p.Graph.Nodes[s.Nodes[0]]), p.Graph.Nodes[s.Nodes[0]].Line.String()
		}
		at := slices.IndexFunc(out, func(o NotFused) bool { return o.Op == n.Op && o.Line == n.Line && o.Why == n.Why })
		if at < 0 {
			at = len(out)
			out = append(out, n)
		}
		if l := out[at].Layers; len(l) == 0 || l[len(l)-1] != s.Layer {
			out[at].Layers = append(l, s.Layer)
		}
	}
	return out
}
