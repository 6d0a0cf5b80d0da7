package spec

import (
	"fmt"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
)

// Kinds of problems.
const (
	ProblemMissing = "missing" // a tensor that the specification reads is not stored
	ProblemUnused  = "unused"  // a stored tensor that nothing reads
	ProblemShape   = "shape"   // an operation whose inputs do not fit it
	ProblemOther   = "other"   // anything else: numbers of the configuration, types
	ProblemStop    = "stop"    // the error that ended the trace
)

// Problem is one mismatch between a specification and files.
type Problem struct {
	Kind   string
	Line   graph.Line // of the specification; of an unused tensor, none
	Tensor string     // of missing and unused ones
	Text   string
}

// String is the problem with its line.
func (p Problem) String() string {
	if p.Line.Line == 0 {
		return p.Text
	}
	return p.Line.String() + ": " + p.Text
}

// FitError lists all problems of a trace. It is an ErrTrace.
type FitError struct {
	Problems []Problem // the one that stopped the trace, if any, last
	Unread   []string  // configuration keys of the files that nothing asked for
	Printed  []string  // what print(…) said before
}

func (e *FitError) Unwrap() error { return ErrTrace }

// Error tells problems that differ in numbers of names only once.
func (e *FitError) Error() string {
	var b strings.Builder
	var fit []Problem
	stop := ""
	for _, p := range e.Problems {
		if p.Kind == ProblemStop {
			stop = p.Text
			continue
		}
		fit = append(fit, p)
	}
	switch n := len(fit); {
	case n == 0 && stop != "":
		b.WriteString(stop)
		stop = ""
	case n == 1:
		b.WriteString("1 problem")
	default:
		fmt.Fprintf(&b, "%d problems", n)
	}
	kinds, counts := Grouped(fit)
	for i, k := range kinds {
		if i == maxProblems {
			fmt.Fprintf(&b, "\n  and %d more", len(kinds)-i)
			break
		}
		b.WriteString("\n  " + k.String())
		if counts[i] > 1 {
			fmt.Fprintf(&b, " (and %d more of the kind)", counts[i]-1)
		}
	}
	if stop != "" {
		b.WriteString("\n  then the trace stopped: " + stop)
	}
	for _, p := range e.Printed {
		b.WriteString("\n  " + p)
	}
	return fmt.Sprintf("spec: %v: %s", ErrTrace, b.String())
}

// report lists all problems, the unused tensors, and the error that stopped
// the trace, if any.
func (t *tracer) report(unused []string, stop error) error {
	e := &FitError{Problems: t.problems, Unread: t.config.unread(), Printed: t.printed}
	for _, name := range unused {
		e.Problems = append(e.Problems, Problem{Kind: ProblemUnused, Tensor: name, Text: "unused tensor " + t.describe(name) + ": name it in ignore(…) if it is not needed"})
	}
	if stop != nil {
		e.Problems = append(e.Problems, Problem{Kind: ProblemStop, Text: stop.Error()})
	}
	return e
}

// describe is a stored tensor's name with what is known of it.
func (t *tracer) describe(name string) string {
	if v, _ := t.files.Tensor(name); v.Shape != nil {
		return fmt.Sprintf("%s %s %v", namedTensor(name), v.Type, v.Shape)
	}
	return namedTensor(name)
}

// Grouped joins problems that differ in the numbers of names only, in order of
// the first of each kind, so that the same tensor of every layer is told once;
// counts says how many there are of each.
func Grouped(problems []Problem) (first []Problem, counts []int) {
	index := map[string]int{}
	for _, p := range problems {
		words := strings.Fields(p.String())
		for i, w := range words {
			words[i], _ = generalise(w)
		}
		key := strings.Join(words, " ")
		if i, ok := index[key]; ok {
			counts[i]++
			continue
		}
		index[key] = len(first)
		first, counts = append(first, p), append(counts, 1)
	}
	return first, counts
}
