package tokenizer

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// charsmap is SentencePiece's precompiled normalization: a double-array trie from byte strings to replacements.
type charsmap struct {
	units        []uint32 // of the double array (darts-clone: offset in bits 10–30, label in 0–7 and 31, leaf in 8, wide offset in 9)
	replacements string   // each ends in a zero byte
}

// parseCharsmap reads precompiled_charsmap: the size of the trie in bytes, the trie, the replacements.
func parseCharsmap(blob []byte) (*charsmap, error) {
	if len(blob) == 0 {
		return nil, nil
	}
	if len(blob) < 4 {
		return nil, fmt.Errorf("tokenizer: %w: precompiled charsmap of %d bytes is shorter than its header", ErrInvalid, len(blob))
	}
	size := int64(binary.LittleEndian.Uint32(blob))
	if size%4 != 0 || size > int64(len(blob)-4) {
		return nil, fmt.Errorf("tokenizer: %w: precompiled charsmap claims a trie of %d bytes in %d", ErrInvalid, size, len(blob))
	}
	m := &charsmap{units: make([]uint32, size/4), replacements: string(blob[4+size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(blob[4+4*i:])
	}
	return m, nil
}

// find returns the replacement of the longest (or shortest) string that text begins with, and that string's size; 0 if there is none.
func (m *charsmap) find(text string, shortest bool) (to string, size int) {
	value := uint32(0)
	unit, ok := m.unit(0)
	at := offset(unit)
	text = text[:min(len(text), maxPiece)] // a broken trie may lead on for ever
	for i := 0; ok && i < len(text) && text[i] != 0; i++ {
		at ^= uint32(text[i])
		if unit, ok = m.unit(at); !ok || unit&(1<<31|0xff) != uint32(text[i]) {
			break
		}
		at ^= offset(unit)
		if unit>>8&1 != 0 {
			leaf, ok := m.unit(at)
			if !ok {
				break
			}
			if value, size = leaf&(1<<31-1), i+1; shortest {
				break
			}
		}
	}
	if size == 0 || uint64(value) >= uint64(len(m.replacements)) {
		return "", 0
	}
	to, _, _ = strings.Cut(m.replacements[value:], "\x00")
	return to, size
}

func (m *charsmap) unit(at uint32) (uint32, bool) {
	if uint64(at) >= uint64(len(m.units)) {
		return 0, false
	}
	return m.units[at], true
}

func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// charsmapNormalizer is the Precompiled normalizer: a grapheme of up to five bytes becomes the replacement of the shortest string that it begins with, if
// there is one, and is gone with all that follows; else each of its characters does. (SentencePiece looks for the longest string instead, see
// pieceNormalizer.)
type charsmapNormalizer struct{ chars *charsmap }

func (n charsmapNormalizer) normalize(text string) string {
	var b strings.Builder
	for text != "" {
		size := graphemeSize(text)
		cluster := text[:size]
		text = text[size:]
		if size < 6 {
			if to, w := n.chars.find(cluster, true); w > 0 {
				b.WriteString(to)
				continue
			}
		}
		for cluster != "" {
			_, w := utf8.DecodeRuneInString(cluster)
			c := cluster[:w]
			cluster = cluster[w:]
			if to, w := n.chars.find(c, true); w > 0 {
				c = to
			}
			b.WriteString(c)
		}
	}
	return b.String()
}

// pieceNormalizer is SentencePiece's own normalization (Normalizer::Normalize of its normalizer.cc).
type pieceNormalizer struct {
	chars  *charsmap // nil: none
	user   *trie     // user-defined pieces pass unchanged; nil: none
	prefix bool      // a space mark before the text, or behind it where suffix says so
	suffix bool
	merge  bool // runs of spaces count as one, those at the ends as none
	plain  bool // spaces stay spaces
}

func (n *pieceNormalizer) normalize(text string) string {
	for n.merge && text != "" {
		to, w := n.next(text)
		if to != " " {
			break
		}
		text = text[w:]
	}
	if text == "" {
		return ""
	}
	mark := n.mark()
	var b strings.Builder
	if n.prefix && !n.suffix {
		b.WriteString(mark)
	}
	space := n.merge // the last character was a space, so another is dropped
	for i := 0; i < len(text); {
		to, w := n.next(text[i:])
		i += w
		for space && strings.HasPrefix(to, " ") {
			to = to[1:]
		}
		if to != "" {
			b.WriteString(strings.ReplaceAll(to, " ", mark))
			space = n.merge && strings.HasSuffix(to, " ")
		}
	}
	out := b.String()
	for n.merge && strings.HasSuffix(out, mark) {
		out = strings.TrimSuffix(out, mark)
	}
	if n.prefix && n.suffix {
		out += mark
	}
	return out
}

func (n *pieceNormalizer) mark() string {
	if n.plain {
		return " "
	}
	return spaceMark
}

func (n *pieceNormalizer) next(text string) (to string, size int) {
	if n.user != nil {
		if _, w := n.user.longest(text, nil); w > 0 {
			return text[:w], w
		}
	}
	if n.chars != nil {
		if to, w := n.chars.find(text, false); w > 0 {
			return to, w
		}
	}
	r, w := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && w == 1 {
		return string(utf8.RuneError), 1
	}
	return text[:w], w
}
