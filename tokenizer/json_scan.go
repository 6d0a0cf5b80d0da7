package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// pieceJSON is an entry of a vocabulary.
type pieceJSON struct {
	text  string
	id    int32
	score float64 // unigram
}

// scanner reads the two large parts of tokenizer.json, vocabulary and merges, which were checked to be valid JSON before. It exists because a general
// decoder takes longer for them than all else together.
type scanner struct {
	src string
	pos int
}

// space passes white space and returns the byte behind it, 0 at the end.
func (s *scanner) space() byte {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r', ',', ':':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// str reads a string; its first quote comes next.
func (s *scanner) str() (string, bool) {
	if s.space() != '"' {
		return "", false
	}
	start := s.pos + 1
	end := strings.IndexByte(s.src[start:], '"')
	if end < 0 {
		return "", false
	}
	if text := s.src[start : start+end]; strings.IndexByte(text, '\\') < 0 {
		s.pos = start + end + 1
		return text, true
	}
	for i := start; i < len(s.src); i++ {
		switch s.src[i] {
		case '\\':
			i++
		case '"':
			var text string
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

// scanVocab reads {"piece": id, …} or [["piece", score], …].
func scanVocab(raw json.RawMessage) ([]pieceJSON, error) {
	s := &scanner{src: string(raw), pos: 1}
	pieces := make([]pieceJSON, 0, len(raw)/16)
	array := raw[0] == '['
	if !array && raw[0] != '{' {
		return nil, fmt.Errorf("%w: vocab is neither an object nor an array", ErrInvalid)
	}
	for {
		c := s.space()
		if c == '}' || c == ']' {
			return pieces, nil
		}
		if array {
			if c != '[' {
				return nil, fmt.Errorf("%w: vocab: entry %d is no [piece, score]", ErrInvalid, len(pieces))
			}
			s.pos++
		}
		text, ok1 := s.str()
		number, ok2 := s.number()
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("%w: vocab: entry %d (%.40q) is not a piece with a number", ErrInvalid, len(pieces), text)
		}
		p := pieceJSON{text: text, id: int32(len(pieces))}
		if array {
			if s.space() != ']' {
				return nil, fmt.Errorf("%w: vocab: entry %d (%.40q) has more than a score", ErrInvalid, len(pieces), text)
			}
			s.pos++
			p.score, _ = strconv.ParseFloat(number, 64)
		} else {
			id, err := strconv.ParseInt(number, 10, 32)
			if err != nil || id < 0 || id >= maxVocab {
				return nil, fmt.Errorf("%w: vocab: %.40q has id %.20s, want 0 to %d", ErrInvalid, text, number, maxVocab-1)
			}
			p.id = int32(id)
		}
		pieces = append(pieces, p)
		if len(pieces) > maxVocab {
			return nil, fmt.Errorf("%w: vocab has more than %d entries", ErrInvalid, maxVocab)
		}
	}
}

// scanMerges reads ["left right", …] or [["left", "right"], …].
func scanMerges(raw json.RawMessage) ([][2]string, error) {
	if isNull(raw) {
		return nil, nil
	}
	if raw[0] != '[' {
		return nil, fmt.Errorf("%w: merges is no array", ErrInvalid)
	}
	s := &scanner{src: string(raw), pos: 1}
	merges := make([][2]string, 0, len(raw)/16)
	for {
		var left, right string
		ok := true
		switch s.space() {
		case ']':
			return merges, nil
		case '[':
			s.pos++
			var ok2 bool
			left, ok = s.str()
			right, ok2 = s.str()
			ok = ok && ok2 && s.space() == ']'
			s.pos++
		default:
			var line string
			if line, ok = s.str(); strings.HasPrefix(line, "#version") {
				continue
			}
			if ok {
				left, right, ok = strings.Cut(line, " ")
				ok = ok && !strings.Contains(right, " ")
			}
		}
		if !ok {
			return nil, fmt.Errorf("%w: merges: entry %d (%.40q) is not a pair", ErrInvalid, len(merges), left)
		}
		merges = append(merges, [2]string{left, right})
	}
}
