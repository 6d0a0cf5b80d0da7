package spec

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// checkNumbers holds the graph, whose sizes follow from the tensors, against
// what the configuration says of itself. Layers may differ, so a number counts
// as wrong only where no layer has it.
func (t *tracer) checkNumbers() {
	if len(t.problems) > 0 {
		return // values are missing, so are their sizes
	}
	s := graphSizes(t.b.G)
	for _, n := range []struct {
		key  string
		what string
		have []int
	}{
		{"num_attention_heads", "query heads", s.heads},
		{"num_key_value_heads", "key heads", s.keyHeads},
		{"hidden_size", "values a token between layers", s.widths},
		{"intermediate_size", "inner values of a feed-forward", s.inner},
	} {
		if _, own := t.config.read[n.key]; own && n.key == "intermediate_size" || t.free[n.key] {
			continue // the specification computes its widths from it
		}
		want, key, source := t.stated(n.key, s.line)
		if want == 0 || len(n.have) == 0 || slices.Contains(n.have, want) || n.key == "num_key_value_heads" && s.shared(want) || t.unreadSide(want) {
			continue
		}
		text := fmt.Sprintf("the tensors give %s %s, but %s says %s = %d", listed(n.have), n.what, source, key, want)
		if n.key != "intermediate_size" {
			text += fmt.Sprintf("; where the reference computes with it, so that no layer has that many, say unchecked(%q)", n.key)
		} else {
			text += fmt.Sprintf("; where the reference computes with it (halves it, or rounds it up), read the key, c.get(%q, …), and the check is off", n.key)
		}
		t.problems = append(t.problems, Problem{Kind: ProblemOther, Line: s.line, Text: text})
	}
	t.checkVocabulary()
}

// shared says that the attentions of a layer, which may read one key head
// together, can have that many key heads between them.
func (s *sizes) shared(want int) bool {
	return slices.ContainsFunc(s.several, func(n int) bool { return n%want == 0 })
}

// unreadSide says that a stored tensor which nothing has read yet, as in a
// specification that is half written, has a side of that size: then the tensors
// do not contradict it.
func (t *tracer) unreadSide(want int) bool {
	for i, name := range t.stored {
		if t.series.used(i) || t.used[name] || t.others[name] || t.filled[name] || t.ignored(name) {
			continue
		}
		if v, _ := t.files.Tensor(name); slices.Contains(v.Shape, want) {
			return true
		}
	}
	return false
}

const docUnchecked = `unchecked(key, …)
Numbers of the configuration that no layer of the tensors need have, for the reference computes with them (halves the heads, say). Else num_attention_heads,
num_key_value_heads, hidden_size and intermediate_size are held against the tensors.
- key: one of these, any number of them.
Errors: another key.
`

func doUnchecked(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(kwargs) > 0 {
		return nil, fmt.Errorf("unchecked: takes keys only")
	}
	for _, a := range args {
		key, ok := starlark.AsString(a)
		if !ok || !slices.Contains(heldKeys, key) {
			return nil, fmt.Errorf("unchecked: %s is not held against the tensors; %v are", cut(a.String()), heldKeys)
		}
		if t.free == nil {
			t.free = map[string]bool{}
		}
		t.free[key] = true
	}
	return starlark.None, nil
}

// checkVocabulary refuses ids that could be drawn but not read: more logits
// than rows of the embedding, and a vocabulary larger than it.
func (t *tracer) checkVocabulary() {
	g := t.b.G
	if g.Vocab == 0 {
		return
	}
	rows := max(g.Vocab, sourceVocab(g))
	if want, key, source := t.stated("vocab_size", embedLine(g)); want > rows {
		t.problems = append(t.problems, Problem{Kind: ProblemOther, Line: embedLine(g), Text: fmt.Sprintf("the embedding has %d rows, but %s says %s = %d", rows, source, key, want)})
	}
	for _, o := range g.Outputs {
		n := g.Nodes[o.Node]
		if o.Name == "logits" && len(n.Shape) == 1 && n.Shape[0] > g.Vocab {
			t.problems = append(t.problems, Problem{Kind: ProblemOther, Line: n.Line, Text: fmt.Sprintf("%d logits, but the embedding has %d rows: an id beyond them could not be read back", n.Shape[0], g.Vocab)})
		}
	}
}

// sourceVocab is the rows of the encoder's embedding, which may be another one; 0
// where there is none.
func sourceVocab(g *graph.Graph) int {
	for _, n := range g.Nodes {
		if a, ok := n.Attr.(*graph.EmbedAttr); ok && n.Rows == graph.RowsMemory && g.Nodes[n.In[0]].Op == graph.OpTokens {
			return a.Table.Shape[0]
		}
	}
	return 0
}

func embedLine(g *graph.Graph) graph.Line {
	for _, n := range g.Nodes {
		if n.Op == graph.OpEmbed {
			return n.Line
		}
	}
	return graph.Line{}
}

// byLayer says whether a list may be of a number for each layer: 0 and None are
// of layers without what it counts, lists of lists are left to who reads them.
func byLayer(list *starlark.List) bool {
	for v := range list.Elements() {
		if _, inner := v.(*starlark.List); inner || v == starlark.None {
			continue
		}
		if n, err := starlark.AsInt32(v); err != nil || n < 0 {
			return false
		}
	}
	return list.Len() > 0
}

// stated reads a whole number of the configuration without counting it as
// asked for: at the top, else in text_config. It is 0 where there is none or a
// list by layer; what is no number is a problem.
func (t *tracer) stated(name string, line graph.Line) (n int, key, source string) {
	d := t.config
	for _, c := range []*config{d.root(), d.root().sub("text_config")} {
		key := c.prefix + name
		asked := d.asked[key]
		v, source, ok, err := c.find(name)
		if !asked {
			delete(d.asked, key)
		}
		if !ok || err != nil || v == starlark.None {
			continue
		}
		if list, is := v.(*starlark.List); is && byLayer(list) {
			return 0, "", ""
		}
		n, err := starlark.AsInt32(v)
		if err == nil && n == 0 && t.files.Binding() == GGUF {
			return 0, "", "" // converters write 0 for what a model has not
		}
		if err != nil || n < 1 {
			t.problems = append(t.problems, Problem{Kind: ProblemOther, Line: line, Text: fmt.Sprintf("%s (%s) is %v, expected a whole number above 0", cut(key), source, cut(v.String()))})
			return 0, "", ""
		}
		return n, key, source
	}
	return 0, "", ""
}

// sizes are the numbers that a graph's layers have.
type sizes struct {
	heads, keyHeads, widths, inner []int
	several                        []int      // key heads of layers with several attentions, all together
	line                           graph.Line // of the first attention
}

func graphSizes(g *graph.Graph) sizes {
	var s sizes
	add := func(list *[]int, n int) {
		if !slices.Contains(*list, n) {
			*list = append(*list, n)
		}
	}
	experts := false
	count, heads, keyHeads := map[int]int{}, map[int]int{}, map[int]int{} // of all attentions of a layer, which may share its heads among them
	for _, n := range g.Nodes {
		switch a := n.Attr.(type) {
		case *graph.AttentionAttr:
			count[n.Layer]++
			heads[n.Layer] += a.Heads
			keyHeads[n.Layer] += a.KVHeads
			if len(s.heads) == 0 {
				s.line = n.Line
			}
			add(&s.heads, a.Heads)
			if g.Caches[a.Cache].Kind == graph.CacheKV { // latents are shared by all heads, whatever the files call them
				add(&s.keyHeads, a.KVHeads)
			}
		case *graph.NormAttr:
			if in := g.Nodes[n.In[0]]; len(in.Shape) == 1 {
				add(&s.widths, in.Shape[0])
			}
		case *graph.LinearAttr:
			if in := g.Nodes[n.In[0]]; len(in.Shape) == 1 {
				add(&s.inner, in.Shape[0])
			}
		case *graph.ExpertsAttr:
			experts = true
		}
	}
	for l, n := range heads {
		if count[l] > 1 {
			add(&s.several, keyHeads[l])
		}
		add(&s.heads, n)
		if len(s.keyHeads) > 0 {
			add(&s.keyHeads, keyHeads[l])
		}
	}
	if experts { // a size for each kind of layer, some of which may be absent
		s.inner = nil
	}
	return s
}

// listed writes a few numbers.
func listed(list []int) string {
	if len(list) > 4 {
		return fmt.Sprintf("%v and others", list[:4])
	}
	if len(list) == 1 {
		return fmt.Sprint(list[0])
	}
	return fmt.Sprint(list)
}
