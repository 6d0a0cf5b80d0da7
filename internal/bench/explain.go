package bench

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/spec"
)

// Explanation is what an opened model is made of, and with AddProfile how long
// its parts take.
type Explanation struct {
	Model      ModelInfo    `json:"model"`
	Whole      bool         `json:"reads_texts,omitempty"` // and writes none
	MaxContext int          `json:"max_context"`           // positions it was made for, 0 if unknown
	Config     []Value      `json:"config"`                // in order of first use
	Generation []Value      `json:"generation"`            // empty where the model writes no texts
	Vectors    []Value      `json:"vectors,omitempty"`     // how texts become vectors, where the model was opened for them
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
	Source   string `json:"source,omitempty"` // of an encoder's source: "kept" while it is answered, "encoding": only while it is encoded
	Heads    int    `json:"heads"`
	KeyDim   int    `json:"key_dim"`
	ValueDim int    `json:"value_dim"`
	Window   int    `json:"window,omitempty"`
	First    int    `json:"first,omitempty"` // positions seen beside the window
	Size     int    `json:"size,omitempty"`  // of a state: float32 numbers a sequence
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
	if e.Vectors, e.Whole = valuesOf(m.Vectors()), m.Whole(); e.Whole {
		e.Generation, e.EndTokens = []Value{}, []EndToken{}
	}
	e.Model.Keys, e.Model.Values = keys.String(), values.String()
	e.KV = KV{Keys: keys.String(), Values: values.String(), BytesPerToken: CacheBytes(t.Graph.Caches, keys.Size(), values.Size()), Caches: cachesOf(t.Graph)}
	e.Groups = groups(m.Program, m, readsOf(m.Program, m, keys.Size(), values.Size()))
	return e, nil
}

func valuesOf(c []spec.ConfigValue) []Value {
	out := make([]Value, len(c))
	for i, v := range c {
		out[i] = Value{v.Key, sayable(v.Value), v.Source}
	}
	return out
}

// sayable is a value with the numbers that JSON has no word for as text.
func sayable(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = sayable(x)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = sayable(x)
		}
		return out
	}
	return v
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
		word := "layers"
		if inside = slices.Compact(inside); len(inside) == 1 {
			word = "layer"
		}
		parts = append(parts, word+" "+program.Ranges(inside))
	}
	return strings.Join(parts, ", ")
}
