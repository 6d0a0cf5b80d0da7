package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// Explanation is what an opened model is made of, and with AddProfile how long
// its parts take.
type Explanation struct {
	Model      ModelInfo    `json:"model"`
	MaxContext int          `json:"max_context"` // positions it was made for, 0 if unknown
	Config     []Value      `json:"config"`      // in order of first use
	Generation []Value      `json:"generation"`
	EndTokens  []EndToken   `json:"end_tokens"`
	Types      []TypeBytes  `json:"types"`
	KV         KV           `json:"kv"`
	Lines      []Line       `json:"lines"` // of the specification that made nodes
	Groups     []Group      `json:"steps"`
	NotFused   []NotFused   `json:"not_fused"`
	Ignored    []string     `json:"ignored,omitempty"` // stored tensors that are not needed, by rule
	Unused     []string     `json:"unused,omitempty"`  // stored tensors that nothing reads
	Profile    *ProfileInfo `json:"profile,omitempty"`
}

// Value is one value of a configuration and where it came from.
type Value struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source string `json:"source"`
}

// EndToken is a token that ends an answer, and who says so.
type EndToken struct {
	ID      int32    `json:"id"`
	Text    string   `json:"text,omitempty"`
	Sources []string `json:"sources"`
}

// KV is what the caches hold.
type KV struct {
	Keys          string      `json:"keys"`
	Values        string      `json:"values"`
	BytesPerToken int64       `json:"bytes_per_token"`
	Caches        []CacheInfo `json:"caches"`
}

// CacheInfo is caches of one form, and the layers that have it.
type CacheInfo struct {
	Kind     string `json:"kind"`
	Heads    int    `json:"heads"`
	KeyDim   int    `json:"key_dim"`
	ValueDim int    `json:"value_dim"`
	Window   int    `json:"window,omitempty"`
	Layers   []int  `json:"layers"`
}

// Line is a line of the specification and what it made.
type Line struct {
	File   string      `json:"file"`
	Line   int         `json:"line"`
	Text   string      `json:"text"`
	Layers []int       `json:"layers"` // −1: before the first, their number: after the last
	Nodes  []NodeCount `json:"nodes"`
	Times
}

// NodeCount is how many nodes of one kind and shape a line made.
type NodeCount struct {
	Op    string `json:"op"`
	Shape []int  `json:"shape"`
	Count int    `json:"count"`
}

// Group is layers that compile to the same steps.
type Group struct {
	Title  string `json:"title"`
	Layers []int  `json:"layers"`
	Steps  []Step `json:"steps"`
}

// Step is one step of each layer of a group.
type Step struct {
	Kind  string   `json:"kind"`
	Text  string   `json:"text"`
	Lines []int    `json:"lines"`
	Why   string   `json:"why,omitempty"` // why it was not fused
	Bytes int64    `json:"bytes"`         // packed weights in all layers of the group
	Types []string `json:"types"`         // storage types of its matrices
	Times

	at []int // the program's steps, one a layer
}

// Times is measured time, where it was measured.
type Times struct {
	Prefill float64 `json:"prefill_seconds,omitempty"`
	Decode  float64 `json:"decode_seconds,omitempty"` // a token
}

// NotFused is a step that runs a single node, and why.
type NotFused struct {
	Op     string `json:"op"`
	Line   string `json:"line"`
	Layers []int  `json:"layers"`
	Why    string `json:"why"`
}

// Explain describes an opened model; it need not be loaded.
func Explain(m *model.Model) (*Explanation, error) {
	keys, values, err := m.KVTypes()
	if err != nil {
		return nil, err
	}
	t := m.Traced
	e := &Explanation{Model: Info(m), MaxContext: m.MaxContext, Config: valuesOf(t.Config), Generation: valuesOf(m.Generation.Sources),
		EndTokens: endTokens(m), Types: Types(m), Lines: lines(t), Ignored: t.Ignored, Unused: t.Unused, NotFused: notFused(m.Program)}
	e.Model.Keys, e.Model.Values = keys.String(), values.String()
	e.KV = KV{Keys: keys.String(), Values: values.String(), BytesPerToken: CacheBytes(t.Graph.Caches, keys.Size(), values.Size()), Caches: cachesOf(t.Graph)}
	e.Groups = groups(m.Program, m, readsOf(m.Program, m, keys.Size(), values.Size()))
	return e, nil
}

func valuesOf(c []spec.ConfigValue) []Value {
	out := make([]Value, len(c))
	for i, v := range c {
		out[i] = Value(v)
	}
	return out
}

// endTokens asks each place that may name an end token.
func endTokens(m *model.Model) []EndToken {
	sources := map[int32][]string{}
	add := func(id int32, source string) {
		if !slices.Contains(sources[id], source) {
			sources[id] = append(sources[id], source)
		}
	}
	for _, s := range m.Generation.Sources {
		if s.Key == "eos_token_id" {
			for _, id := range idsIn(s.Value) {
				add(id, s.Source)
			}
		}
	}
	if m.Tokenizer != nil {
		for _, id := range m.Tokenizer.EndTokens() {
			add(id, "tokenizer")
		}
		for _, text := range m.Traced.Chat.EndTokens {
			if id, ok := m.Tokenizer.ID(text); ok {
				add(id, "specification")
			}
		}
	}
	out := make([]EndToken, 0, len(m.Generation.EndTokens))
	for _, id := range m.Generation.EndTokens {
		t := EndToken{ID: id, Sources: sources[id]}
		if m.Tokenizer != nil {
			t.Text = m.Tokenizer.Text(id)
		}
		out = append(out, t)
	}
	return out
}

// idsIn reads a token id or a list of them as JSON writes it.
func idsIn(v any) []int32 {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var one int32
	if json.Unmarshal(raw, &one) == nil {
		return []int32{one}
	}
	var many []int32
	_ = json.Unmarshal(raw, &many) // anything else names no token
	return many
}

func cachesOf(g *graph.Graph) []CacheInfo {
	var out []CacheInfo
	for _, c := range g.Caches {
		i := CacheInfo{Kind: string(c.Kind), Heads: c.Heads, KeyDim: c.KeyDim, ValueDim: c.ValueDim, Window: c.Window}
		at := slices.IndexFunc(out, func(o CacheInfo) bool {
			o.Layers = nil
			return o.Kind == i.Kind && o.Heads == i.Heads && o.KeyDim == i.KeyDim && o.ValueDim == i.ValueDim && o.Window == i.Window
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

// LayersText names layers of a model that has n of them.
func LayersText(layers []int, n int) string {
	var parts []string
	var inside []int
	for _, l := range layers {
		switch {
		case l < 0:
			parts = append(parts, "before")
		case l >= n:
			parts = append(parts, "after")
		default:
			inside = append(inside, l)
		}
	}
	if len(inside) > 0 {
		slices.Sort(inside)
		parts = append(parts, fmt.Sprintf("layers %s", program.Ranges(inside)))
	}
	return strings.Join(parts, ", ")
}
