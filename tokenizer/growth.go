package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/inferflow/inferflow/tokenizer/pattern"
)

// ErrTooLong is what TryEncode fails with where normalization makes a text longer than it may: 64 times its size, or 1 MiB if that is more.
var ErrTooLong = errors.New("normalization makes the text too long")

// ErrTooCostly is what TryEncode fails with where a pattern of the file takes too many steps to find its matches in a text.
var ErrTooCostly = pattern.ErrTooCostly

// What the steps of a file may make of a text. Each chain of steps is held against its worst case when the file is read, for a few steps that each
// write a hundred bytes for one would fill any memory; what vocabularies in use do comes to some hundreds at worst and to 4 in practice.
const (
	maxGrowth       = 1000    // bytes for one, by the normalizers
	maxWordGrowth   = 64      // by the pre-tokenizers
	maxDecodeGrowth = 64      // by the decoders
	maxChain        = 256     // steps
	maxAround       = 1024    // ids that the post-processor adds on a side
	maxAddedWork    = 1 << 25 // for normalizing all added tokens: bytes, and steps of patterns
	minRoom         = 1 << 20
	roomPerByte     = 64
)

// room is how long a text may become by normalization.
func room(text string) int { return max(minRoom, roomPerByte*len(text)) }

// checkGrowth refuses a chain of n steps that may make more than limit bytes of one.
func checkGrowth(n int, growth float64, limit int) error {
	if n > maxChain {
		return fmt.Errorf("%w: %d steps, want at most %d", ErrInvalid, n, maxChain)
	}
	if !(growth <= float64(limit)) {
		return fmt.Errorf("%w: the steps may make %.4g bytes of one, want at most %d", ErrInvalid, growth, limit)
	}
	return nil
}

// checkNormalizer is checkGrowth for a tokenizer's normalizer.
func checkNormalizer(n normalizer) error {
	if n == nil {
		return nil
	}
	list, _ := n.(normalizers)
	return checkGrowth(len(list), n.growth(), maxGrowth)
}

// within normalizes text unless more than limit bytes come of it at any step (ErrTooLong) or a step takes too long (ErrTooCostly).
func within(n normalizer, text string, limit int) (string, error) {
	return withinWork(n, text, limit, nil)
}

// withinWork is within at the expense of a budget of work for several texts, which may be nil.
func withinWork(n normalizer, text string, limit int, work *int) (string, error) {
	if work != nil {
		if *work -= len(text); *work < 0 {
			return "", ErrTooCostly
		}
	}
	switch n := n.(type) {
	case normalizers:
		var err error
		for _, x := range n {
			if text, err = withinWork(x, text, limit, work); err != nil {
				return "", err
			}
		}
		return text, nil
	case replaceNormalizer:
		if n.pattern != nil {
			return replaceMatches(text, n.pattern, n.to, limit, work)
		}
		if grows := len(n.to) - len(n.from); grows > 0 && len(text)+strings.Count(text, n.from)*grows > limit {
			return "", ErrTooLong
		}
	}
	if text = n.normalize(text); len(text) > limit {
		return "", ErrTooLong
	}
	return text, nil
}

// replaceGrowth is the worst case of replacing from, or the matches of p, by to. A match of nothing leaves the text and adds to it.
func replaceGrowth(p *pattern.Pattern, from, to string) float64 {
	nothing := from == ""
	if p != nil {
		_, nothing = p.Match("", 0)
		from = "x" // a match has at least one byte
	}
	if nothing {
		return 1 + 2*float64(len(to))
	}
	return max(1, float64(len(to))/float64(len(from)))
}

func (n normalizers) growth() float64 {
	g := 1.0
	for _, x := range n {
		g *= x.growth()
	}
	return g
}

// growth is UAX #15's worst case in UTF-8.
func (n formNormalizer) growth() float64 {
	if n.form == norm.NFKC || n.form == norm.NFKD {
		return 11
	}
	return 3
}

func (lowercaseNormalizer) growth() float64    { return 1.5 } // two bytes to three
func (stripNormalizer) growth() float64        { return 1 }
func (stripAccentsNormalizer) growth() float64 { return 1 }
func (n prependNormalizer) growth() float64    { return 1 + float64(len(n.text)) } // of a text of one byte
func (n replaceNormalizer) growth() float64    { return replaceGrowth(n.pattern, n.from, n.to) }
func (nmtNormalizer) growth() float64          { return 1 }
func (byteNormalizer) growth() float64         { return 2 }

func (n cleanNormalizer) growth() float64 {
	g := 1.0
	if n.cjk {
		g *= 5.0 / 3
	}
	if n.accents {
		g *= 3
	}
	if n.lower {
		g *= 1.5
	}
	return g
}

func (n charsmapNormalizer) growth() float64 { return n.chars.growth() }

// growth: a space of one byte becomes a mark of three, and a mark comes before the text.
func (n *pieceNormalizer) growth() float64 {
	g := float64(2 * len(spaceMark))
	if n.plain {
		g = 2
	}
	if n.chars != nil {
		g *= n.chars.growth()
	}
	return g
}

// growth is the longest replacement.
func (m *charsmap) growth() float64 {
	longest := 1
	for rest, more := m.replacements, true; more; {
		var s string
		s, rest, more = strings.Cut(rest, "\x00")
		longest = max(longest, len(s))
	}
	return float64(longest)
}

// wordGrowth is the worst case of pre-tokenizers.
func wordGrowth(list preTokenizers) float64 {
	g := 1.0
	for _, p := range list {
		switch p := p.(type) {
		case *byteLevelSplit:
			if p.prefixSpace {
				g *= 2
			}
		case byteMapper:
			if !p.undo {
				g *= 2
			}
		case *metaspace:
			g *= 1 + float64(len(p.mark))
		}
	}
	return g
}

// decodeGrowth is the worst case of decoders.
func decodeGrowth(stages []stageSpec) float64 {
	g := 1.0
	for i := range stages {
		switch p := &stages[i]; p.kind {
		case stageReplace, stageRegex:
			g *= replaceGrowth(p.pattern, p.from, p.to)
		case stageWordPiece, stageJoin: // a space before each token
			g *= 2
		case stageRepeats:
			g *= replaceGrowth(nil, p.to, " ")
		case stageExact:
			g *= max(1, float64(len(p.to))/float64(max(1, len(p.from))))
		case stageSuffix:
			g *= replaceGrowth(nil, p.from, " ")
		}
	}
	return g
}

// oneRune refuses marks of several characters, as the reference does.
func oneRune(what, s string) error {
	if utf8.RuneCountInString(s) > 1 {
		return fmt.Errorf("%w: %s %.40q is not one character", ErrInvalid, what, s)
	}
	return nil
}
