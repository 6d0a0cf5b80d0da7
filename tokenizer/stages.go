package tokenizer

import (
	"math"
	"strings"

	"github.com/inferflow/inferflow/tokenizer/pattern"
)

type stageKind uint8

const (
	stageByteLevel    stageKind = iota // undoes the byte alphabet
	stageReplace                       // from → to
	stageRegex                         // matches of a pattern → to
	stageByteFallback                  // <0xHH> → the byte
	stageStrip                         // takes text away at the ends of each token
	stageStripAll                      // at the ends of the whole text (behind Fuse)
	stageMetaspace                     // space marks → spaces, but none in the first token
	stageWordPiece                     // joins words with spaces
	stageSuffix                        // from ends a word: a space, but nothing in the last token
	stageJoin                          // a space before every token but the first (no decoder)
	stageExact                         // the token from → to
	stageRepeats                       // drops a token that repeats the one before, and from in it; to becomes a space (CTC)
	stageLead                          // takes one mark off each token while there is no text yet, start times at most
)

// stageSpec is one decoder of the file.
type stageSpec struct {
	kind    stageKind
	from    string
	to      string
	start   int // how many times from may be stripped
	stop    int
	clean   bool // WordPiece: close up punctuation
	pattern *pattern.Pattern
}

// stage is a decoder at work.
type stage struct {
	spec     *stageSpec
	started  bool // a token was seen
	stripped int
	held     string // waits for what comes next
	holds    bool
}

// next takes one token and emits what it becomes.
func (s *stage) next(token string, emit func(string)) {
	p := s.spec
	switch p.kind {
	case stageByteLevel:
		if raw, ok := fromByteLevel(nil, token); ok {
			token = string(raw)
		}
	case stageReplace:
		token = strings.ReplaceAll(token, p.from, p.to)
	case stageRegex:
		token, _ = replaceMatches(token, p.pattern, p.to, math.MaxInt, nil) // what a search that gives up leaves is kept
	case stageByteFallback:
		if b, ok := byteToken(token); ok {
			token = string([]byte{b})
		}
	case stageStrip:
		token = stripEnds(token, p.from, p.start, p.stop)
	case stageStripAll:
		s.stripAll(token, emit)
		return
	case stageMetaspace:
		to := " "
		if !s.started && p.start > 0 {
			to = ""
		}
		token = strings.ReplaceAll(token, p.from, to)
	case stageWordPiece:
		token = s.wordPiece(token)
	case stageSuffix:
		if s.holds {
			emit(strings.ReplaceAll(s.held, p.from, " "))
		}
		s.held, s.holds = token, true
		return
	case stageJoin:
		if s.started {
			token = " " + token
		}
	case stageRepeats:
		if s.holds && token == s.held {
			return
		}
		s.held, s.holds = token, true
		if token = strings.ReplaceAll(token, p.from, ""); p.clean {
			token = strings.ReplaceAll(wordPieceCleaner.Replace(token), p.to, " ")
		}
		if token == "" {
			return
		}
	case stageExact:
		if token == p.from {
			token = p.to
		}
	case stageLead:
		token = s.lead(token)
		emit(token)
		return
	}
	s.started = true
	emit(token)
}

// flush ends the text.
func (s *stage) flush(emit func(string)) {
	switch {
	case s.spec.kind == stageSuffix && s.holds:
		emit(strings.ReplaceAll(s.held, s.spec.from, ""))
	case s.spec.kind == stageStripAll && s.held != "":
		n := 0
		for n < s.spec.stop && strings.HasSuffix(s.held, s.spec.from) {
			s.held = strings.TrimSuffix(s.held, s.spec.from)
			n++
		}
		emit(s.held)
	}
	*s = stage{spec: s.spec}
}

// lead takes the mark off a token that stands before any text.
func (s *stage) lead(token string) string {
	if s.started {
		return token
	}
	if rest, ok := strings.CutPrefix(token, s.spec.from); ok {
		token = rest
		s.stripped++
	}
	s.started = token != "" || s.stripped >= s.spec.start
	return token
}

// stripAll strips at the beginning of the text and holds back what may have to go at its end.
func (s *stage) stripAll(token string, emit func(string)) {
	p := s.spec
	for !s.started && s.stripped < p.start && strings.HasPrefix(token, p.from) {
		token = token[len(p.from):]
		s.stripped++
	}
	if token == "" {
		return
	}
	s.started = true
	if p.stop == 0 {
		emit(token)
		return
	}
	token = s.held + token
	keep := token
	for n := 0; n < p.stop && strings.HasSuffix(keep, p.from); n++ {
		keep = strings.TrimSuffix(keep, p.from)
	}
	s.held = token[len(keep):]
	emit(keep)
}

func stripEnds(token, what string, start, stop int) string {
	for n := 0; n < start && strings.HasPrefix(token, what); n++ {
		token = token[len(what):]
	}
	for n := 0; n < stop && strings.HasSuffix(token, what); n++ {
		token = token[:len(token)-len(what)]
	}
	return token
}

var wordPieceCleaner = strings.NewReplacer(" .", ".", " ?", "?", " !", "!", " ,", ",", " ' ", "'", " n't", "n't", " 'm", "'m", " do not", " don't",
	" 's", "'s", " 've", "'ve", " 're", "'re")

func (s *stage) wordPiece(token string) string {
	if s.started {
		if rest, ok := strings.CutPrefix(token, s.spec.from); ok {
			token = rest
		} else {
			token = " " + token
		}
	}
	if s.spec.clean {
		token = wordPieceCleaner.Replace(token)
	}
	return token
}

// byteToken returns the byte that a token of the form <0xHH> stands for.
func byteToken(token string) (byte, bool) {
	if len(token) != 6 || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	hi, ok1 := hexDigit(token[3])
	lo, ok2 := hexDigit(token[4])
	return hi<<4 | lo, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// replaceMatches replaces every match of p in s. It fails with ErrTooLong where more than limit bytes come of it, with ErrTooCostly where the search gives
// up, along with what it has by then.
func replaceMatches(s string, p *pattern.Pattern, to string, limit int, work *int) (string, error) {
	var b strings.Builder
	done, over := 0, false
	each := p.Each
	if work != nil {
		each = func(text string, yield func(start, end int)) error { return p.EachWithin(text, work, yield) }
	}
	err := each(s, func(start, end int) {
		if over = over || b.Len()+start-done+len(to) > limit; !over {
			b.WriteString(s[done:start])
			b.WriteString(to)
		}
		done = end
	})
	if over || b.Len()+len(s)-done > limit {
		return "", ErrTooLong
	}
	if done == 0 && b.Len() == 0 {
		return s, err
	}
	b.WriteString(s[done:])
	return b.String(), err
}

// fallbackBytes reports whether bytes come from byte tokens, each of which decodes by itself if it is no UTF-8.
func (t *Tokenizer) fallbackBytes() bool {
	for i := range t.stages {
		if t.stages[i].kind == stageByteFallback {
			return true
		}
	}
	return false
}
