package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/inferflow/inferflow/format/shelf"
)

// scanner reads JSON whose form is known, in one pass over the text. Package
// json takes the last of two equal keys without a word, and ten times as long
// for the sixty thousand tensors of a model with many experts.
type scanner struct {
	text []byte
	at   int
	nums []uint64 // of numbers, until its next call
}

// place is what an error is about: "tensor", its name, and a field of it.
type place struct{ what, name, field string }

func (p place) String() string {
	s := p.what
	if p.name != "" || p.field != "" {
		s += " " + shelf.Quote(p.name)
	}
	if p.field != "" {
		s += ": " + p.field
	}
	return s
}

func newScanner(text []byte) *scanner { return &scanner{text: text} }

func (s *scanner) bad(format string, args ...any) error {
	return fmt.Errorf("offset %d: %s: %w", s.at, fmt.Sprintf(format, args...), ErrCorrupt)
}

// next is the next byte that is no white space, not yet taken; 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// unexpected says that another byte should stand here.
func (s *scanner) unexpected(want string) error {
	if s.at >= len(s.text) {
		return s.bad("the JSON ends too early")
	}
	return s.bad("broken JSON: %q where %s belongs", s.text[s.at], want)
}

// take consumes the byte c.
func (s *scanner) take(c byte, want string) error {
	if s.next() != c {
		return s.unexpected(want)
	}
	s.at++
	return nil
}

// object reads an object and calls field after each key, which must read the
// value. many is about how many keys there may be.
func (s *scanner) object(what place, many int, field func(key string) error) error {
	if c := s.next(); c != '{' {
		if c == 0 {
			return s.unexpected("an object")
		}
		return s.bad("%s is no object", what)
	}
	s.at++
	if s.next() == '}' {
		s.at++
		return nil
	}
	var few [8]string
	seen := keys{few: few[:0], many: many}
	for {
		if s.next() != '"' {
			return s.unexpected("a key")
		}
		key, err := s.quoted()
		if err != nil {
			return err
		}
		if !seen.add(key) {
			return s.bad("%s has the key %s twice", what, shelf.Quote(key))
		}
		if err := s.take(':', "a colon"); err != nil {
			return err
		}
		if err := field(key); err != nil {
			return err
		}
		if c := s.next(); c == '}' {
			s.at++
			return nil
		}
		if err := s.take(',', "a comma or the object's end"); err != nil {
			return err
		}
	}
}

// keys are those of an object: a list while they are few.
type keys struct {
	few  []string
	all  map[string]struct{}
	many int
}

// add says whether a key is new.
func (k *keys) add(key string) bool {
	if k.all == nil {
		if slices.Contains(k.few, key) {
			return false
		}
		if len(k.few) < cap(k.few) {
			k.few = append(k.few, key)
			return true
		}
		k.all = make(map[string]struct{}, k.many)
		for _, f := range k.few {
			k.all[f] = struct{}{}
		}
	}
	n := len(k.all)
	k.all[key] = struct{}{}
	return len(k.all) > n
}

// quoted reads a string, at whose quote the scanner stands.
func (s *scanner) quoted() (string, error) {
	from, plain := s.at+1, true
	for i := from; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			raw := s.text[from:i]
			s.at = i + 1
			if plain || utf8.Valid(raw) && !bytes.ContainsRune(raw, '\\') {
				switch string(raw) { // three of every tensor: no string is made
				case "dtype":
					return "dtype", nil
				case "shape":
					return "shape", nil
				case "data_offsets":
					return "data_offsets", nil
				case "BF16":
					return "BF16", nil
				}
				return string(raw), nil
			}
			var v string
			if err := json.Unmarshal(s.text[from-1:i+1], &v); err != nil {
				return "", s.bad("broken JSON: %v", err)
			}
			return v, nil
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			s.at = i
			return "", s.bad("broken JSON: a control character in a string")
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	s.at = len(s.text)
	return "", s.unexpected("a quote")
}

func (s *scanner) str(what place) (string, error) {
	switch s.next() {
	case '"':
		return s.quoted()
	case 0:
		return "", s.unexpected("a string")
	}
	return "", s.bad("%s is no string", what)
}

// numbers reads an array of at most limit integers that are not negative. The
// list is valid until the next call.
func (s *scanner) numbers(what place, limit int) ([]uint64, error) {
	if c := s.next(); c != '[' {
		if c == 0 {
			return nil, s.unexpected("an array")
		}
		return nil, s.bad("%s is no array", what)
	}
	s.at++
	s.nums = s.nums[:0]
	if s.next() == ']' {
		s.at++
		return s.nums, nil
	}
	for {
		n, err := s.number(what)
		if err != nil {
			return nil, err
		}
		if s.nums = append(s.nums, n); len(s.nums) > limit {
			return nil, s.bad("%s has more than %d numbers", what, limit)
		}
		if s.next() == ']' {
			s.at++
			return s.nums, nil
		}
		if err := s.take(',', "a comma or the array's end"); err != nil {
			return nil, err
		}
	}
}

// number reads an integer from 0 to 2^63-1.
func (s *scanner) number(what place) (uint64, error) {
	if s.next() == 0 {
		return 0, s.unexpected("a number")
	}
	from, n, ok := s.at, uint64(0), true
	for ; s.at < len(s.text) && s.text[s.at]-'0' <= 9; s.at++ {
		d := uint64(s.text[s.at] - '0')
		if ok = ok && n <= (math.MaxInt64-d)/10; ok {
			n = 10*n + d
		}
	}
	ok = ok && s.at > from && (s.text[from] != '0' || s.at == from+1)
	rest := s.text[s.at:]
	if len(rest) > 0 && !bytes.ContainsAny(rest[:1], ",] \t\r\n") || !ok {
		end := bytes.IndexAny(rest[:min(len(rest), 24)], ",]")
		if end < 0 {
			end = min(len(rest), 24)
		}
		return 0, s.bad("%s holds %s, want integers from 0 to 2^63-1", what, bytes.ToValidUTF8(s.text[from:s.at+end], []byte("?")))
	}
	return n, nil
}

// skip passes over any value.
func (s *scanner) skip() error {
	var raw json.RawMessage
	d := json.NewDecoder(bytes.NewReader(s.text[s.at:]))
	err := d.Decode(&raw)
	s.at += int(d.InputOffset())
	return err
}

// end checks that nothing but white space follows.
func (s *scanner) end() error {
	if s.next(); s.at < len(s.text) {
		return s.bad("something follows the JSON: %.20q", s.text[s.at:])
	}
	return nil
}
