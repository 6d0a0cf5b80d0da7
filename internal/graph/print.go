package graph

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// PrintOptions choose how much Print says.
type PrintOptions struct {
	Fold bool // write a layer that repeats the one before it in one line
}

// Print writes the graph by layer and line of the specification, always in the
// same words: an operation a line, as
//
//	%12 = linear %11 [48]→[112]  W=model.layers.0.mlp.gate_proj.weight   decoder.star:31
func Print(w io.Writer, g *Graph, o PrintOptions) error {
	p := &printer{g: g}
	fmt.Fprintf(&p.b, "graph: %d operations, %d layers, %d caches, vocabulary %d\n", len(g.Nodes), g.Layers, len(g.Caches), g.Vocab)
	for i, t := range g.Ropes {
		p.rope(i, t)
	}
	starts := p.runs()
	seen := map[string]int{} // a layer's text → the first layer with it
	for i := 0; i < len(starts); i++ {
		nodes := p.run(starts, i)
		first, known := seen[p.folded(nodes)]
		if !o.Fold || !known || p.folded(nodes) == "" {
			seen[p.folded(nodes)] = nodes[0].Layer
			p.layer(nodes)
			continue
		}
		j := i
		for j+1 < len(starts) && p.folded(p.run(starts, j+1)) == p.folded(nodes) {
			j++
		}
		if i == j {
			fmt.Fprintf(&p.b, "layer %d: as layer %d\n", nodes[0].Layer, first)
		} else {
			fmt.Fprintf(&p.b, "layers %d–%d: as layer %d\n", nodes[0].Layer, p.g.Nodes[starts[j]].Layer, first)
		}
		i = j
	}
	for _, out := range g.Outputs {
		fmt.Fprintf(&p.b, "output %s = %%%d\n", out.Name, out.Node)
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// Text is Print into a string.
func Text(g *Graph, o PrintOptions) string {
	var b strings.Builder
	_ = Print(&b, g, o) // a Builder does not fail
	return b.String()
}

type printer struct {
	g    *Graph
	b    strings.Builder
	base int // node ids are written relative to it when folding
	fold string
}

// runs lists where the layer changes.
func (p *printer) runs() []int {
	var starts []int
	for i, n := range p.g.Nodes {
		if i == 0 || n.Layer != p.g.Nodes[i-1].Layer {
			starts = append(starts, i)
		}
	}
	return starts
}

// run is the i-th run of nodes of one layer.
func (p *printer) run(starts []int, i int) []*Node {
	if i+1 < len(starts) {
		return p.g.Nodes[starts[i]:starts[i+1]]
	}
	return p.g.Nodes[starts[i]:]
}

func (p *printer) layer(nodes []*Node) {
	switch l := nodes[0].Layer; {
	case l < 0:
		p.b.WriteString("before the layers\n")
	case l >= p.g.Layers:
		p.b.WriteString("after the layers\n")
	default:
		fmt.Fprintf(&p.b, "layer %d\n", l)
	}
	for _, n := range nodes {
		p.b.WriteString("  ")
		p.b.WriteString(p.node(n))
		p.b.WriteByte('\n')
	}
}

// folded is a layer's text with node ids relative to its start and its own
// number in names replaced, so that equal layers have equal texts.
func (p *printer) folded(nodes []*Node) string {
	l := nodes[0].Layer
	if l < 0 || l >= p.g.Layers {
		return ""
	}
	q := &printer{g: p.g, base: nodes[0].ID, fold: "." + strconv.Itoa(l) + "."}
	var b strings.Builder
	for _, n := range nodes {
		b.WriteString(q.node(n))
		b.WriteByte('\n')
	}
	return b.String()
}

func (p *printer) id(i int) string {
	if p.fold == "" {
		return "%" + strconv.Itoa(i)
	}
	return fmt.Sprintf("%%%+d", i-p.base)
}

func (p *printer) node(n *Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s = %s", p.id(n.ID), n.Op)
	for _, i := range n.In {
		b.WriteByte(' ')
		b.WriteString(p.id(i))
	}
	b.WriteString(" → " + shape(n.Shape))
	switch n.Rows {
	case RowsConst:
		b.WriteString(" const")
	case RowsMemory:
		b.WriteString(" memory")
	}
	b.WriteString(p.attr(n.Attr))
	if n.Line.Line > 0 {
		b.WriteString("   " + n.Line.String())
	}
	return b.String()
}

func shape(s []int) string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = strconv.Itoa(d)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// attr writes the attributes that are not zero.
func (p *printer) attr(a any) string {
	v := reflect.ValueOf(a)
	if a == nil || v.Kind() != reflect.Pointer || v.IsNil() {
		return ""
	}
	v = v.Elem()
	var b strings.Builder
	for i := 0; i < v.NumField(); i++ {
		f := v.Field(i)
		name := v.Type().Field(i).Name
		if f.IsZero() && name != "Table" {
			continue
		}
		if name == "Cache" && p.fold != "" {
			continue
		}
		fmt.Fprintf(&b, " %s=%s", name, p.field(f))
	}
	return b.String()
}

func (p *printer) field(f reflect.Value) string {
	switch x := f.Interface().(type) {
	case *Weight:
		return weightExpr(x, p.fold) + shape(x.Shape)
	case float64:
		return number(x)
	case []float64:
		return numbers(x)
	case []LoopStep:
		return fmt.Sprintf("%d operations", len(x))
	case bool:
		return "yes"
	}
	return fmt.Sprint(f.Interface())
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 9, 64) }

func numbers(x []float64) string {
	const show = 6
	parts := []string{}
	for i, v := range x {
		if i == show {
			parts = append(parts, fmt.Sprintf("… %d in all, sum %s", len(x), number(sum(x))))
			break
		}
		parts = append(parts, number(v))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		if !math.IsInf(v, 0) {
			s += v
		}
	}
	return s
}

func (p *printer) rope(i int, t *RopeTable) {
	fmt.Fprintf(&p.b, "rope table %d: %d components, frequencies %s, factor %s", i, t.Dim, numbers(t.Freq), number(t.Factor))
	if t.Divisors != nil {
		fmt.Fprintf(&p.b, ", divided by %s", WeightText(t.Divisors))
	}
	switch t.Kind {
	case "longrope":
		fmt.Fprintf(&p.b, ", beyond %d tokens %s", t.Original, numbers(t.LongFreq))
		if t.LongDiv != nil {
			fmt.Fprintf(&p.b, " divided by %s", WeightText(t.LongDiv))
		}
	case "dynamic":
		fmt.Fprintf(&p.b, ", beyond %d tokens the base %s grows by %s", t.Original, number(t.Theta), number(t.NTKFactor))
	}
	p.b.WriteByte('\n')
}

// WeightText writes an expression with its shape, in short: a stack of
// numbered tensors shows its first and last.
func WeightText(w *Weight) string { return weightExpr(w, "") + shape(w.Shape) }

// weightExpr writes the first occurrence of fold in each name as ".#.".
func weightExpr(w *Weight, fold string) string {
	folded := func(name string) string {
		if fold != "" {
			return strings.Replace(name, fold, ".#.", 1)
		}
		return name
	}
	if w.Op == WTensor {
		return folded(w.Name)
	}
	n := len(w.Args) + len(w.Names)
	args := make([]string, 0, 3)
	for i := 0; i < n; i++ {
		switch {
		case n > 3 && i == 1:
			args = append(args, "…")
			i = n - 2
		case len(w.Names) > 0:
			args = append(args, folded(w.Names[i]))
		default:
			args = append(args, weightExpr(w.Args[i], fold))
		}
	}
	s := string(w.Op) + "(" + strings.Join(args, ", ")
	switch w.Op {
	case WConcat:
		s += fmt.Sprintf("; axis %d", w.Axis)
	case WSlice:
		s += fmt.Sprintf("; axis %d %d:%d", w.Axis, w.From, w.To)
		if w.Step != 1 {
			s += fmt.Sprintf(":%d", w.Step)
		}
	case WTranspose:
		s += fmt.Sprintf("; %v", w.Perm)
	case WPermute:
		s += fmt.Sprintf("; axis %d by %s", w.Axis, permText(w.Perm))
	case WAffine:
		s += fmt.Sprintf("; ·%s%+g", number(w.A), w.B)
	case WMap:
		s += "; " + w.F
	case WReshape:
		s += "; " + shape(w.Shape)
	}
	return s + ")"
}

func permText(p []int) string {
	if len(p) <= 8 {
		return fmt.Sprint(p)
	}
	return fmt.Sprintf("%v… of %d", p[:8], len(p))
}

// Bytes by tensor, lines by layer and the like are counted by callers; the
// names that a graph reads, sorted and without repetition, are here.
func TensorNames(g *Graph) []string {
	seen := map[string]bool{}
	add := func(w *Weight) {
		for _, n := range w.Tensors(nil) {
			seen[n] = true
		}
	}
	for _, n := range g.Nodes {
		for _, w := range AttrWeights(n.Attr) {
			add(w)
		}
	}
	for _, t := range g.Ropes {
		add(t.Divisors)
		add(t.LongDiv)
	}
	names := make([]string, 0, len(seen))
	for n := range seen {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
