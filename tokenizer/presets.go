package tokenizer

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed data/pretokenizers.json
var presetData []byte

//go:embed data/endtokens.json
var endTokenData []byte

// preset is what a name of tokenizer.ggml.pre means.
type preset struct {
	name     string
	patterns []string

	Split        string `json:"split"`
	IgnoreMerges bool   `json:"ignore_merges"`
	AddBOS       bool   `json:"add_bos"`     // unless add_bos_token says otherwise
	ForceBOS     bool   `json:"force_bos"`   // whatever it says
	Raw          bool   `json:"raw"`         // the vocabulary is written in text, not in the byte alphabet
	SpaceMarks   bool   `json:"space_marks"` // spaces become U+2581
	Newlines     bool   `json:"newlines"`    // a run of newlines that is a token is taken whole
	Remove       bool   `json:"remove"`      // matches are dropped
}

// attribute gives added tokens flags that GGUF cannot say, for files known by pre-tokenizer, name or architecture.
type attribute struct {
	Pre          []string `json:"pre"`
	Name         []string `json:"name"`
	Architecture []string `json:"architecture"`
	Lstrip       []string `json:"lstrip"`
	Rstrip       []string `json:"rstrip"`
	RstripAdded  bool     `json:"rstrip_added"`
	NoRstrip     []string `json:"no_rstrip"`
}

// ggufModel is what a name of tokenizer.ggml.model means.
type ggufModel struct {
	Kind string `json:"kind"`
	Pre  string `json:"pre"` // the pre-tokenizer, if the model implies it
}

type presetTable struct {
	Models     map[string]ggufModel `json:"models"`
	Written    []string             `json:"written"`
	Steps      map[string]string    `json:"steps"`
	Splits     map[string][]string  `json:"splits"`
	Names      map[string]*preset   `json:"names"`
	Attributes []attribute          `json:"attributes"`
}

// presets reads the table once.
var presets = sync.OnceValues(func() (*presetTable, error) {
	t := &presetTable{}
	if err := json.Unmarshal(presetData, t); err != nil {
		return nil, fmt.Errorf("tokenizer: data/pretokenizers.json: %w", err)
	}
	for name, p := range t.Names {
		p.name = name
		var ok bool
		if p.patterns, ok = t.Splits[p.Split]; !ok {
			return nil, fmt.Errorf("tokenizer: data/pretokenizers.json: %s names split %q, which is not there", name, p.Split)
		}
	}
	return t, nil
})

func (t *presetTable) find(name string) (*preset, error) {
	if p, ok := t.Names[name]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("tokenizer: %w: pre-tokenizer %.60q is not known (tokenizer.ggml.pre; known: %s); a tokenizer.json of the model would say what it does",
		ErrUnsupported, name, sortedNames(t.Names))
}

func sortedNames[T any](m map[string]T) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), " ")
}

// attributes sets the flags of added tokens that belong to a file.
func (t *presetTable) attributes(list []addedToken, pre, name, architecture string) {
	for _, a := range t.Attributes {
		if !slices.Contains(a.Pre, pre) && !slices.Contains(a.Architecture, architecture) &&
			!slices.ContainsFunc(a.Name, func(s string) bool { return strings.Contains(name, s) }) {
			continue
		}
		for i := range list {
			tok := &list[i]
			tok.lstrip = tok.lstrip || slices.Contains(a.Lstrip, tok.text)
			tok.rstrip = (tok.rstrip || a.RstripAdded || slices.Contains(a.Rstrip, tok.text)) && !slices.Contains(a.NoRstrip, tok.text)
		}
		return
	}
}

type endTokenTable struct {
	Ends   []string `json:"ends"`
	Unless []struct {
		Text string   `json:"text"`
		With []string `json:"with"`
	} `json:"unless"`
}

// endTokens collects the ids that end a generation.
func endTokens(t *Tokenizer) []int32 {
	var table endTokenTable
	if err := json.Unmarshal(endTokenData, &table); err != nil {
		panic("tokenizer: data/endtokens.json: " + err.Error()) // embedded, so broken at build time; a test reads it
	}
	var ends []int32
	has := func(text string) bool {
		id, ok := t.others[text]
		return ok && t.IsControl(id)
	}
	for _, text := range table.Ends {
		except := false
		for _, u := range table.Unless {
			except = except || u.Text == text && !slices.ContainsFunc(u.With, func(w string) bool { return !has(w) })
		}
		if has(text) && !except {
			ends = append(ends, t.others[text])
		}
	}
	for _, role := range []string{"eos", "eot", "eom"} {
		if id, ok := t.named[role]; ok {
			ends = append(ends, id)
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}
