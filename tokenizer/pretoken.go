package tokenizer

import (
	"strings"
	"unicode/utf8"

	"github.com/inferflow/inferflow/tokenizer/pattern"
)

// preTokenizer cuts text into words. first says that text begins the whole input. Words are yielded in order and may be empty. Where a search gives up the
// error wraps ErrTooCostly, and the words so far mean nothing.
type preTokenizer interface {
	split(text string, first bool, yield func(word string)) error
}

// preTokenizers applies each to the words of the one before.
type preTokenizers []preTokenizer

func (p preTokenizers) split(text string, first bool, yield func(string)) error {
	switch len(p) {
	case 0:
		yield(text)
		return nil
	case 1:
		return p[0].split(text, first, yield)
	}
	return p.chain(text, first, yield)
}

func (p preTokenizers) chain(text string, first bool, yield func(string)) error {
	var inner error
	err := p[0].split(text, first, func(word string) {
		if word != "" && inner == nil {
			inner = p[1:].split(word, first, yield)
			first = false
		}
	})
	if err == nil {
		err = inner
	}
	return err
}

// behavior says what becomes of the matches of a split (SplitDelimiterBehavior).
type behavior uint8

const (
	behaveIsolated behavior = iota
	behaveRemoved
	behaveContiguous
	behaveWithPrevious
	behaveWithNext
)

// finder yields every match in order.
type finder func(text string, yield func(start, end int)) error

// splitter cuts by a search for delimiters.
type splitter struct {
	find     finder
	behavior behavior
	invert   bool // what lies between the matches is the delimiter
}

func patternSplitter(p *pattern.Pattern, b behavior, invert bool) preTokenizer {
	if next := p.Scanner(); next != nil && b == behaveIsolated {
		return scanSplit{next}
	}
	return &splitter{find: p.Each, behavior: b, invert: invert}
}

// scanSplit cuts text into the matches of a pattern that matches everywhere.
type scanSplit struct {
	next func(text string, pos int) int
}

func (s scanSplit) split(text string, _ bool, yield func(string)) error {
	for pos := 0; pos < len(text); {
		end := s.next(text, pos)
		yield(text[pos:end])
		pos = end
	}
	return nil
}

// literalFinder finds a string.
func literalFinder(what string) finder {
	return func(text string, yield func(int, int)) error {
		for pos := 0; what != ""; {
			i := strings.Index(text[pos:], what)
			if i < 0 {
				break
			}
			yield(pos+i, pos+i+len(what))
			pos += i + len(what)
		}
		return nil
	}
}

// runeFinder finds single runes.
func runeFinder(is func(rune) bool) finder {
	return func(text string, yield func(int, int)) error {
		for i := 0; i < len(text); {
			r, w := utf8.DecodeRuneInString(text[i:])
			if is(r) {
				yield(i, i+w)
			}
			i += w
		}
		return nil
	}
}

func (s *splitter) split(text string, _ bool, yield func(string)) error {
	done := 0
	if s.behavior == behaveIsolated {
		err := s.find(text, func(start, end int) {
			if start > done {
				yield(text[done:start])
			}
			yield(text[start:end])
			done = end
		})
		yield(text[done:])
		return err
	}
	out := behaviorState{behavior: s.behavior, text: text, yield: yield}
	err := s.find(text, func(start, end int) {
		if start > done {
			out.part(done, start, s.invert)
		}
		out.part(start, end, !s.invert)
		done = end
	})
	if done < len(text) {
		out.part(done, len(text), s.invert)
	}
	out.end()
	return err
}

// behaviorState joins the parts of a text, delimiters and what lies between, as the behavior asks.
type behaviorState struct {
	behavior   behavior
	text       string
	yield      func(string)
	start      int  // of the word that is open
	stop       int  // its end
	open       bool // there is one
	delimiter  bool // the last part was a delimiter
	hasStarted bool
}

func (b *behaviorState) part(start, end int, delimiter bool) {
	join := false
	switch b.behavior {
	case behaveIsolated:
	case behaveRemoved:
		if delimiter {
			b.delimiter = true
			return
		}
	case behaveContiguous:
		join = b.hasStarted && delimiter == b.delimiter
	case behaveWithPrevious:
		join = delimiter && b.hasStarted && !b.delimiter
	case behaveWithNext:
		join = !delimiter && b.hasStarted && b.delimiter
	}
	if !join {
		b.end()
		b.start = start
	}
	b.stop, b.open, b.delimiter, b.hasStarted = end, true, delimiter, true
}

func (b *behaviorState) end() {
	if b.open {
		b.yield(b.text[b.start:b.stop])
		b.open = false
	}
}

// byteLevelSplit is the ByteLevel pre-tokenizer: an optional space before the word and a split. The mapping to the byte alphabet is left to
// the model, which reads bytes; see byteMapper for the files where other steps follow.
type byteLevelSplit struct {
	prefixSpace bool
	words       preTokenizer // nil: no split
}

func (p *byteLevelSplit) split(text string, _ bool, yield func(string)) error {
	if p.prefixSpace && !strings.HasPrefix(text, " ") {
		text = " " + text
	}
	if p.words == nil {
		yield(text)
		return nil
	}
	return p.words.split(text, false, yield)
}

// byteMapper writes words in the byte alphabet, or undoes that, for the steps between that see it.
type byteMapper struct{ undo bool }

func (p byteMapper) split(text string, _ bool, yield func(string)) error {
	if !p.undo {
		yield(string(toByteLevel(nil, text)))
		return nil
	}
	if raw, ok := fromByteLevel(nil, text); ok {
		text = string(raw)
	}
	yield(text)
	return nil
}

// metaspace turns spaces into a mark and cuts before each.
type metaspace struct {
	mark   string
	prefix prefixScheme
	cut    bool
}

type prefixScheme uint8

const (
	prefixNever prefixScheme = iota
	prefixFirst
	prefixAlways
)

func (p *metaspace) split(text string, first bool, yield func(string)) error {
	text = strings.ReplaceAll(text, " ", p.mark)
	if (p.prefix == prefixAlways || p.prefix == prefixFirst && first) && !strings.HasPrefix(text, p.mark) {
		text = p.mark + text
	}
	if !p.cut {
		yield(text)
		return nil
	}
	for start := 0; start < len(text); {
		skip := 0
		if strings.HasPrefix(text[start:], p.mark) {
			skip = len(p.mark)
		}
		i := strings.Index(text[start+skip:], p.mark)
		if i < 0 {
			yield(text[start:])
			break
		}
		yield(text[start : start+skip+i])
		start += skip + i
	}
	return nil
}
