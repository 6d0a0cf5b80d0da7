package model

import (
	"github.com/inferflow/inferflow/spec"
)

// Decoding is what an encoder-decoder's files say of how an answer begins and
// what may not stand in it. Lengths count the start token, as those files do.
type Decoding struct {
	Start          int32     // decoder_start_token_id
	First          []int32   // forced_bos_token_id: the answer begins with it; none or one
	Last           []int32   // forced_eos_token_id: an answer of MaxLength ends with one of them; none: any
	MinLength      int       // no end token before it; 0: none
	MaxLength      int       // the answer ends there; 0: where the context ends
	NoRepeat       int       // no run of so many tokens twice; 0: any
	NoRepeatSource int       // no run of so many tokens of the source; 0: any
	Bad            [][]int32 // sequences that may not be said
	Beams          int       // beams that the files ask for
}

// decoding reads generation_config.json, else config.json, else what the
// specification says are the family's defaults. own is nil where there is no
// such file. An encoder-decoder answers greedily unless its files say otherwise.
func (m *Model) decoding(own map[string]any) {
	if !m.Encodes() {
		return
	}
	g := &m.Generation
	r := &decodingReader{find: func(key string) (any, string) {
		if v, ok := own[key]; ok && v != nil {
			return v, "generation_config.json"
		}
		if m.files.Binding() == spec.GGUF {
			full := m.files.Architecture() + "." + key
			if v, ok := m.files.config[full]; ok {
				return v, "gguf " + full
			}
		} else if v, ok := m.files.config[key]; ok {
			return v, "config.json"
		}
		return m.Traced.Generation[key], "spec default"
	}, note: func(v spec.ConfigValue) { g.Sources = append(g.Sources, v) }}
	start := append(r.ids("decoder_start_token_id"), r.ids("bos_token_id")...)
	g.Decoding.Start = append(start, 0)[0]
	r.read(&g.Decoding)
	if sampled, _ := r.value("do_sample").(bool); !sampled {
		g.Greedy = true
	}
}

// decodingReader reads settings of generation by their keys.
type decodingReader struct {
	find func(key string) (v any, source string)
	note func(spec.ConfigValue)
}

func (r *decodingReader) value(key string) any {
	v, source := r.find(key)
	if v != nil && r.note != nil {
		r.note(spec.ConfigValue{Key: key, Value: v, Source: source})
	}
	return v
}

func (r *decodingReader) ids(key string) []int32 { return idsOf(r.value(key)) }

// count replaces a number where the key is there.
func (r *decodingReader) count(key string, into *int) {
	if f, ok := number(r.value(key)); ok && f >= 0 && f < 1<<31 {
		*into = int(f)
	}
}

// read replaces what the settings name.
func (r *decodingReader) read(d *Decoding) {
	if ids := r.ids("forced_bos_token_id"); len(ids) > 0 {
		d.First = ids[:1]
	}
	if ids := r.ids("forced_eos_token_id"); len(ids) > 0 {
		d.Last = ids
	}
	r.count("min_length", &d.MinLength)
	r.count("max_length", &d.MaxLength)
	r.count("num_beams", &d.Beams)
	r.count("no_repeat_ngram_size", &d.NoRepeat)
	r.count("encoder_no_repeat_ngram_size", &d.NoRepeatSource)
	if list, ok := r.value("bad_words_ids").([]any); ok {
		for _, words := range list {
			if ids := idsOf(words); len(ids) > 0 {
				d.Bad = append(d.Bad, ids)
			}
		}
	}
	for _, id := range r.ids("suppress_tokens") {
		d.Bad = append(d.Bad, []int32{id})
	}
}

// FolderTask is what task_specific_params of config.json says of a task.
type FolderTask struct {
	Prefix   string // text before the source's
	Decoding Decoding
}

// FolderTasks are the tasks of config.json by the names that they have there
// (summarization, translation_en_to_de), with the decoding of each.
func (m *Model) FolderTasks() map[string]FolderTask {
	all, _ := m.files.config["task_specific_params"].(map[string]any)
	out := map[string]FolderTask{}
	for name, v := range all {
		settings, ok := v.(map[string]any)
		if !ok {
			continue
		}
		t := FolderTask{Decoding: m.Generation.Decoding}
		t.Prefix, _ = settings["prefix"].(string)
		r := &decodingReader{find: func(key string) (any, string) { return settings[key], "" }}
		r.read(&t.Decoding)
		out[name] = t
	}
	return out
}
