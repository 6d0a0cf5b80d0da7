package server

import "github.com/inferflow/inferflow/internal/near"

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
		if d := near.Edits(name, k); d <= most && (d < best || d == best && k < meant) {
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
