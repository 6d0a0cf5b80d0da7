package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/inferflow/inferflow/spec"
)

// Generation is what the model's own files say of generation: the values that
// are there, and where each came from.
type Generation struct {
	Temperature       *float64
	TopP              *float64
	TopK              *int
	MinP              *float64
	TypicalP          *float64
	RepetitionPenalty *float64
	Greedy            bool    // do_sample is false
	EndTokens         []int32 // ids that end an answer
	Sources           []spec.ConfigValue
	Decoding          Decoding // a search with beams, and rules of an answer
}

// generation collects sampling defaults and end tokens from
// generation_config.json, config.json, the metadata and the tokenizer.
func (m *Model) generation() error {
	g := &m.Generation
	ends := map[int32]bool{}
	add := func(key string, v any, source string) {
		for _, id := range idsOf(v) {
			ends[id] = true
		}
		if v != nil {
			g.Sources = append(g.Sources, spec.ConfigValue{Key: key, Value: v, Source: source})
		}
	}
	var own map[string]any // generation_config.json
	given, set := m.o.Spec.Set["eos_token_id"]
	if set {
		add("eos_token_id", given, userSource)
	}
	if config := m.files.folderConfig(); config != nil {
		raw, err := m.files.optional("generation_config.json")
		if err != nil {
			return err
		}
		if raw != nil {
			if own, err = decodeObject(raw); err != nil {
				return fmt.Errorf("model: generation_config.json: %w", err)
			}
			g.sampling(own, "", "generation_config.json")
		}
		if !set {
			add("eos_token_id", config["eos_token_id"], m.files.configSource())
			add("eos_token_id", own["eos_token_id"], "generation_config.json")
		}
	}
	if own == nil && m.files.Binding() == spec.GGUF {
		g.sampling(m.files.config, "general.sampling.", "gguf")
	}
	g.sampling(m.o.Spec.Set, "", userSource)
	m.decoding(own)
	g.fallBack()
	if m.Tokenizer != nil {
		for _, id := range m.Tokenizer.EndTokens() {
			ends[id] = true
		}
		for _, text := range m.Traced.Chat.EndTokens {
			if id, ok := m.Tokenizer.ID(text); ok {
				ends[id] = true
			}
		}
	}
	for id := range ends {
		g.EndTokens = append(g.EndTokens, id)
	}
	sort.Slice(g.EndTokens, func(i, j int) bool { return g.EndTokens[i] < g.EndTokens[j] })
	return nil
}

// Sampling of a model whose files say nothing of it.
const (
	defaultTemperature = 0.7
	defaultTopP        = 0.9
	defaultSource      = "default, for the files say nothing"
)

// fallBack gives a model without sampling values of its own the defaults.
func (g *Generation) fallBack() {
	if g.Temperature == nil && g.TopP == nil && g.TopK == nil && g.MinP == nil && g.TypicalP == nil && !g.Greedy {
		g.Suggest(map[string]float64{"temperature": defaultTemperature, "top_p": defaultTopP}, defaultSource)
	}
}

// Suggest sets sampling values that the model's own files do not name:
// temperature, top_p, min_p, top_k. The source is shown by explain.
func (g *Generation) Suggest(values map[string]float64, source string) {
	var own []spec.ConfigValue
	for _, v := range g.Sources {
		if v.Source != defaultSource {
			own = append(own, v)
			continue
		}
		if f := g.field(v.Key); f != nil {
			*f = nil
		}
	}
	g.Sources = own
	for _, key := range []string{"temperature", "top_p", "min_p"} {
		if x, ok := values[key]; ok && *g.field(key) == nil {
			*g.field(key) = &x
			g.Sources = append(g.Sources, spec.ConfigValue{Key: key, Value: x, Source: source})
		}
	}
	if x, ok := values["top_k"]; ok && g.TopK == nil {
		k := int(x)
		g.TopK = &k
		g.Sources = append(g.Sources, spec.ConfigValue{Key: "top_k", Value: k, Source: source})
	}
}

func (g *Generation) field(key string) **float64 {
	switch key {
	case "temperature":
		return &g.Temperature
	case "top_p":
		return &g.TopP
	case "min_p":
		return &g.MinP
	}
	return nil
}

// sampling takes the values that c has.
func (g *Generation) sampling(c map[string]any, prefix, source string) {
	find := func(key string) any {
		v := c[prefix+key]
		if v != nil {
			g.Sources = slices.DeleteFunc(g.Sources, func(o spec.ConfigValue) bool { return o.Key == key })
			g.Sources = append(g.Sources, spec.ConfigValue{Key: key, Value: v, Source: source})
		}
		return v
	}
	float := func(key string, into **float64) {
		if f, ok := number(find(key)); ok {
			*into = &f
		}
	}
	temp := "temperature"
	if prefix != "" {
		temp = "temp"
	}
	float(temp, &g.Temperature)
	float("top_p", &g.TopP)
	float("min_p", &g.MinP)
	float("typical_p", &g.TypicalP)
	float("repetition_penalty", &g.RepetitionPenalty)
	if f, ok := number(find("top_k")); ok {
		k := int(f)
		g.TopK = &k
	}
	if s, ok := find("do_sample").(bool); ok {
		g.Greedy = !s
	}
}

// userSource is the source of what Options.Spec.Set gives.
const userSource = "set by the user"

// ReadsBeside says that a key of config.json is read beside the specification:
// where an answer ends, how it is drawn and searched for, names of classes.
func ReadsBeside(key string) bool {
	read := map[string]any{}
	note := func(k string) (any, string) {
		read[k] = true
		return nil, ""
	}
	(&decodingReader{find: note}).read(&Decoding{})
	_, ok := read[key]
	return ok || slices.Contains(besideKeys, strings.SplitN(key, ".", 2)[0])
}

// besideKeys are those that are read otherwise than by a decodingReader.
var besideKeys = []string{"eos_token_id", "bos_token_id", "decoder_start_token_id", "temperature", "top_p", "top_k", "min_p", "typical_p", "do_sample",
	"id2label", "problem_type", "task_specific_params"}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case json.Number:
		f, err := x.Float64()
		return f, err == nil
	case float64:
		return x, true
	case float32:
		return float64(x), true
	case int64:
		return float64(x), true
	case uint64:
		return float64(x), true
	case int:
		return float64(x), true
	case int32:
		return float64(x), true
	case uint32:
		return float64(x), true
	}
	return 0, false
}

// idsOf reads a token id or a list of them.
func idsOf(v any) []int32 {
	if list, ok := v.([]any); ok {
		var ids []int32
		for _, x := range list {
			ids = append(ids, idsOf(x)...)
		}
		return ids
	}
	if f, ok := number(v); ok && f >= 0 && f < 1<<31 {
		return []int32{int32(f)}
	}
	return nil
}
