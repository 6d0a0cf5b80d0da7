package tokenizer

import (
	"fmt"
	"strings"

	"github.com/inferflow/inferflow/tokenizer/pattern"
)

// bpe reads a vocabulary with merges, over bytes unless the pre-tokenizer says otherwise; name is that of the pre-tokenizer if the model implies it.
func (r *ggufReader) bpe(t *Tokenizer, v *vocabulary, name string) error {
	if name == "" {
		name = r.str(ggml + "pre")
	}
	if name == "" {
		name = "default"
	}
	all, err := presets()
	if err != nil {
		return err
	}
	pre, err := all.find(name)
	if err != nil {
		return err
	}
	t.byteLevel = !pre.Raw
	m := &bpe{unk: -1, byteLevel: t.byteLevel, ignore: pre.IgnoreMerges, newlines: pre.Newlines, known: make([]uint32, len(v.texts)/16+1)}
	plain := func(i int) bool { return v.kinds[i]&(kindControl|kindByte|kindUnknown) == 0 }
	decode := asWritten
	if t.byteLevel {
		decode = fromAlphabet()
	}
	t.lookup, t.others = v.byText(decode, plain)
	m.lookup = t.lookup
	if t.byteLevel {
		m.bytes = singleBytes(t.lookup)
		t.stages = []stageSpec{{kind: stageByteLevel}}
	} else {
		m.bytes, m.fallback = byteTokens(v.texts, func(int) bool { return true })
		t.stages = []stageSpec{{kind: stageReplace, from: spaceMark, to: " "}, {kind: stageByteFallback}}
	}
	if pre.SpaceMarks {
		t.norm = replaceNormalizer{from: " ", to: spaceMark}
	}
	if t.pre, err = pre.splitters(); err != nil {
		return err
	}
	if err := r.merges(m, v, t.others, decode); err != nil {
		return err
	}
	m.cutFurther()
	t.model = m
	r.around(t, pre.AddBOS, false)
	if id, ok := t.named["bos"]; ok && pre.ForceBOS {
		t.prefix = []int32{id}
	}
	return nil
}

// fromAlphabet returns a decoder from the byte alphabet that keeps its buffer.
func fromAlphabet() func(string) (string, bool) {
	var buf []byte
	return func(s string) (string, bool) {
		var ok bool
		buf, ok = fromByteLevel(buf[:0], s)
		return string(buf), ok
	}
}

func singleBytes(lookup map[string]int32) (ids [256]int32) {
	for b := range ids {
		ids[b] = -1
		if id, ok := lookup[string([]byte{byte(b)})]; ok {
			ids[b] = id
		}
	}
	return ids
}

// merges reads tokenizer.ggml.merges; without them a pair merges by the id of what it becomes.
func (r *ggufReader) merges(m *bpe, v *vocabulary, others map[string]int32, decode func(string) (string, bool)) error {
	if !r.meta.Has(ggml + "merges") {
		m.ranks = make([]int32, len(v.texts))
		for i := range m.ranks {
			m.ranks[i] = int32(i)
		}
		return nil
	}
	lines, err := r.meta.Strings(ggml + "merges")
	if err != nil {
		r.keep(err)
		return r.err
	}
	m.merges = newPairTable(len(lines))
	b := mergeBuilder{m: m, others: others, decode: decode}
	for i, line := range lines {
		cut := strings.IndexByte(line[min(1, len(line)):], ' ')
		if cut < 0 {
			return fmt.Errorf("tokenizer: %w: %smerges: entry %d (%.40q) has no space", ErrInvalid, ggml, i, line)
		}
		if err := b.add(i, line[:cut+1], line[cut+2:]); err != nil {
			return err
		}
	}
	return nil
}

// mergeBuilder fills the merges of a model.
type mergeBuilder struct {
	m      *bpe
	others map[string]int32
	decode func(string) (string, bool)
}

// add stores the merge of rank n. A merge of or into a token that text must not become (a control token), or that is not written in the byte alphabet,
// can never apply and is passed over. Parts that are no tokens at all are an error: the file's vocabulary and merges then do not belong together.
func (b *mergeBuilder) add(n int, left, right string) error {
	l, ok1 := b.decode(left)
	r, ok2 := b.decode(right)
	if !ok1 || !ok2 {
		return nil
	}
	li, ok1 := b.m.lookup[l]
	ri, ok2 := b.m.lookup[r]
	whole := l + r
	id, ok3 := b.m.lookup[whole]
	if ok1 && ok2 && ok3 {
		b.m.merges.set(li, ri, pairRank{rank: int32(n), id: id})
		return nil
	}
	for _, part := range []string{left, right, left + right} {
		if _, ok := b.others[part]; ok {
			return nil
		}
	}
	return fmt.Errorf("tokenizer: %smerges: %w", ggml, lostMerge(n, left, right, ok1, ok2))
}

// scored reads a SentencePiece BPE vocabulary, whose merges follow from scores.
func (r *ggufReader) scored(t *Tokenizer, v *vocabulary) error {
	if v.scores == nil {
		return fmt.Errorf("tokenizer: %w: key %sscores is missing, which ranks the merges of this model", ErrInvalid, ggml)
	}
	plain := v.spoken
	t.lookup, t.others = v.byText(asWritten, plain)
	m := &bpe{lookup: t.lookup, ranks: scoreRanks(v.scores, plain), unk: -1, fuseUnk: true, known: make([]uint32, len(v.texts)/16+1)}
	m.bytes, m.fallback = byteTokens(v.texts, func(i int) bool { return v.kinds[i]&kindByte != 0 })
	if !m.fallback { // files without types
		m.bytes, m.fallback = byteTokens(v.texts, func(int) bool { return true })
	}
	spDefaults(t, map[string]int32{"bos": 1, "eos": 2, "unk": 0})
	if id, ok := t.named["unk"]; ok {
		m.unk = id
	}
	m.cutFurther()
	t.model = m
	t.stages = []stageSpec{{kind: stageReplace, from: spaceMark, to: " "}, {kind: stageByteFallback}}
	marks := replaceNormalizer{from: " ", to: spaceMark}
	t.norm = marks
	if r.flag(ggml+"add_space_prefix", true) {
		t.norm = normalizers{prependNormalizer{spaceMark}, marks}
		t.stages = append(t.stages, stageSpec{kind: stageStripAll, from: " ", start: 1})
	}
	r.around(t, true, false)
	return nil
}

// spDefaults names the ids that SentencePiece files have where they do not say.
func spDefaults(t *Tokenizer, ids map[string]int32) {
	for role, id := range ids {
		if _, ok := t.named[role]; !ok && int(id) < len(t.texts) {
			t.named[role] = id
		}
	}
}

// splitters compiles the patterns of a preset.
func (p *preset) splitters() (preTokenizer, error) {
	var list preTokenizers
	for _, src := range p.patterns {
		re, err := pattern.Compile(src)
		if err != nil {
			return nil, fmt.Errorf("tokenizer: pre-tokenizer %.40q: %w", p.name, err)
		}
		b := behaveIsolated
		if p.Remove {
			b = behaveRemoved
		}
		list = append(list, patternSplitter(re, b, false))
	}
	return list, nil
}
