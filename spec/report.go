package spec

import (
	"fmt"
	"strings"
)

// kind is what problems of one sort have in common: the text without numbers
// in names, so that the same tensor of every layer is told once.
type kind struct {
	first string
	count int
}

// report lists all problems, the unused tensors, and the error that stopped
// the trace, if any.
func (t *tracer) report(unused []string, stop error) error {
	var b strings.Builder
	if n := len(t.problems) + len(unused); n == 1 {
		b.WriteString("1 problem")
	} else {
		fmt.Fprintf(&b, "%d problems", n)
	}
	var texts []string
	for _, p := range t.problems {
		texts = append(texts, fmt.Sprintf("%s: %s", p.line, p.text))
	}
	for _, name := range unused {
		v, _ := t.files.Tensor(name)
		texts = append(texts, fmt.Sprintf("unused tensor %s %s %v: name it in ignore(…) if it is not needed", name, v.Type, v.Shape))
	}
	kinds := group(texts)
	for i, k := range kinds {
		if i == maxProblems {
			fmt.Fprintf(&b, "\n  and %d more", len(kinds)-i)
			break
		}
		b.WriteString("\n  " + k.first)
		if k.count > 1 {
			fmt.Fprintf(&b, " (and %d more of the kind)", k.count-1)
		}
	}
	if stop != nil {
		fmt.Fprintf(&b, "\n  then the trace stopped: %v", stop)
	}
	return fmt.Errorf("spec: %w: %s", ErrTrace, b.String())
}

// group joins texts that differ in the numbers of names only, in order of the
// first of each kind.
func group(texts []string) []kind {
	var kinds []kind
	index := map[string]int{}
	for _, s := range texts {
		words := strings.Fields(s)
		for i, w := range words {
			words[i], _ = generalise(w)
		}
		key := strings.Join(words, " ")
		if i, ok := index[key]; ok {
			kinds[i].count++
			continue
		}
		index[key] = len(kinds)
		kinds = append(kinds, kind{s, 1})
	}
	return kinds
}
