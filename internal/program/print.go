package program

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
)

// Weights lists the stored tensors that a step reads, none of them nil.
func (s *Step) Weights(g *graph.Graph) []*graph.Weight {
	var list []*graph.Weight
	add := func(ws ...*graph.Weight) {
		for _, w := range ws {
			if w != nil {
				list = append(list, w)
			}
		}
	}
	norm := func(n *graph.NormAttr) {
		if n != nil {
			add(n.W, n.B)
		}
	}
	switch x := s.Body.(type) {
	case *Embed:
		add(x.Table)
	case *Norm:
		norm(x.Norm)
	case *Linear:
		norm(x.PreNorm)
		add(x.W, x.B, x.Up, x.UpB)
	case *QKV:
		norm(x.PreNorm)
		for _, h := range []*Head{&x.Q, &x.K, &x.V} {
			add(h.W, h.B)
			norm(h.Norm)
		}
	case *Attention:
		add(x.Attr.Sinks, x.Attr.Relative)
	case *MoE:
		norm(x.PreNorm)
		for _, a := range []any{x.Router, x.Route, x.Experts} {
			add(graph.AttrWeights(a)...)
		}
	case *Heads:
		for i := range x.Parts {
			add(x.Parts[i].W)
			norm(x.Parts[i].Norm)
		}
	case *OpStep:
		add(graph.AttrWeights(g.Nodes[x.Node].Attr)...)
	}
	return list
}

// Lines lists the lines of the specification whose nodes a step computes, in
// the order of the file's lines.
func (s *Step) Lines(g *graph.Graph) []graph.Line {
	var lines []graph.Line
	for _, n := range s.Nodes {
		if l := g.Nodes[n].Line; !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	slices.SortFunc(lines, func(a, b graph.Line) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return lines
}

// Group is a run of steps, and the layers that compile to the same ones.
type Group struct {
	Title  string // "before the layers", "layers 0–29", …
	Layers []int
	First  []int    // for each layer the number of its first step
	Text   []string // a line for each step, without its place
}

// Groups writes the steps of a program, layers that are alike once: the number
// of the layer, of its values and of its caches is left out, and nothing else.
func Groups(p *Program) []Group {
	var out []Group
	byText := map[string]int{}
	for from := 0; from < len(p.Steps); {
		to := from
		for to < len(p.Steps) && p.Steps[to].Layer == p.Steps[from].Layer {
			to++
		}
		l := p.Steps[from].Layer
		lines := newPrinter(p, l).steps(from, to)
		key := strings.Join(lines, "\n")
		if l < 0 || l >= p.Layers {
			key = fmt.Sprint(l, "\n", key)
		}
		i, ok := byText[key]
		if !ok {
			i = len(out)
			byText[key] = i
			out = append(out, Group{Text: lines})
		}
		out[i].Layers = append(out[i].Layers, l)
		out[i].First = append(out[i].First, from)
		from = to
	}
	for i := range out {
		out[i].Title = title(out[i].Layers, p.Layers)
	}
	return out
}

func title(layers []int, n int) string {
	switch {
	case layers[0] < 0:
		return "before the layers"
	case layers[0] >= n:
		return "after the layers"
	case len(layers) == 1:
		return fmt.Sprintf("layer %d", layers[0])
	}
	return "layers " + Ranges(layers)
}

// Ranges writes ascending numbers in short: 0–4, 6–10, 12.
func Ranges(v []int) string {
	var parts []string
	for i := 0; i < len(v); {
		j := i
		for j+1 < len(v) && v[j+1] == v[j]+1 {
			j++
		}
		switch {
		case j == i:
			parts = append(parts, strconv.Itoa(v[i]))
		case j == i+1:
			parts = append(parts, strconv.Itoa(v[i]), strconv.Itoa(v[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d–%d", v[i], v[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// Count is a number of things: 1 step, 2 steps.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// Print writes a program that has not been assigned buffers, groups of like
// layers once and a step a line, always in the same words. Values that a layer
// makes are t0, t1, …; those it receives x0, x1, … in order of use. Lines of the
// specification are left out (see Step.Lines): a comment there changes no program.
func Print(w io.Writer, p *Program) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n", Count(len(p.Steps), "step"), Count(p.Layers, "layer"))
	for _, g := range Groups(p) {
		fmt.Fprintf(&b, "%s, %s\n", g.Title, Count(len(g.Text), "step"))
		for i, t := range g.Text {
			s := &p.Steps[g.First[0]+i]
			fmt.Fprintf(&b, "  %s\n", t)
			if s.Why != "" {
				fmt.Fprintf(&b, "    not fused: %s\n", s.Why)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Text is Print into a string.
func Text(p *Program) string {
	var b strings.Builder
	_ = Print(&b, p) // a Builder does not fail
	return b.String()
}
