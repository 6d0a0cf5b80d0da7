package tokenizer

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Setting is a metadata key of a GGUF file with its value, of the format's types.
type Setting struct {
	Key   string
	Value any
}

// GGUFPreTokenizers lists the values of tokenizer.ggml.pre that a converted file may carry, the likeliest first.
func GGUFPreTokenizers() ([]string, error) {
	all, err := presets()
	if err != nil {
		return nil, err
	}
	return all.Written, nil
}

// GGUF describes the tokenizer as a GGUF file does, for a model whose table of embeddings has rows rows; ids without a token are unused ones. pre is the
// value of tokenizer.ggml.pre, for byte-level vocabularies. What the format cannot say (normalizers beyond its flags, flags of added tokens) is left out:
// the caller compares. An error wraps ErrUnsupported.
func (t *Tokenizer) GGUF(pre string, rows int) ([]Setting, error) {
	e := &exporter{t: t, texts: slices.Clone(t.texts), types: make([]int32, len(t.texts))}
	for i := range e.texts {
		e.types[i] = e.typeOf(i)
	}
	for i := len(e.texts); i < rows; i++ {
		e.texts, e.types = append(e.texts, fmt.Sprintf("[PAD%d]", i)), append(e.types, ggufUnused)
	}
	for i, s := range e.texts {
		if s == "" {
			e.texts[i], e.types[i] = fmt.Sprintf("[PAD%d]", i), ggufUnused
		}
	}
	if err := e.model(pre); err != nil {
		return nil, err
	}
	e.set("tokens", e.texts)
	e.set("token_type", e.types)
	e.ids()
	return e.out, nil
}

// exporter collects the keys of a GGUF file.
type exporter struct {
	t     *Tokenizer
	texts []string
	types []int32
	out   []Setting
}

func (e *exporter) set(key string, v any) { e.out = append(e.out, Setting{ggml + key, v}) }

func (e *exporter) typeOf(i int) int32 {
	switch k := e.t.kinds[i]; {
	case k&kindUnknown != 0:
		return ggufUnknown
	case k&kindControl != 0:
		return ggufControl
	case k&kindByte != 0:
		return ggufByte
	case k&kindAdded != 0:
		return ggufUserDefined
	case k&kindUnused != 0:
		return ggufUnused
	}
	return ggufNormal
}

// model writes what the kind of model needs.
func (e *exporter) model(pre string) error {
	switch m := e.t.model.(type) {
	case *bpe:
		if m.prefix != "" || m.suffix != "" {
			break
		}
		if m.byteLevel && m.merges != nil {
			e.set("model", modelName("merges"))
			e.set("pre", pre)
			e.set("merges", e.merges(m))
			return nil
		}
		if !m.byteLevel {
			e.scored(m)
			return nil
		}
	case *unigram:
		e.unigram(m)
		return nil
	case *wordPiece:
		e.pieces()
		return nil
	}
	return fmt.Errorf("tokenizer: %w: GGUF has no form for this kind of tokenizer", ErrUnsupported)
}

// modelName is the value of tokenizer.ggml.model for a kind of model.
func modelName(kind string) string {
	all, err := presets()
	if err != nil {
		return "" // embedded: a test reads it
	}
	for _, name := range slices.Sorted(maps.Keys(all.Models)) {
		if m := all.Models[name]; m.Kind == kind && m.Pre == "" {
			return name
		}
	}
	return ""
}

// ranked are the merges of a model in their order.
func (m *bpe) ranked() []pairSlot {
	var list []pairSlot
	for _, s := range m.merges.slots {
		if s.key != 0 {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b pairSlot) int { return int(a.pair.rank) - int(b.pair.rank) })
	return list
}

func (e *exporter) merges(m *bpe) []string {
	var lines []string
	for _, s := range m.ranked() {
		lines = append(lines, e.texts[int32(s.key>>32)-1]+" "+e.texts[int32(uint32(s.key))])
	}
	return lines
}

// scored writes a vocabulary whose merges follow from scores: the sooner a piece arises, the higher.
func (e *exporter) scored(m *bpe) {
	scores := make([]float32, len(e.texts))
	const never = -1e9
	for i := range scores {
		scores[i] = never
	}
	if m.merges == nil {
		for i, r := range m.ranks {
			if r != noPair {
				scores[i] = -float32(r)
			}
		}
	} else {
		next := float32(0)
		for _, s := range m.ranked() {
			if scores[s.pair.id] == never {
				scores[s.pair.id] = next
				next--
			}
		}
	}
	for i, typ := range e.types { // byte tokens are spelled so, whatever the file calls them
		if _, ok := byteToken(e.texts[i]); ok && m.fallback && typ == ggufNormal {
			e.types[i] = ggufByte
		}
	}
	if m.unk >= 0 {
		e.types[m.unk] = ggufUnknown
	}
	e.set("model", modelName("scores"))
	e.set("scores", scores)
	e.set("add_space_prefix", e.prefixed())
}

// prefixed says whether a space is put before a text.
func (e *exporter) prefixed() bool {
	ids := e.t.Encode("a", Options{})
	return len(ids) > 0 && strings.HasPrefix(e.t.Text(ids[0]), spaceMark)
}

func (e *exporter) unigram(m *unigram) {
	scores := make([]float32, len(e.texts))
	for i, s := range m.scores {
		scores[i] = float32(s)
	}
	if m.unk >= 0 {
		e.types[m.unk] = ggufUnknown
	}
	e.set("model", modelName("unigram"))
	e.set("scores", scores)
	e.set("add_space_prefix", e.prefixed())
	merges := len(e.t.Encode("a  a", Options{})) == len(e.t.Encode("a a", Options{}))
	e.set("remove_extra_whitespaces", merges)
	if chars := charsmapOf(e.t.norm); chars != nil {
		e.set("precompiled_charsmap", chars.blob())
	}
}

// blob is what parseCharsmap reads.
func (m *charsmap) blob() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(4*len(m.units)))
	for _, u := range m.units {
		b = binary.LittleEndian.AppendUint32(b, u)
	}
	return append(b, m.replacements...)
}

// charsmapOf finds the precompiled normalization.
func charsmapOf(n normalizer) *charsmap {
	switch n := n.(type) {
	case *pieceNormalizer:
		return n.chars
	case charsmapNormalizer:
		return n.chars
	case normalizers:
		for _, x := range n {
			if c := charsmapOf(x); c != nil {
				return c
			}
		}
	}
	return nil
}

// pieces writes a WordPiece vocabulary: GGUF marks the pieces that begin a word, not those that go on.
func (e *exporter) pieces() {
	for i, s := range e.texts {
		rest, inside := strings.CutPrefix(s, "##")
		switch {
		case e.types[i] == ggufControl || e.types[i] == ggufUnknown || e.types[i] == ggufUnused || strings.HasPrefix(s, spaceMark):
		case inside && rest != "":
			e.texts[i] = rest
		default:
			e.texts[i] = spaceMark + s
		}
	}
	e.set("model", modelName("pieces"))
	e.set("token_type_count", uint32(2))
	lower := slices.Equal(e.t.Encode("A", Options{}), e.t.Encode("a", Options{}))
	e.set("normalizer.lowercase", lower)
	e.set("normalizer.strip_accents", slices.Equal(e.t.Encode("é", Options{}), e.t.Encode("e", Options{})))
}

// ids writes the ids with a role, and what stands around a text.
func (e *exporter) ids() {
	keys := map[string]string{"bos": "bos_token_id", "eos": "eos_token_id", "eot": "eot_token_id", "eom": "eom_token_id", "unk": "unknown_token_id",
		"sep": "seperator_token_id", "pad": "padding_token_id", "cls": "cls_token_id", "mask": "mask_token_id"}
	for _, role := range []string{"bos", "eos", "eot", "eom", "unk", "sep", "pad", "cls", "mask"} {
		if id, ok := e.t.named[role]; ok {
			e.set(keys[role], uint32(id))
		}
	}
	around := func(ids []int32, roles ...string) bool {
		return len(ids) > 0 && slices.ContainsFunc(roles, func(r string) bool { id, ok := e.t.named[r]; return ok && ids[0] == id })
	}
	e.set("add_bos_token", around(e.t.prefix, "bos", "cls"))
	e.set("add_eos_token", around(e.t.suffix, "eos"))
	if around(e.t.suffix, "sep") {
		e.set("add_sep_token", true)
	}
}
