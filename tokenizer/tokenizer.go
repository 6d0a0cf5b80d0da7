package tokenizer

import (
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"
)

// Tokenizer is a vocabulary with its rules. It is immutable and safe for concurrent use.
type Tokenizer struct {
	texts []string // by id, as the file writes them; "" where an id has no token
	kinds []kind   // by id

	byteLevel bool             // texts are written in the byte alphabet
	lookup    map[string]int32 // the model's pieces: raw bytes for a byte-level vocabulary, else as written
	others    map[string]int32 // tokens that the model itself never produces: control, bytes, added
	added     addedTokens

	norm   normalizer // nil: none
	pre    preTokenizer
	model  model
	prefix []int32    // what AddSpecial puts before the ids of a text
	suffix []int32    // and behind
	pair   []pairPart // the form of two texts; nil: the file says nothing of it

	stages []stageSpec
	named  map[string]int32 // bos, eos, eot, …: ids that the file names
	ends   []int32
	notes  []string
	pool   sync.Pool // *scratch
}

// kind says what sort of token an id is.
type kind uint8

const (
	kindNormal  kind = 0
	kindControl kind = 1 << iota
	kindAdded        // cut out of the text before anything else
	kindByte         // one byte, written <0xHH>
	kindUnknown
	kindUnused
)

// Options say how Encode treats special tokens.
type Options struct {
	AddSpecial   bool // add what the post-processor or add_bos_token asks for, as add_special_tokens does in Hugging Face
	ParseSpecial bool // recognise added and special tokens inside the text
}

// Piece is a part of a prompt. Special pieces come from a template and are parsed for added tokens; what a user wrote never is.
type Piece struct {
	Text    string
	Special bool
}

// model turns one word of the pre-tokenizer into ids, appended to out.
type model interface {
	encode(word string, sc *scratch, out []int32) []int32
}

// scratch is the working memory of one Encode call.
type scratch struct {
	ids     []int32
	pairs   []pairRank
	symbols []symbol
	queue   mergeQueue
	lattice []lattice
	room    int   // bytes that normalization may still make
	err     error // why the text is not encoded as it should be
	strict  bool  // user-defined pieces do not count: the text comes from a stranger
	parts   map[string]int32
}

// Encode returns the ids of text. Without ParseSpecial the text is taken literally, except that added tokens of white space alone (runs of spaces or
// newlines that some vocabularies list so) still count, for the text is otherwise not encoded as in training. Invalid UTF-8 becomes U+FFFD,
// one for each longest beginning of a rune, as with errors="replace" in Python. Where TryEncode fails the ids are those that it returns with the error.
func (t *Tokenizer) Encode(text string, o Options) []int32 {
	ids, _ := t.TryEncode(text, o)
	return ids
}

// TryEncode is Encode with an error that wraps ErrTooLong where the file's normalizers make more of the text than 64 times its size (and 1 MiB), or
// ErrTooCostly where one of its patterns takes too many steps on the text. The text between the added tokens
// around that place, and what follows it, is then taken without normalization, or not cut into words: the ids are not those that the model was trained on.
func (t *Tokenizer) TryEncode(text string, o Options) ([]int32, error) {
	return t.encode(replaceInvalid(text), parsed{all: o.ParseSpecial}, o.AddSpecial)
}

// replaceInvalid is s with U+FFFD for what is no UTF-8.
func replaceInvalid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return sanitize([]byte(s), false)
}

// EncodePieces encodes the concatenation of pieces as one text, with added tokens recognised only where they lie wholly in special pieces (neighbouring
// special pieces count as one). The ids of harmless user text are therefore those of the whole text; a token that a user spells out stays text.
func (t *Tokenizer) EncodePieces(pieces []Piece, addSpecial bool) []int32 {
	ids, _ := t.TryEncodePieces(pieces, addSpecial)
	return ids
}

// TryEncodePieces is EncodePieces with the error of TryEncode.
func (t *Tokenizer) TryEncodePieces(pieces []Piece, addSpecial bool) ([]int32, error) {
	text, marks := joinPieces(pieces)
	return t.encode(text, marks, addSpecial)
}

func (t *Tokenizer) encode(text string, marks parsed, addSpecial bool) ([]int32, error) {
	out := make([]int32, 0, len(text)/3+len(t.prefix)+len(t.suffix)+4)
	if addSpecial {
		out = append(out, t.prefix...)
	}
	sc, _ := t.pool.Get().(*scratch)
	if sc == nil {
		sc = &scratch{}
	}
	sc.room, sc.err, sc.strict = room(text), nil, marks.strict
	clear(sc.parts)
	t.added.cut(text, marks, func(part string, start int, id int32) {
		if id >= 0 {
			out = append(out, id)
			return
		}
		out = t.encodeSection(part, start == 0, marks, sc, out)
	})
	err := sc.err
	t.pool.Put(sc)
	if addSpecial {
		out = append(out, t.suffix...)
	}
	switch {
	case errors.Is(err, ErrTooLong):
		err = fmt.Errorf("tokenizer: encode: %w: %d bytes become more than %d", ErrTooLong, len(text), room(text))
	case err != nil:
		err = fmt.Errorf("tokenizer: encode: %w", err)
	}
	return out, err
}

// encodeSection encodes text between added tokens. first says that it begins the whole text.
func (t *Tokenizer) encodeSection(text string, first bool, marks parsed, sc *scratch, out []int32) []int32 {
	if t.norm != nil {
		ok := false
		if text, ok = t.normalized(text, sc); !ok {
			return t.encodeWords(text, first, sc, out)
		}
	}
	if !t.added.second {
		return t.encodeWords(text, first, sc, out)
	}
	t.added.cutNormalized(text, marks, func(part string, start int, id int32) {
		if id >= 0 {
			out = append(out, id)
			return
		}
		out = t.encodeWords(part, first && start == 0, sc, out)
	})
	return out
}

// normalized normalizes a section within the room that is left for the whole text. Once that is used up, or a search gave up, sections are as they came.
func (t *Tokenizer) normalized(text string, sc *scratch) (string, bool) {
	if sc.err != nil {
		return text, false
	}
	s, err := within(t.norm, text, sc.room)
	if err != nil {
		sc.err = err
		return text, false
	}
	sc.room -= len(s)
	return s, true
}

func (t *Tokenizer) encodeWords(text string, first bool, sc *scratch, out []int32) []int32 {
	if text == "" {
		return out
	}
	if t.pre == nil || errors.Is(sc.err, ErrTooCostly) {
		return t.model.encode(text, sc, out)
	}
	done := len(out)
	err := t.pre.split(text, first, func(word string) {
		if word != "" {
			out = t.model.encode(word, sc, out)
		}
	})
	if err != nil {
		sc.err = err
		return t.model.encode(text, sc, out[:done])
	}
	return out
}

// Size returns the number of ids: the largest id plus one.
func (t *Tokenizer) Size() int { return len(t.texts) }

// Text returns the token as the file writes it ("Ġthe", "▁the", "<0x0A>"), "" for an id that has none.
func (t *Tokenizer) Text(id int32) string {
	if !t.valid(id) {
		return ""
	}
	return t.texts[id]
}

// ID returns the id of a token written as the file writes it.
func (t *Tokenizer) ID(piece string) (int32, bool) {
	if id, ok := t.others[piece]; ok {
		return id, true
	}
	if t.byteLevel {
		raw, ok := fromByteLevel(nil, piece)
		if !ok {
			return 0, false
		}
		id, ok := t.lookup[string(raw)]
		return id, ok
	}
	id, ok := t.lookup[piece]
	return id, ok
}

func (t *Tokenizer) valid(id int32) bool { return id >= 0 && int(id) < len(t.texts) }

// TokenBytes returns the bytes that id adds to a text in its middle: the token with the byte alphabet or the space mark undone. It is nil for an id out
// of range; for a control token it is the token's text. The caller may keep it.
func (t *Tokenizer) TokenBytes(id int32) []byte {
	if !t.valid(id) {
		return nil
	}
	if t.IsControl(id) {
		return []byte(t.texts[id])
	}
	d := t.newDecoder(false, true)
	for _, s := range d.stages {
		s.started = true
	}
	return d.rawBytes(id)
}

// IsControl reports whether id is a control token: one that has no place in text, such as BOS or an end of turn.
func (t *Tokenizer) IsControl(id int32) bool { return t.valid(id) && t.kinds[id]&kindControl != 0 }

// Special reports whether id is what Decode leaves out when it skips special tokens.
func (t *Tokenizer) Special(id int32) bool { return t.IsControl(id) }

// IsByte reports whether id is a byte token (<0xHH>).
func (t *Tokenizer) IsByte(id int32) bool { return t.valid(id) && t.kinds[id]&kindByte != 0 }

// IsAdded reports whether id is an added token, recognised in text before the model sees it.
func (t *Tokenizer) IsAdded(id int32) bool { return t.valid(id) && t.kinds[id]&kindAdded != 0 }

// BOS returns the id that begins a sequence, if the file names one. Whether Encode adds it is another question: see AddsBOS.
func (t *Tokenizer) BOS() (int32, bool) { return t.Named("bos") }

// EOS returns the id that ends a sequence, if the file names one.
func (t *Tokenizer) EOS() (int32, bool) { return t.Named("eos") }

// UNK returns the id for what the vocabulary cannot spell, if the file names one.
func (t *Tokenizer) UNK() (int32, bool) { return t.Named("unk") }

// PAD returns the padding id, if the file names one.
func (t *Tokenizer) PAD() (int32, bool) { return t.Named("pad") }

// Named returns the id that the file gives a role: bos, eos, eot, eom, unk, sep, pad, cls, mask, fim_pre, fim_suf, fim_mid, fim_pad, fim_rep, fim_sep.
func (t *Tokenizer) Named(role string) (int32, bool) {
	id, ok := t.named[role]
	return id, ok
}

// AddsBOS reports whether AddSpecial puts the BOS token first. A prompt whose template already wrote it must then be encoded without AddSpecial.
func (t *Tokenizer) AddsBOS() bool {
	id, ok := t.BOS()
	return ok && len(t.prefix) > 0 && t.prefix[0] == id
}

// Prefix returns the ids that AddSpecial puts before a text. The caller must not change them.
func (t *Tokenizer) Prefix() []int32 { return t.prefix }

// Suffix returns the ids that AddSpecial puts behind a text. The caller must not change them.
func (t *Tokenizer) Suffix() []int32 { return t.suffix }

// EndTokens returns the ids that end a generation, ascending: those the file names (eos, eot, eom) and control tokens whose text is well known to do so.
// The caller must not change them.
func (t *Tokenizer) EndTokens() []int32 { return t.ends }

// Notes says, for a person, what was assumed in reading the files. The caller must not change it.
func (t *Tokenizer) Notes() []string { return t.notes }
