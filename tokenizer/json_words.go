package tokenizer

import (
	"fmt"
	"slices"

	"github.com/inferflow/inferflow/tokenizer/pattern"
)

// byteLevelWords is the split of the ByteLevel pre-tokenizer.
const byteLevelWords = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// findWords finds what the Whitespace pre-tokenizer keeps: runs of word characters, and runs of what is neither that nor white space (in Rust's
// reading: \w+|[^\w\s]+).
func findWords(text string, yield func(start, end int)) error {
	start, was := 0, 0 // 0 is white space, 1 a word, 2 neither
	for i, r := range text {
		is := 2
		switch {
		case isWord(r):
			is = 1
		case pattern.IsSpace(r):
			is = 0
		}
		if is != was {
			if was != 0 {
				yield(start, i)
			}
			start, was = i, is
		}
	}
	if was != 0 {
		yield(start, len(text))
	}
	return nil
}

// preTokenizer reads the pre-tokenizer. A byte-level vocabulary is kept as raw bytes and so are words on their way to it; where steps follow ByteLevel,
// they see the byte alphabet, as in the reference, and it is undone behind them.
func (r *jsonReader) preTokenizer(raw string) error {
	var list preTokenizers
	mapped := r.alpha
	if !isNull(raw) {
		var err error
		if list, err = r.preTokenizers(nil, raw, 0); err != nil {
			return err
		}
	}
	if err := checkGrowth(len(list), wordGrowth(list), maxWordGrowth); err != nil {
		return err
	}
	for i := 0; i < len(list); i++ {
		if _, ok := list[i].(*byteLevelSplit); !ok {
			continue
		}
		r.alpha = true
		if i < len(list)-1 {
			mapped = true
			list = append(list[:i+1], append(preTokenizers{byteMapper{}}, list[i+1:]...)...)
		}
	}
	if mapped {
		list = append(list, byteMapper{undo: true})
	}
	if err := checkGrowth(0, wordGrowth(list), maxWordGrowth); err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(p preTokenizer) bool { // steps that change nothing cost a call a word
		b, ok := p.(*byteLevelSplit)
		return ok && !b.prefixSpace && b.words == nil
	})
	if len(list) > 0 {
		r.t.pre = list
	}
	return nil
}

func (r *jsonReader) preTokenizers(list preTokenizers, raw string, depth int) (preTokenizers, error) {
	s, err := parseStep(raw, depth)
	if err != nil {
		return nil, err
	}
	if s.Type == "Sequence" {
		for _, sub := range s.Pretokenizers {
			if list, err = r.preTokenizers(list, string(sub), depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	if s.Type == "CleanWords" {
		return append(list, cleanWords().(preTokenizers)...), nil
	}
	p, err := s.preTokenizer()
	if err != nil {
		return nil, err
	}
	return append(list, p), nil
}

func (s *stepJSON) preTokenizer() (preTokenizer, error) {
	switch s.Type {
	case "ByteLevel":
		p := &byteLevelSplit{prefixSpace: or(s.PrefixSpace, true)}
		if or(s.UseRegex, true) {
			words, err := pattern.Compile(byteLevelWords)
			if err != nil {
				return nil, err
			}
			p.words = patternSplitter(words, behaveIsolated, false)
		}
		return p, nil
	case "Split":
		return s.splitter()
	case "Metaspace":
		return s.metaspace()
	case "Digits":
		b := behaveContiguous
		if s.Individual {
			b = behaveIsolated
		}
		return &splitter{find: runeFinder(isNumber), behavior: b}, nil
	case "Punctuation":
		b, err := s.behavior("Isolated")
		return &splitter{find: runeFinder(isPunct), behavior: b}, err
	case "WhitespaceSplit":
		return &splitter{find: runeFinder(pattern.IsSpace), behavior: behaveRemoved}, nil
	case "Whitespace":
		return &splitter{find: findWords, behavior: behaveRemoved, invert: true}, nil
	case "CharDelimiterSplit":
		return &splitter{find: literalFinder(s.Delimiter), behavior: behaveRemoved}, nil
	case "UnicodeScripts":
		return scriptSplit{}, nil
	case "FixedLength":
		if s.Length <= 0 {
			s.Length = 5
		}
		return fixedSplit{s.Length}, nil
	}
	return nil, fmt.Errorf("%w: pre-tokenizer %.40q", ErrUnsupported, s.Type)
}

func (s *stepJSON) splitter() (preTokenizer, error) {
	b, err := s.behavior("")
	if err != nil {
		return nil, err
	}
	re, literal, err := s.Pattern.compile()
	if err != nil {
		return nil, err
	}
	if re != nil {
		return patternSplitter(re, b, s.Invert), nil
	}
	return &splitter{find: literalFinder(literal), behavior: b, invert: s.Invert}, nil
}

func (s *stepJSON) behavior(otherwise string) (behavior, error) {
	name := s.Behavior
	if name == "" {
		name = otherwise
	}
	switch name {
	case "Isolated":
		return behaveIsolated, nil
	case "Removed":
		return behaveRemoved, nil
	case "Contiguous":
		return behaveContiguous, nil
	case "MergedWithPrevious":
		return behaveWithPrevious, nil
	case "MergedWithNext":
		return behaveWithNext, nil
	}
	return 0, fmt.Errorf("%w: split behavior %.40q", ErrInvalid, name)
}

func (s *stepJSON) scheme() (prefixScheme, error) {
	if !or(s.PrefixSpace, true) {
		return prefixNever, nil
	}
	switch s.PrependScheme {
	case "", "always":
		return prefixAlways, nil
	case "first":
		return prefixFirst, nil
	case "never":
		return prefixNever, nil
	}
	return 0, fmt.Errorf("%w: prepend_scheme %.40q", ErrInvalid, s.PrependScheme)
}

func (s *stepJSON) metaspace() (preTokenizer, error) {
	scheme, err := s.scheme()
	mark := s.Replacement
	if mark == "" {
		mark = spaceMark
	}
	if err == nil {
		err = oneRune("replacement", mark)
	}
	return &metaspace{mark: mark, prefix: scheme, cut: or(s.Split, true)}, err
}

// fixedSplit cuts into words of so many characters.
type fixedSplit struct{ length int }

func (p fixedSplit) split(text string, _ bool, yield func(string)) error {
	start, n := 0, 0
	for i := range text {
		if n == p.length {
			yield(text[start:i])
			start, n = i, 0
		}
		n++
	}
	yield(text[start:])
	return nil
}

// scriptSplit cuts where the script changes; kana count as Han, and what has no script, spaces among it, goes with what stands before it. Such a
// character at the beginning is lost, as in the reference.
type scriptSplit struct{}

func (scriptSplit) split(text string, _ bool, yield func(string)) error {
	start := -1
	last := ""
	for i, r := range text {
		script := scriptOf(r)
		if script == "" {
			continue
		}
		if script != last {
			if start >= 0 {
				yield(text[start:i])
			}
			start = i
		}
		last = script
	}
	if start >= 0 {
		yield(text[start:])
	}
	return nil
}
