package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pieceJSON is an entry of a vocabulary.
type pieceJSON struct {
	text  string
	id    int32
	score float64 // unigram
}

// scanner reads the outline of tokenizer.json and its two large parts, vocabulary and merges. It exists because a general decoder takes longer for them
// than all else together. It is strict about what it reads; parts that it passes over are for the decoder to check.
type scanner struct {
	src string
	pos int
}

// space passes white space and returns the byte behind it, 0 at the end.
func (s *scanner) space() byte {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// eat passes c if it comes next.
func (s *scanner) eat(c byte) bool {
	if s.space() != c {
		return false
	}
	s.pos++
	return true
}

// str reads a string.
func (s *scanner) str() (string, bool) {
	if s.space() != '"' {
		return "", false
	}
	for i := s.pos + 1; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '"':
			text := s.src[s.pos+1 : i]
			s.pos = i + 1
			return text, utf8.ValidString(text)
		case c == '\\':
			return s.escaped(i)
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// escaped reads a string whose first backslash is at i.
func (s *scanner) escaped(i int) (text string, ok bool) {
	for ; i < len(s.src); i++ {
		switch s.src[i] {
		case '\\':
			i++
		case '"':
			err := json.Unmarshal([]byte(s.src[s.pos:i+1]), &text)
			s.pos = i + 1
			return text, err == nil
		}
	}
	return "", false
}

func (s *scanner) number() (string, bool) {
	s.space()
	start := s.pos
	for s.pos < len(s.src) && strings.IndexByte("+-.0123456789eE", s.src[s.pos]) >= 0 {
		s.pos++
	}
	return s.src[start:s.pos], s.pos > start
}

// value passes over any value and returns it. Only brackets and strings are looked at.
func (s *scanner) value() (string, bool) {
	depth := 0
	s.space()
	start := s.pos
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; c {
		case '"':
			if !s.pass() {
				return "", false
			}
			if depth == 0 {
				return s.src[start:s.pos], true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return strings.TrimRight(s.src[start:s.pos], " \t\r\n"), s.pos > start
			}
			if c != ',' {
				depth--
			}
			if depth == 0 {
				s.pos++
				return s.src[start:s.pos], true
			}
		}
		s.pos++
	}
	return "", false
}

// pass passes over a string.
func (s *scanner) pass() bool {
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			s.pos++
		case '"':
			s.pos++
			return true
		}
	}
	return false
}

// members yields the names and raw values of an object.
func members(src string, yield func(name, raw string)) error {
	s := &scanner{src: src}
	bad := func() error {
		return fmt.Errorf("%w: no valid JSON object near byte %d of %d", ErrInvalid, s.pos, len(src))
	}
	if !s.eat('{') {
		return bad()
	}
	for n := 0; !s.eat('}'); n++ {
		if n > 0 && !s.eat(',') {
			return bad()
		}
		name, ok := s.str()
		if !ok || !s.eat(':') {
			return bad()
		}
		raw, ok := s.value()
		if !ok {
			return bad()
		}
		yield(name, raw)
	}
	if s.space() != 0 {
		return bad()
	}
	return nil
}

// scanVocab reads {"piece": id, …} or [["piece", score], …].
func scanVocab(raw string) ([]pieceJSON, error) {
	s := &scanner{src: raw}
	array := s.space() == '['
	end := byte('}')
	if array {
		end = ']'
	} else if s.space() != '{' {
		return nil, fmt.Errorf("%w: vocab is neither an object nor an array", ErrInvalid)
	}
	s.pos++
	pieces := make([]pieceJSON, 0, len(raw)/24)
	for !s.eat(end) {
		if len(pieces) > 0 && !s.eat(',') || array && !s.eat('[') {
			return nil, fmt.Errorf("%w: vocab: entry %d is malformed", ErrInvalid, len(pieces))
		}
		text, ok := s.str()
		if !ok || !s.eat(separator(array)) {
			return nil, fmt.Errorf("%w: vocab: entry %d (%.40q) is not a piece with a number", ErrInvalid, len(pieces), text)
		}
		number, _ := s.number()
		p := pieceJSON{text: text, id: int32(len(pieces))}
		var err error
		if array {
			if p.score, ok = decimal(number); !ok {
				return nil, fmt.Errorf("%w: vocab: %.40q has the score %.20q, want a finite number", ErrInvalid, text, number)
			}
			if !s.eat(']') {
				return nil, fmt.Errorf("%w: vocab: entry %d (%.40q) is not [piece, score]", ErrInvalid, len(pieces), text)
			}
		} else {
			var id uint64
			id, err = strconv.ParseUint(number, 10, 31)
			p.id = int32(id)
		}
		if err != nil || p.id >= maxVocab {
			return nil, fmt.Errorf("%w: vocab: %.40q has number %.20q; ids go up to %d", ErrInvalid, text, number, maxVocab-1)
		}
		if pieces = append(pieces, p); len(pieces) > maxVocab {
			return nil, fmt.Errorf("%w: vocab has more than %d entries", ErrInvalid, maxVocab)
		}
	}
	return pieces, nil
}

func separator(array bool) byte {
	if array {
		return ','
	}
	return ':'
}

// scanMerges reads ["left right", …] or [["left", "right"], …] and yields the pairs in order.
func scanMerges(raw string, yield func(n int, left, right string) error) error {
	s := &scanner{src: raw}
	if raw == "" || raw == "null" {
		return nil
	}
	if !s.eat('[') {
		return fmt.Errorf("%w: it is no array", ErrInvalid)
	}
	n := 0
	for first := true; !s.eat(']'); first = false {
		if !first && !s.eat(',') {
			return fmt.Errorf("%w: entry %d is malformed", ErrInvalid, n)
		}
		left, right, ok := s.merge()
		if !ok {
			return fmt.Errorf("%w: entry %d (%.40q) is not a pair", ErrInvalid, n, left)
		}
		if strings.HasPrefix(left, "#version") && n == 0 {
			continue
		}
		if err := yield(n, left, right); err != nil {
			return err
		}
		n++
	}
	return nil
}

// merge reads one pair in either form.
func (s *scanner) merge() (left, right string, ok bool) {
	if s.eat('[') {
		left, ok = s.str()
		if !ok || !s.eat(',') {
			return left, "", false
		}
		right, ok = s.str()
		return left, right, ok && s.eat(']')
	}
	line, ok := s.str()
	if !ok {
		return "", "", false
	}
	if left, right, ok = strings.Cut(line, " "); strings.HasPrefix(line, "#version") {
		return line, "", true
	}
	return left, right, ok && !strings.Contains(right, " ")
}

// scanMergeLines reads merges.txt: a pair a line, with a line that begins with #version before them.
func scanMergeLines(text string, yield func(n int, left, right string) error) error {
	n := 0
	for number := 1; text != ""; number++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimSuffix(line, "\r")
		if line == "" || strings.HasPrefix(line, "#version") {
			continue
		}
		left, right, ok := strings.Cut(line, " ")
		if right, _, more := strings.Cut(right, " "); !ok || left == "" || right == "" || more {
			return fmt.Errorf("%w: line %d (%.60q) is not two pieces", ErrInvalid, number, line)
		}
		if err := yield(n, left, right); err != nil {
			return err
		}
		n++
	}
	return nil
}
