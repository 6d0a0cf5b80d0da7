package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// object is a JSON object.
type object = map[string]any

// JSON writes the tokenizer that a GGUF file describes as a tokenizer.json, and the tokenizer_config.json beside it. Errors are FromGGUF's, or wrap
// ErrUnsupported.
func JSON(meta Meta) (tokenizerJSON, config []byte, err error) {
	t, err := FromGGUF(meta)
	if err != nil {
		return nil, nil, err
	}
	r := &ggufReader{meta: meta}
	v := r.vocabulary()
	if r.err != nil {
		return nil, nil, r.err
	}
	w := &jsonWriter{t: t, r: r, v: v}
	doc := object{"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": w.added(), "post_processor": w.template()}
	if err := w.model(doc); err != nil {
		return nil, nil, err
	}
	if tokenizerJSON, err = json.MarshalIndent(doc, "", " "); err == nil {
		config, err = json.MarshalIndent(w.config(), "", " ")
	}
	return tokenizerJSON, config, err
}

type jsonWriter struct {
	t *Tokenizer
	r *ggufReader
	v *vocabulary
}

func (w *jsonWriter) added() []object {
	list := []object{}
	for i, text := range w.v.texts {
		if w.v.kinds[i]&kindAdded != 0 && text != "" {
			list = append(list, object{"id": i, "content": text, "special": w.v.kinds[i]&kindControl != 0, "normalized": false, "lstrip": false, "rstrip": false, "single_word": false})
		}
	}
	return list
}

// template is the post-processor that puts prefix and suffix around a text.
func (w *jsonWriter) template() any {
	if len(w.t.prefix)+len(w.t.suffix) == 0 {
		return nil
	}
	special := object{}
	around := func(mid []object, typ int) []object {
		var out []object
		mark := func(ids []int32) {
			for _, id := range ids {
				text := w.t.texts[id]
				special[text] = object{"id": text, "ids": []int32{id}, "tokens": []string{text}}
				out = append(out, object{"SpecialToken": object{"id": text, "type_id": typ}})
			}
		}
		mark(w.t.prefix)
		out = append(out, mid...)
		mark(w.t.suffix)
		return out
	}
	a, b := object{"Sequence": object{"id": "A", "type_id": 0}}, object{"Sequence": object{"id": "B", "type_id": 1}}
	return object{"type": "TemplateProcessing", "single": around([]object{a}, 0), "pair": around([]object{a, b}, 0), "special_tokens": special}
}

// vocab is the object of the tokens, without those that have no text of their own.
func (w *jsonWriter) vocab(text func(i int) string) object {
	vocab := object{}
	for i := range w.v.texts {
		if s := text(i); s != "" {
			if _, ok := vocab[s]; !ok {
				vocab[s] = i
			}
		}
	}
	return vocab
}

func (w *jsonWriter) model(doc object) error {
	switch m := w.t.model.(type) {
	case *bpe:
		if m.byteLevel {
			return w.byteLevel(doc, m)
		}
		if m.merges == nil {
			w.scored(doc, m)
			return nil
		}
	case *unigram:
		w.unigram(doc, m)
		return nil
	case *wordPiece:
		w.wordPiece(doc, m)
		return nil
	}
	return fmt.Errorf("tokenizer: %w: tokenizer.json has no form for this kind of tokenizer", ErrUnsupported)
}

func (w *jsonWriter) byteLevel(doc object, m *bpe) error {
	all, err := presets()
	if err != nil {
		return err
	}
	name := w.r.str(ggml + "pre")
	if name == "" {
		name = "default"
	}
	pre, err := all.find(name)
	if err != nil {
		return err
	}
	var steps []object
	for _, p := range pre.patterns {
		steps = append(steps, object{"type": "Split", "pattern": object{"Regex": p}, "behavior": "Isolated", "invert": false})
	}
	steps = append(steps, object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false})
	merges := [][2]string{}
	if m.merges != nil {
		for _, s := range m.ranked() {
			merges = append(merges, [2]string{w.v.texts[int32(s.key>>32)-1], w.v.texts[int32(uint32(s.key))]})
		}
	}
	doc["normalizer"], doc["pre_tokenizer"] = nil, object{"type": "Sequence", "pretokenizers": steps}
	doc["decoder"] = object{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}
	doc["model"] = object{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false,
		"ignore_merges": m.ignore, "vocab": w.vocab(func(i int) string { return w.v.texts[i] }), "merges": merges}
	return nil
}

// unknown is the text of the token for what is unknown.
func (w *jsonWriter) unknown() any {
	if id, ok := w.t.named["unk"]; ok {
		return w.t.texts[id]
	}
	return nil
}

// scored writes the merges that follow from scores, as transformers does (SentencePieceExtractor): every way to cut a piece in two, the best piece first.
func (w *jsonWriter) scored(doc object, m *bpe) {
	type cut struct{ left, right, rank int32 }
	var cuts []cut
	for whole, id := range m.lookup {
		if m.ranks[id] == noPair {
			continue
		}
		for i := range whole {
			l, ok1 := m.lookup[whole[:i]]
			r, ok2 := m.lookup[whole[i:]]
			if i > 0 && ok1 && ok2 {
				cuts = append(cuts, cut{l, r, m.ranks[id]})
			}
		}
	}
	slices.SortFunc(cuts, func(a, b cut) int {
		for _, d := range []int32{a.rank - b.rank, a.left - b.left, a.right - b.right} {
			if d != 0 {
				return int(d)
			}
		}
		return 0
	})
	merges := [][2]string{}
	for _, c := range cuts {
		merges = append(merges, [2]string{w.v.texts[c.left], w.v.texts[c.right]})
	}
	replace := object{"type": "Replace", "pattern": object{"String": " "}, "content": spaceMark}
	decoders := []object{{"type": "Replace", "pattern": object{"String": spaceMark}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}}
	doc["normalizer"] = replace
	if w.r.flag(ggml+"add_space_prefix", true) {
		doc["normalizer"] = object{"type": "Sequence", "normalizers": []object{{"type": "Prepend", "prepend": spaceMark}, replace}}
		decoders = append(decoders, object{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	}
	doc["pre_tokenizer"], doc["decoder"] = nil, object{"type": "Sequence", "decoders": decoders}
	doc["model"] = object{"type": "BPE", "dropout": nil, "unk_token": w.unknown(), "continuing_subword_prefix": nil, "end_of_word_suffix": nil, "fuse_unk": true,
		"byte_fallback": m.fallback, "ignore_merges": false, "vocab": w.vocab(func(i int) string { return w.v.texts[i] }), "merges": merges}
}

func (w *jsonWriter) unigram(doc object, m *unigram) {
	vocab := make([][2]any, len(w.v.texts))
	for i, s := range w.v.texts {
		vocab[i] = [2]any{s, m.scores[i]}
	}
	var steps []object
	if c := charsmapOf(w.t.norm); c != nil {
		steps = append(steps, object{"type": "Precompiled", "precompiled_charsmap": base64.StdEncoding.EncodeToString(c.blob())})
	}
	if w.r.flag(ggml+"remove_extra_whitespaces", false) {
		steps = append(steps, object{"type": "Strip", "strip_left": true, "strip_right": true}, object{"type": "Replace", "pattern": object{"Regex": " {2,}"}, "content": " "})
	}
	scheme := "never"
	if w.r.flag(ggml+"add_space_prefix", false) {
		scheme = "always"
	}
	space := object{"type": "Metaspace", "replacement": spaceMark, "prepend_scheme": scheme, "split": true}
	doc["normalizer"] = nil
	if len(steps) > 0 {
		doc["normalizer"] = object{"type": "Sequence", "normalizers": steps}
	}
	doc["pre_tokenizer"], doc["decoder"] = space, space
	doc["model"] = object{"type": "Unigram", "unk_id": max(m.unk, 0), "vocab": vocab, "byte_fallback": m.fallback}
}

// stepName is the type that tokenizer.json has for a step of ours that is named after a model there.
func stepName(step string) string {
	all, err := presets()
	if err != nil {
		return "" // embedded: a test reads it
	}
	for name, s := range all.Steps {
		if s == step {
			return name
		}
	}
	return step
}

func (w *jsonWriter) wordPiece(doc object, m *wordPiece) {
	text := func(i int) string {
		s := w.v.texts[i]
		if rest, ok := strings.CutPrefix(s, spaceMark); ok {
			return rest
		}
		if w.v.kinds[i] == kindNormal && s != "" && utf8.ValidString(s) {
			return "##" + s
		}
		return s
	}
	lower := w.r.flag(ggml+"normalizer.lowercase", true)
	doc["normalizer"] = object{"type": stepName("Clean"), "clean_text": true, "handle_chinese_chars": true, "lowercase": lower, "strip_accents": w.r.flag(ggml+"normalizer.strip_accents", lower)}
	doc["pre_tokenizer"], doc["decoder"] = object{"type": stepName("CleanWords")}, object{"type": "WordPiece", "prefix": "##", "cleanup": true}
	doc["model"] = object{"type": "WordPiece", "unk_token": w.unknown(), "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": w.vocab(text)}
}

// config is the tokenizer_config.json.
func (w *jsonWriter) config() object {
	c := object{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}
	for role, key := range map[string]string{"bos": "bos_token", "eos": "eos_token", "unk": "unk_token", "pad": "pad_token", "sep": "sep_token", "cls": "cls_token", "mask": "mask_token"} {
		if id, ok := w.t.named[role]; ok {
			c[key] = w.t.texts[id]
		}
	}
	c["add_bos_token"], c["add_eos_token"] = len(w.t.prefix) > 0, len(w.t.suffix) > 0
	return c
}
