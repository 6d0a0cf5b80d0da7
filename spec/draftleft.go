package spec

import (
	"fmt"
	"slices"
	"strings"
)

// attends says that the layers' attention was recognised.
func (d *draft) attends() bool {
	r := &d.r
	return (r.qkv != "" || r.q != "" && r.k != "" && r.v != "") && d.headDim > 0
}

// noAttention says what kept the attention from being written.
func (d *draft) noAttention() string {
	r := &d.r
	found := []string{r.q, r.k, r.v}
	if r.qkv != "" {
		found = []string{r.qkv}
	}
	switch {
	case slices.Contains(found, ""):
		return "queries, keys or values are not among the names that are known"
	case d.heads == 0:
		return strings.Join(found, ", ") + " are called like it, but the configuration has no number of heads (num_attention_heads, n_head, n_heads, …) and no width of one"
	}
	return fmt.Sprintf("%s are called like it, but their rows do not divide into the configuration's %d heads", strings.Join(found, ", "), d.heads)
}

// conditional writes a part of the layers that some of them lack under the
// question whether its tensors are stored.
func (w *draftWriter) conditional(write func()) {
	first := w.r.qkv
	if first == "" {
		first = w.r.q
	}
	from := w.b.Len()
	write()
	if e := w.inside[first]; !w.attends() || e.layers >= w.layers || w.r.beforeFFN == "" || w.parallel() {
		return
	}
	text := w.b.String()
	block := strings.TrimSuffix(text[from:], "\n")
	w.b.Reset()
	w.b.WriteString(text[:from])
	w.linef("        if stored(L + %q):  # guess: layers of another kind lack it; what they have instead is not written", first)
	for line := range strings.SplitSeq(block, "\n") {
		w.line("    " + line)
	}
}

// unwritten takes the tensors that were recognised but that the text does not
// name out of those that the draft reads.
func (w *draftWriter) unwritten(body string) {
	helped := w.attends() && strings.Contains(body, "= qkv(")
	for name := range w.used {
		base := strings.TrimSuffix(name, ".bias")
		if strings.Contains(body, fmt.Sprintf("%q", base)) || helped && slices.Contains([]string{w.r.q, w.r.k, w.r.v}, base) {
			continue
		}
		delete(w.used, name)
	}
}

// collapsed writes tensors that differ by a number only, as lists apart from
// the layers are, once, with {n} for it.
func collapsed(list []string) (short []string) {
	count := map[string]int{}
	key := func(s string) string {
		name, shape, _ := strings.Cut(s, " ")
		k, _ := generalise(strings.ReplaceAll(name, "{i}", "\x00"))
		return strings.ReplaceAll(strings.ReplaceAll(k, "#", "{n}"), "\x00", "{i}") + " " + shape
	}
	for _, s := range list {
		count[key(s)]++
	}
	for _, s := range list {
		k := key(s)
		switch n := count[k]; {
		case n == 1:
			short = append(short, s)
		case n > 1:
			short = append(short, fmt.Sprintf("%s (%d of them)", k, n))
		}
		count[k] = 0
	}
	return short
}
