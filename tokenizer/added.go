package tokenizer

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/inferflow/inferflow/tokenizer/pattern"
)

// addedToken is a token that is cut out of the text before the model sees it. The flags are those of Hugging Face's AddedToken.
type addedToken struct {
	id         int32
	text       string
	special    bool
	singleWord bool // not inside a word
	lstrip     bool // takes the white space before it
	rstrip     bool // and behind it
	normalized bool // is looked for in the normalized text
	space      bool // white space alone and not special: looked for even in text that is not parsed
	inModel    bool // the model finds it by itself where it may; looked for only where it may not (parsed.strict)
	atStart    bool // only at the beginning of a text
}

// addedTokens finds added tokens: leftmost first, and the longest there.
type addedTokens struct {
	list       []addedToken
	raw        *trie // those looked for first, in the text as it came; values index list
	normalized *trie // those looked for in what these leave, normalized
	second     bool  // there are some of the latter
	every      *trie // all but white space of the latter, for texts of which only parts are parsed
}

// span is a range of bytes.
type span struct{ start, end int }

// parsed says where in a text added tokens may be recognised.
type parsed struct {
	all   bool
	mixed bool // spans say it
	spans []span

	strict bool // pieces of a prompt: what a user wrote is text, whatever it spells
}

func (p parsed) covers(start, end int) bool {
	if !p.mixed {
		return p.all
	}
	i := sort.Search(len(p.spans), func(i int) bool { return p.spans[i].end >= end })
	return i < len(p.spans) && p.spans[i].start <= start
}

// joinPieces concatenates pieces and marks where the special ones lie. What is no UTF-8 in them becomes U+FFFD, unless pieces that cut a rune make it
// whole together.
func joinPieces(pieces []Piece) (string, parsed) {
	if text, marks := joinRaw(pieces); utf8.ValidString(text) {
		return text, marks
	}
	valid := make([]Piece, len(pieces))
	for i, p := range pieces {
		valid[i] = Piece{Text: replaceInvalid(p.Text), Special: p.Special}
	}
	return joinRaw(valid)
}

func joinRaw(pieces []Piece) (string, parsed) {
	var b strings.Builder
	marks := parsed{mixed: true}
	users := false
	for _, p := range pieces {
		start := b.Len()
		b.WriteString(p.Text)
		switch n := len(marks.spans); {
		case p.Text == "":
		case !p.Special:
			users = true
		case n > 0 && marks.spans[n-1].end == start:
			marks.spans[n-1].end = b.Len()
		default:
			marks.spans = append(marks.spans, span{start, b.Len()})
		}
	}
	if !users {
		marks = parsed{all: true}
	} else if len(marks.spans) == 0 {
		marks = parsed{}
	}
	marks.strict = users
	return b.String(), marks
}

// newAddedTokens builds the tries, or fails where normalizing the tokens makes too much of them. normalize is nil if nothing normalizes.
func newAddedTokens(list []addedToken, norm normalizer) (addedTokens, error) {
	left := 0
	for i := range list {
		left += len(list[i].text)
	}
	left = max(minRoom, roomPerByte*left)
	work := maxAddedWork
	a := addedTokens{list: list, raw: newTrie(len(list)), normalized: newTrie(len(list)), every: newTrie(len(list))}
	for i := range list {
		tok := &list[i]
		if tok.text == "" {
			continue
		}
		tok.space = !tok.special && isWhite(tok.text)
		normalized := tok.normalized
		text, to := tok.text, a.raw
		if normalized {
			to = a.normalized
		}
		if normalized && norm != nil {
			var err error
			if text, err = withinWork(norm, tok.text, left, &work); err != nil {
				return a, fmt.Errorf("%w: added token %.40q: %w", ErrInvalid, tok.text, err)
			}
			left -= len(text)
		}
		if n := max(len(text), len(tok.text)); n > maxPiece {
			return a, fmt.Errorf("%w: added token %.40q has %d bytes, want at most %d", ErrInvalid, tok.text, n, maxPiece)
		}
		to.insert(text, int32(i))
		if normalized {
			a.second = true
		}
		if !normalized || !tok.space {
			a.every.insert(tok.text, int32(i))
		}
	}
	return a, nil
}

// isWhite reports whether s is white space and space marks alone.
func isWhite(s string) bool { return strings.Trim(s, " \t\r\n\v\f"+spaceMark) == "" }

// cut calls yield for each part of text in order: an added token (id >= 0) or text between them (id < 0), with the byte where the part begins.
func (a *addedTokens) cut(text string, marks parsed, yield func(part string, start int, id int32)) {
	t := a.raw
	if marks.mixed {
		t = a.every
	}
	a.cutWith(t, text, marks, yield)
}

// cutNormalized is cut for what the first cut left, normalized if anything normalizes. Of a text of which only parts are parsed, only white space is left to cut out: where the parts lie is not
// known any more, so all else was looked for before.
func (a *addedTokens) cutNormalized(text string, marks parsed, yield func(part string, start int, id int32)) {
	if marks.mixed {
		marks = parsed{strict: true}
	}
	a.cutWith(a.normalized, text, marks, yield)
}

func (a *addedTokens) cutWith(t *trie, text string, marks parsed, yield func(part string, start int, id int32)) {
	done := 0
	for pos := t.candidate(text, 0); pos < len(text); {
		n, size := t.longest(text[pos:], func(v int32) bool { return a.list[v].counts(pos, marks) })
		if size == 0 || a.list[n].singleWord && insideWord(text, pos, pos+size) {
			pos = t.candidate(text, pos+max(size, 1))
			continue
		}
		tok := &a.list[n]
		start, end := pos, pos+size
		if tok.lstrip {
			start = done + len(strings.TrimRightFunc(text[done:start], pattern.IsSpace))
		}
		if tok.rstrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], pattern.IsSpace))
		}
		if start > done {
			yield(text[done:start], done, -1)
		}
		yield(text[start:end], start, tok.id)
		done = end
		pos = t.candidate(text, end)
	}
	if done < len(text) {
		yield(text[done:], done, -1)
	}
}

// counts reports whether the token may be recognised at pos.
func (t *addedToken) counts(pos int, marks parsed) bool {
	if t.inModel && !marks.strict || t.atStart && pos > 0 {
		return false
	}
	return t.space || marks.covers(pos, pos+len(t.text))
}

// insideWord reports whether text[start:end] touches a word character on either side.
func insideWord(text string, start, end int) bool {
	before, w := utf8.DecodeLastRuneInString(text[:start])
	after, v := utf8.DecodeRuneInString(text[end:])
	return w > 0 && isWord(before) || v > 0 && isWord(after)
}
