package model

import (
	"github.com/inferflow/inferflow/spec"
)

// Decoding is what an encoder-decoder's files say of how an answer begins and
// what may not stand in it. Lengths count the start token, as those files do.
type Decoding struct {
	Start          int32     // decoder_start_token_id
	First, Last    []int32   // forced_bos_token_id and forced_eos_token_id; none or one
	MinLength      int       // no end token before it; 0: none
	MaxLength      int       // the answer ends there; 0: where the context ends
	NoRepeat       int       // no run of so many tokens twice; 0: any
	NoRepeatSource int       // no run of so many tokens of the source; 0: any
	Bad            [][]int32 // sequences that may not be said
	Beams          int       // beams that the files ask for
}

// decoding reads generation_config.json, else config.json, else what the
// specification says are the family's defaults. generation is nil where there
// is no such file.
func (m *Model) decoding(generation map[string]any) {
	if !m.Encodes() {
		return
	}
	g := &m.Generation
	find := func(key string) (any, string) {
		if v, ok := generation[key]; ok && v != nil {
			return v, "generation_config.json"
		}
		if m.files.meta != nil {
			full := m.files.Architecture() + "." + key
			return m.files.config[full], "gguf " + full
		}
		if v, ok := m.files.config[key]; ok {
			return v, "config.json"
		}
		return m.Traced.Generation[key], "spec default"
	}
	value := func(key string) any {
		v, source := find(key)
		if v != nil {
			g.Sources = append(g.Sources, spec.ConfigValue{Key: key, Value: v, Source: source})
		}
		return v
	}
	count := func(key string) int {
		if f, ok := number(value(key)); ok && f > 0 && f < 1<<31 {
			return int(f)
		}
		return 0
	}
	d := &g.Decoding
	start := idsOf(value("decoder_start_token_id"))
	if len(start) == 0 {
		start = append(idsOf(value("bos_token_id")), 0)
	}
	d.Start = start[0]
	d.First, d.Last = idsOf(value("forced_bos_token_id")), idsOf(value("forced_eos_token_id"))
	d.MinLength, d.MaxLength, d.Beams = count("min_length"), count("max_length"), count("num_beams")
	d.NoRepeat, d.NoRepeatSource = count("no_repeat_ngram_size"), count("encoder_no_repeat_ngram_size")
	if list, ok := value("bad_words_ids").([]any); ok {
		for _, words := range list {
			if ids := idsOf(words); len(ids) > 0 {
				d.Bad = append(d.Bad, ids)
			}
		}
	}
	for _, id := range idsOf(value("suppress_tokens")) {
		d.Bad = append(d.Bad, []int32{id})
	}
}
