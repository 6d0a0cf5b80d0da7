// Package near finds the name that a misspelt one was probably meant to be.
package near

import "strings"

// Edits counts the bytes that are put in, left out, changed or exchanged with
// their neighbour between two names (optimal string alignment). Beyond 2 it may
// say 3 for any number.
func Edits(a, b string) int {
	if d := len(a) - len(b); d < -2 || d > 2 {
		return 3
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// Lengths of names below which none is taken for a misspelling, and from which
// two edits are one.
const (
	short = 3
	long  = 6
)

// Name is the candidate that is one edit away from a name, or two where it is
// long, in any case of its letters; "" where there is none. Of several it is the
// nearest, and of those the first.
func Name(name string, candidates []string) string {
	best, most := "", 1
	if len(name) < short || len(name) > 100 {
		return ""
	}
	if len(name) >= long {
		most = 2
	}
	lower := strings.ToLower(name)
	for _, c := range candidates {
		if d := Edits(lower, strings.ToLower(c)); d <= most && c != name {
			best, most = c, d-1
		}
	}
	return best
}

// Hint is Name as a question behind an error, "" where there is none.
func Hint(name string, candidates []string) string {
	if meant := Name(name, candidates); meant != "" {
		return "; did you mean " + meant + "?"
	}
	return ""
}
