package server

// foreignFields are fields that clients of other servers send and that are near
// one of ours without being a misspelling of it. TestClientFields holds a longer
// list, and says what is missing here.
var foreignFields = map[string]bool{"context": true, "inputs": true, "mode": true, "models": true, "step": true, "top_a": true, "top_h": true, "top_k": true,
	"top_n": true, "top_p": true, "typ_p": true, "typical": true}

// misspelt finds the known field that an unknown one is probably meant to be:
// one edit away, or two where the name is long.
func misspelt(name string, known map[string]bool) (meant string) {
	if foreignFields[name] || quietFields[name] {
		return ""
	}
	best := longName
	for k := range known {
		most := 1
		if len(k) < shortName {
			most = 0
		} else if len(k) >= longName {
			most = 2
		}
		if d := edits(name, k); d <= most && (d < best || d == best && k < meant) {
			best, meant = d, k
		}
	}
	return meant
}

// Lengths of names below which none is taken for a misspelling, and from which
// two edits are one.
const (
	shortName = 4
	longName  = 8
)

// edits counts the bytes that are put in, left out, changed or exchanged with
// their neighbour between two names (optimal string alignment).
func edits(a, b string) int {
	if d := len(a) - len(b); d < -2 || d > 2 {
		return 3 // more than anybody asks for
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
