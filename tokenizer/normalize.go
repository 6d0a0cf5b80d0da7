package tokenizer

import (
	"math"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/inferflow/inferflow/tokenizer/pattern"
)

// normalizer rewrites text before it is cut into words.
type normalizer interface {
	normalize(text string) string
	growth() float64 // the most bytes that one may become
}

type normalizers []normalizer

func (n normalizers) normalize(text string) string {
	for _, x := range n {
		text = x.normalize(text)
	}
	return text
}

// formNormalizer is a Unicode normalization form.
type formNormalizer struct{ form norm.Form }

func (n formNormalizer) normalize(text string) string {
	if isASCII(text) || n.form.IsNormalString(text) {
		return text
	}
	return normalForm(n.form, text)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

type lowercaseNormalizer struct{}

func (lowercaseNormalizer) normalize(text string) string { return lowercase(text) }

// lowercase maps each rune by itself, as the reference does: no final sigma, and U+0130 becomes two runes.
func lowercase(text string) string {
	if strings.Contains(text, "İ") {
		text = strings.ReplaceAll(text, "İ", "i̇")
	}
	return strings.Map(toLower, text)
}

// stripNormalizer trims white space.
type stripNormalizer struct{ left, right bool }

func (n stripNormalizer) normalize(text string) string {
	if n.left {
		text = strings.TrimLeftFunc(text, pattern.IsSpace)
	}
	if n.right {
		text = strings.TrimRightFunc(text, pattern.IsSpace)
	}
	return text
}

// stripAccentsNormalizer drops combining marks; it expects decomposed text.
type stripAccentsNormalizer struct{}

func (stripAccentsNormalizer) normalize(text string) string {
	return strings.Map(func(r rune) rune {
		if pattern.IsMark(r) != otherMarks.has(r) {
			return -1
		}
		return r
	}, text)
}

// prependNormalizer puts text before anything that is not empty.
type prependNormalizer struct{ text string }

func (n prependNormalizer) normalize(text string) string {
	if text == "" {
		return text
	}
	return n.text + text
}

// replaceNormalizer replaces a string, or the matches of a pattern.
type replaceNormalizer struct {
	from    string
	pattern *pattern.Pattern
	to      string
}

func (n replaceNormalizer) normalize(text string) string {
	if n.pattern != nil {
		text, _ = replaceMatches(text, n.pattern, n.to, math.MaxInt, nil)
		return text
	}
	return strings.ReplaceAll(text, n.from, n.to)
}

// nmtNormalizer drops controls and turns the various spaces into one kind (the Nmt normalizer of Hugging Face).
type nmtNormalizer struct{}

func (nmtNormalizer) normalize(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x01 && r <= 0x08, r == 0x0b, r >= 0x0e && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
			return -1
		case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200b && r <= 0x200f, r == 0x2028, r == 0x2029, r == 0x2581, r == 0xfeff, r == 0xfffd:
			return ' '
		}
		return r
	}, text)
}

// cleanNormalizer is the basic cleaning before WordPiece.
type cleanNormalizer struct {
	clean, cjk, accents, lower bool // drop controls; spaces around ideographs; strip accents; lower case
}

func (n cleanNormalizer) normalize(text string) string {
	if n.clean {
		text = strings.Map(func(r rune) rune {
			switch {
			case r == '\t' || r == '\n' || r == '\r':
				return ' '
			case r == utf8.RuneError || pattern.IsOther(r) && !laterFormats.has(r):
				return -1
			case pattern.IsSpace(r):
				return ' '
			}
			return r
		}, text)
	}
	if n.cjk {
		text = spaceIdeographs(text)
	}
	if n.accents {
		text = strings.Map(func(r rune) rune {
			if pattern.IsNonspacingMark(r) != otherNonspacing.has(r) {
				return -1
			}
			return r
		}, normalForm(norm.NFD, text))
	}
	if n.lower {
		text = lowercase(text)
	}
	return text
}

func spaceIdeographs(text string) string {
	if isASCII(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isIdeograph(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isIdeograph has the ranges of the reference, its slip at U+2B920 included.
func isIdeograph(r rune) bool {
	return r >= 0x4e00 && r <= 0x9fff || r >= 0x3400 && r <= 0x4dbf || r >= 0x20000 && r <= 0x2a6df || r >= 0x2a700 && r <= 0x2b73f ||
		r >= 0x2b740 && r <= 0x2b81f || r >= 0x2b920 && r <= 0x2ceaf || r >= 0xf900 && r <= 0xfaff || r >= 0x2f800 && r <= 0x2fa1f
}
