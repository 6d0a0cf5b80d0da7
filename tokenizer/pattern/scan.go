package pattern

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// The patterns that most models share have hand-written matchers, some five times as fast as the general one, which tests hold them against.
const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	upperRun     = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	lowerRun     = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	spaces       = `\s*[\r\n]+|\s+(?!\S)|\s+`

	srcPlain  = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	srcWords  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|`
	srcMarks  = contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|`
	srcOther  = `| ?[^\s\p{L}\p{N}]+[\r\n]*|` + spaces
	srcCases  = `[^\r\n\p{L}\p{N}]?` + upperRun + `*` + lowerRun + `+`
	srcCases2 = `|[^\r\n\p{L}\p{N}]?` + upperRun + `+` + lowerRun + `*`
	srcParts  = `[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|` + spaces
	srcSlash  = `| ?[^\s\p{L}\p{N}]+[\r\n/]*|` + spaces
)

// scanner returns the end of the match that begins at pos, which lies inside text, or pos if none does.
type scanner func(text string, pos int) int

// scannerFor returns the hand-written matcher of a pattern, known by its source (line ends may be escapes or themselves), or nil, and whether the pattern matches something at every place
// of every text.
func scannerFor(src string) (next scanner, everywhere bool) {
	src = strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(src)
	if src == srcParts {
		return scanParts, false
	}
	next = coverScanner(src)
	return next, next != nil
}

// coverScanner is scannerFor for patterns that match everywhere.
func coverScanner(src string) scanner {
	switch src {
	case srcPlain:
		return scanPlain
	case srcWords + `\p{N}{1,3}` + srcOther:
		return wordScanner{letters: maskL, digits: 3}.next
	case srcWords + `\p{N}` + srcOther:
		return wordScanner{letters: maskL, digits: 1}.next
	case srcWords + `\p{N}+` + srcOther:
		return wordScanner{letters: maskL, digits: -1}.next
	case srcMarks + `\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|` + spaces:
		return wordScanner{letters: maskL | maskM, digits: 1}.next
	case srcCases + contractions + `?` + srcCases2 + contractions + `?|\p{N}{1,3}` + srcSlash:
		return caseScanner{contract: true, digits: 3}.next
	case srcCases + srcCases2 + `|\p{N}` + srcSlash:
		return caseScanner{digits: 1}.next
	}
	return nil
}

// asciiBits holds the category of each ASCII character as a mask of one bit.
var asciiBits = sync.OnceValue(func() *[utf8.RuneSelf]uint32 {
	t := &[utf8.RuneSelf]uint32{}
	for r := range t {
		t[r] = categories().bit(rune(r))
	}
	return t
})

// reader looks up categories in a text.
type reader struct {
	text  string
	ascii *[utf8.RuneSelf]uint32
	table *categoryTable
}

func newReader(text string) reader { return reader{text, asciiBits(), categories()} }

// at returns the category of the rune at pos and its width, 0 and 0 at the end.
func (r *reader) at(pos int) (bit uint32, width int) {
	if pos >= len(r.text) {
		return 0, 0
	}
	if b := r.text[pos]; b < utf8.RuneSelf {
		return r.ascii[b], 1
	}
	c, w := utf8.DecodeRuneInString(r.text[pos:])
	return r.table.bit(c), w
}

// run passes runes of the categories in mask and returns where it stopped.
func (r *reader) run(pos int, mask uint32) int {
	for pos < len(r.text) {
		b := r.text[pos]
		if b < utf8.RuneSelf {
			if r.ascii[b]&mask == 0 {
				break
			}
			pos++
			continue
		}
		c, w := utf8.DecodeRuneInString(r.text[pos:])
		if r.table.bit(c)&mask == 0 {
			break
		}
		pos += w
	}
	return pos
}

// digits passes up to most numbers (all for most < 0).
func (r *reader) digits(pos, most int) int {
	for n := 0; n != most; n++ {
		bit, w := r.at(pos)
		if bit&maskN == 0 {
			break
		}
		pos += w
	}
	return pos
}

// spaces matches \s*[\r\n]+ if lines is set, then \s+(?!\S), then \s+.
func (r *reader) spaces(pos int, lines bool) int {
	end := r.run(pos, maskSpace)
	if lines {
		for i := end - 1; i >= pos; i-- {
			if c := r.text[i]; c == '\n' || c == '\r' {
				return i + 1
			}
		}
	}
	if end == len(r.text) {
		return end
	}
	if _, w := utf8.DecodeLastRuneInString(r.text[pos:end]); end-w > pos {
		return end - w
	}
	return end
}

// contraction returns the end of 's, 't, 're, 've, 'm, 'll or 'd in any case at pos, or pos. U+017F folds to s.
func (r *reader) contraction(pos int) int {
	rest := r.text[pos:]
	if len(rest) < 2 || rest[0] != '\'' {
		return pos
	}
	switch c := rest[1] | 0x20; {
	case c == 's' || c == 't' || c == 'm' || c == 'd':
		return pos + 2
	case len(rest) < 3:
		return pos
	case (c == 'r' || c == 'v') && rest[2]|0x20 == 'e', c == 'l' && rest[2]|0x20 == 'l', rest[1] == 0xc5 && rest[2] == 0xbf:
		return pos + 3
	}
	return pos
}

func isBreak(c byte) bool { return c == '\n' || c == '\r' }

func scanPlain(text string, pos int) int {
	r := newReader(text)
	if text[pos] == '\'' {
		end := r.contraction(pos)
		if end == pos+2 && text[pos+1] >= 'a' || end == pos+3 && text[pos+1] >= 'a' && text[pos+2] >= 'a' && text[pos+1] < 0x80 {
			return end
		}
	}
	p := pos
	if text[pos] == ' ' {
		p++
	}
	switch bit, _ := r.at(p); {
	case bit&maskL != 0:
		return r.run(p, maskL)
	case bit&maskN != 0:
		return r.run(p, maskN)
	case bit != 0 && bit&maskSpace == 0:
		return r.run(p, maskAll&^(maskSpace|maskL|maskN))
	}
	return r.spaces(pos, false)
}

// wordScanner matches the patterns of contractions, words with one character before them, numbers, and other characters with the line ends behind.
type wordScanner struct {
	letters uint32
	digits  int
}

func (s wordScanner) next(text string, pos int) int {
	r := newReader(text)
	if end := r.contraction(pos); end > pos {
		return end
	}
	bit, w := r.at(pos)
	switch {
	case bit&s.letters != 0:
		return r.run(pos, s.letters)
	case bit&maskN != 0:
		return r.digits(pos, s.digits)
	case !isBreak(text[pos]):
		if after, _ := r.at(pos + w); after&s.letters != 0 {
			return r.run(pos+w, s.letters)
		}
	}
	if end := r.other(pos, s.letters, false); end > pos {
		return end
	}
	return r.spaces(pos, true)
}

// other matches a space or none, characters that are neither space, letter nor number, and line ends (and slashes) behind; pos if there are none.
func (r *reader) other(pos int, letters uint32, slash bool) int {
	p := pos
	if r.text[pos] == ' ' {
		p++
	}
	end := r.run(p, maskAll&^(maskSpace|letters|maskN))
	if end == p {
		return pos
	}
	for end < len(r.text) && (isBreak(r.text[end]) || slash && r.text[end] == '/') {
		end++
	}
	return end
}

// caseScanner matches the patterns that cut words where a capital follows a small letter.
type caseScanner struct {
	contract bool
	digits   int
}

const (
	maskUpper = 1<<catLu | 1<<catLt | maskBoth
	maskLower = 1<<catLl | maskBoth
	maskBoth  = 1<<catLm | 1<<catLo | maskM
)

func (s caseScanner) next(text string, pos int) int {
	r := newReader(text)
	bit, w := r.at(pos)
	if bit&maskN != 0 {
		return r.digits(pos, s.digits)
	}
	p := pos
	if bit&maskL == 0 && !isBreak(text[pos]) {
		p += w
	}
	end := r.cased(p)
	if end < 0 && bit&maskM != 0 { // the mark is the word, not the character before it
		end = r.cased(pos)
	}
	if end < 0 {
		if up := r.run(p, maskUpper); up > p {
			end = up
		}
	}
	switch {
	case end >= 0 && s.contract:
		return r.contraction(end)
	case end >= 0:
		return end
	}
	if end := r.other(pos, maskL, true); end > pos {
		return end
	}
	return r.spaces(pos, true)
}

// cased matches capitals, as many as there are, and at least one letter that is none; characters that are both count as either. It returns -1 for none.
func (r *reader) cased(pos int) int {
	both := -1
	for {
		bit, w := r.at(pos)
		if bit&maskUpper == 0 {
			if bit&maskLower != 0 {
				return r.run(pos, maskLower)
			}
			return both
		}
		pos += w
		if bit&maskBoth != 0 {
			both = pos
		}
	}
}

// scanParts matches words with one character before them that is neither letter, mark nor sign, or with an ASCII sign if they are of ASCII letters;
// signs with a space before and the line ends behind; and white space.
func scanParts(text string, pos int) int {
	r := newReader(text)
	bit, w := r.at(pos)
	switch {
	case bit&(maskL|maskM) != 0:
		return r.run(pos, maskL|maskM)
	case bit&(maskP|maskS) != 0:
		if end := letters(text, pos+1); text[pos] < utf8.RuneSelf && end > pos+1 {
			return end
		}
	case !isBreak(text[pos]):
		if after, _ := r.at(pos + w); after&(maskL|maskM) != 0 {
			return r.run(pos+w, maskL|maskM)
		}
	}
	p := pos
	if text[pos] == ' ' {
		p++
	}
	if end := r.run(p, maskP|maskS); end > p {
		for end < len(text) && isBreak(text[end]) {
			end++
		}
		return end
	}
	if bit&maskSpace == 0 {
		return pos
	}
	return r.spaces(pos, true)
}

// letters passes ASCII letters.
func letters(text string, pos int) int {
	for pos < len(text) && (text[pos]|0x20)-'a' < 26 {
		pos++
	}
	return pos
}

// runScanner matches the patterns that are a run of one class.
func (p *Pattern) runScanner() scanner {
	i, n := inst{}, len(p.prog)
	switch {
	case n == 2 && (p.prog[0].op == opRun || p.prog[0].op == opRunP) && p.prog[0].min > 0:
		i = p.prog[0]
	case n == 2 && p.prog[0].op == opClass:
		i = inst{x: p.prog[0].x, min: 1, max: 1}
	case n == 3 && p.prog[0].op == opClass && (p.prog[1].op == opStar || p.prog[1].op == opStarP) && p.prog[1].x == p.prog[0].x:
		i = inst{x: p.prog[0].x, min: 1, max: -1}
	default:
		return nil
	}
	class := p.classes[i.x]
	return func(text string, pos int) int {
		s := searcher{text: text}
		if end, n := s.scan(class, pos, int(i.max)); n >= int(i.min) {
			return end
		}
		return pos
	}
}
