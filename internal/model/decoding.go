package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/inferflow/inferflow/spec"
)

// Decoding is what a model's files say of a search with beams and of what may
// stand in an answer, under the names of transformers' GenerationConfig.
// Lengths count the prompt, or an encoder-decoder's start token, as those files
// do.
type Decoding struct {
	// Of an encoder-decoder alone.
	Start int32   // decoder_start_token_id
	First []int32 // forced_bos_token_id: the answer begins with it; none or one

	Beams         int      // num_beams; 0 or 1: no search
	LengthPenalty float64  // length_penalty; 1 where nothing is said
	Early         string   // early_stopping: "" (false), "true" or "never"
	Sampled       bool     // do_sample: the beams, if any, are drawn
	Unserved      []string // settings of other searches, which are not done

	MinLength, MaxLength int            // no end token before it, the answer ends there; 0: none, where the context ends
	MinNew, MaxNew       int            // the same of the answer alone; they go before
	Last                 []int32        // forced_eos_token_id: an answer of MaxLength ends with one of them; none: any
	Repetition           float64        // repetition_penalty; 0: nothing is said
	Lift                 float64        // encoder_repetition_penalty; 0: none
	NoRepeat             int            // no_repeat_ngram_size; 0: any
	NoRepeatSource       int            // encoder_no_repeat_ngram_size; 0: any
	Bad                  [][]int32      // bad_words_ids
	Bias                 []SequenceBias // sequence_bias
	DecayFrom            int            // exponential_decay_length_penalty: from this length of the answer on
	Decay                float64        // an end gets likelier by this factor; 0: none
	Suppress             []int32        // suppress_tokens
	SuppressFirst        []int32        // begin_suppress_tokens
	Renormalise          bool           // renormalize_logits
}

// SequenceBias is added to the logit of the last of IDs after the others.
type SequenceBias struct {
	IDs  []int32
	Bias float64
}

// decoding reads generation_config.json; in older folders, which have none (own
// is nil), config.json, else what the specification says are the family's
// defaults. An encoder-decoder answers greedily unless its files say otherwise;
// of another model config.json says nothing, for old ones list defaults.
func (m *Model) decoding(own map[string]any) {
	g := &m.Generation
	g.Decoding.LengthPenalty = 1
	from := func(own map[string]any, further bool) func(key string) (any, string) {
		return func(key string) (any, string) { return m.setting(own, key, further) }
	}
	r := &decodingReader{find: from(own, own == nil && m.Encodes()), note: g.cite}
	if m.Encodes() {
		s := &decodingReader{find: from(own, true), note: r.note}
		start := append(s.ids("decoder_start_token_id"), s.ids("bos_token_id")...)
		g.Decoding.Start = append(start, 0)[0]
	}
	r.read(&g.Decoding)
	if rep := g.Decoding.Repetition; rep != 0 && g.RepetitionPenalty == nil {
		g.RepetitionPenalty = &rep
	}
	if !m.Encodes() { // where an answer ends is for the request to say
		d := &g.Decoding
		d.First, d.Last, d.MinLength, d.MaxLength, d.MaxNew = nil, nil, 0, 0, 0
		return
	}
	g.Greedy = g.Greedy || !g.Decoding.Sampled
}

// cite keeps where a value came from, once.
func (g *Generation) cite(v spec.ConfigValue) {
	if !slices.ContainsFunc(g.Sources, func(o spec.ConfigValue) bool { return o.Key == v.Key && o.Source == v.Source }) {
		g.Sources = append(g.Sources, v)
	}
}

// setting finds a setting in generation_config.json, and further if asked to.
func (m *Model) setting(own map[string]any, key string, further bool) (any, string) {
	if v, ok := m.o.Spec.Set[key]; ok {
		return v, userSource
	}
	if v, ok := own[key]; ok && v != nil {
		return v, "generation_config.json"
	}
	if !further {
		return nil, ""
	}
	if v, ok := m.files.folderConfig()[key]; ok {
		return v, m.files.configSource()
	}
	if m.files.Binding() == spec.GGUF {
		full := m.files.Architecture() + "." + key
		if v, ok := m.files.config[full]; ok {
			return v, "gguf " + full
		}
	}
	return m.Traced.Generation[key], "spec default"
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

// factor replaces a number of any kind where the key is there.
func (r *decodingReader) factor(key string, into *float64) {
	if f, ok := number(r.value(key)); ok && !math.IsNaN(f) && !math.IsInf(f, 0) {
		*into = f
	}
}

func (r *decodingReader) flag(key string, into *bool) {
	if b, ok := r.value(key).(bool); ok {
		*into = b
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
	r.count("min_new_tokens", &d.MinNew)
	r.count("max_length", &d.MaxLength)
	r.count("max_new_tokens", &d.MaxNew)
	r.search(d)
	r.factor("repetition_penalty", &d.Repetition)
	r.factor("encoder_repetition_penalty", &d.Lift)
	r.count("no_repeat_ngram_size", &d.NoRepeat)
	r.count("encoder_no_repeat_ngram_size", &d.NoRepeatSource)
	if list, ok := r.value("bad_words_ids").([]any); ok {
		d.Bad = nil
		for _, words := range list {
			if ids := idsOf(words); len(ids) > 0 {
				d.Bad = append(d.Bad, ids)
			}
		}
	}
	if ids := r.ids("suppress_tokens"); len(ids) > 0 {
		d.Suppress = ids
	}
	if ids := r.ids("begin_suppress_tokens"); len(ids) > 0 {
		d.SuppressFirst = ids
	}
	if list, ok := r.value("sequence_bias").([]any); ok {
		d.Bias = biases(list)
	}
	if pair, ok := r.value("exponential_decay_length_penalty").([]any); ok && len(pair) == 2 {
		from, ok1 := number(pair[0])
		by, ok2 := number(pair[1])
		if ok1 && ok2 && from >= 0 && from < 1<<31 && by > 0 {
			d.DecayFrom, d.Decay = int(from), by
		}
	}
	r.flag("renormalize_logits", &d.Renormalise)
}

// search reads how the answer is searched for.
func (r *decodingReader) search(d *Decoding) {
	r.count("num_beams", &d.Beams)
	r.factor("length_penalty", &d.LengthPenalty)
	switch v := r.value("early_stopping").(type) {
	case bool:
		if d.Early = ""; v {
			d.Early = "true"
		}
	case string:
		if v == "never" {
			d.Early = v
		}
	}
	r.flag("do_sample", &d.Sampled)
	for _, key := range []string{"num_beam_groups", "penalty_alpha", "guidance_scale", "constraints", "force_words_ids"} {
		switch v := r.value(key).(type) {
		case nil, bool, string:
		case []any:
			if len(v) > 0 {
				d.Unserved = append(d.Unserved, key)
			}
		default:
			if f, ok := number(v); ok && f != 0 && f != 1 {
				d.Unserved = append(d.Unserved, key)
			}
		}
	}
}

// biases reads pairs of ids and a number; of the same ids the last counts.
func biases(list []any) (out []SequenceBias) {
	at := map[string]int{}
	for _, x := range list {
		pair, ok := x.([]any)
		if !ok || len(pair) != 2 {
			continue
		}
		ids := idsOf(pair[0])
		bias, ok := number(pair[1])
		if !ok || len(ids) == 0 {
			continue
		}
		key := fmt.Sprint(ids)
		if i, ok := at[key]; ok {
			out[i].Bias = bias
			continue
		}
		at[key] = len(out)
		out = append(out, SequenceBias{ids, bias})
	}
	return out
}

// FolderTask is what task_specific_params of config.json says of a task.
type FolderTask struct {
	Prefix   string // text before the source's
	Decoding Decoding
}

// FolderTasks are the tasks of config.json by the names that they have there
// (summarization, translation_en_to_de), with the decoding of each.
func (m *Model) FolderTasks() map[string]FolderTask {
	all, _ := m.files.folderConfig()["task_specific_params"].(map[string]any)
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
