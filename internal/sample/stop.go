package sample

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Limits of a Stopper: the time a byte of the answer takes grows with the
// number of stop strings, and the memory with their length.
const (
	MaxStopStrings = 64
	MaxStopBytes   = 4096
)

// Stopper watches a streamed answer for stop tokens and stop strings. It holds
// back text that may be the beginning of a stop string, and never gives out a
// part of a rune. The answer ends at the byte at which the first stop string is
// complete; of several complete there, the longest counts. So where it ends
// does not depend on how the text was cut into tokens. It is not safe for
// concurrent use.
type Stopper struct {
	words   []pattern
	tokens  map[int32]bool
	include bool
	pending []byte // text not yet given out
	stopped bool
	text    string
	token   int32
}

// pattern is a stop string with its Knuth-Morris-Pratt failure table.
type pattern struct {
	text  string
	fail  []int32
	state int // length of the longest prefix that the text so far ends with
}

// NewStopper returns a stopper for the given stop strings and stop tokens.
// include keeps the stop string in the text. A string that is empty or not
// UTF-8, or too many or too long ones, give an error that wraps ErrParams.
func NewStopper(strings []string, tokens []int32, include bool) (*Stopper, error) {
	if len(strings) > MaxStopStrings {
		return nil, fmt.Errorf("sample: %w: stop has %d strings; at most %d are allowed", ErrParams, len(strings), MaxStopStrings)
	}
	s := &Stopper{include: include, tokens: make(map[int32]bool, len(tokens)), token: -1}
	for _, t := range tokens {
		s.tokens[t] = true
	}
	for i, w := range strings {
		switch {
		case w == "":
			return nil, fmt.Errorf("sample: %w: stop string %d is empty", ErrParams, i)
		case len(w) > MaxStopBytes:
			return nil, fmt.Errorf("sample: %w: stop string %d has %d bytes; at most %d are allowed", ErrParams, i, len(w), MaxStopBytes)
		case !utf8.ValidString(w):
			return nil, fmt.Errorf("sample: %w: stop string %d is not valid UTF-8", ErrParams, i)
		}
		s.words = append(s.words, pattern{text: w, fail: failures(w)})
	}
	// The longest first: the first one found complete at a byte is the answer's.
	slices.SortStableFunc(s.words, func(a, b pattern) int { return len(b.text) - len(a.text) })
	return s, nil
}

// failures returns for each prefix of w the length of its longest border.
func failures(w string) []int32 {
	f := make([]int32, len(w))
	k := 0
	for i := 1; i < len(w); i++ {
		for k > 0 && w[i] != w[k] {
			k = int(f[k-1])
		}
		if w[i] == w[k] {
			k++
		}
		f[i] = int32(k)
	}
	return f
}

// step advances over one byte and reports whether the pattern is complete.
func (p *pattern) step(b byte) bool {
	for p.state > 0 && (p.state == len(p.text) || p.text[p.state] != b) {
		p.state = int(p.fail[p.state-1])
	}
	if p.text[p.state] == b {
		p.state++
	}
	return p.state == len(p.text)
}

// Token reports whether id is a stop token, and if so ends the answer. The
// caller then takes the text still held back from Flush, and gives Push the
// stop token's own text only if it wants to show it, before calling Token.
func (s *Stopper) Token(id int32) bool {
	if !s.tokens[id] {
		return false
	}
	if !s.stopped {
		s.stopped, s.token = true, id
	}
	return true
}

// Push adds text to the answer. It returns the text that can be given out, and
// whether a stop string ended the answer; after that it returns nothing.
func (s *Stopper) Push(text string) (out string, stopped bool) {
	if s.stopped {
		return "", true
	}
	for i := range len(text) {
		s.pending = append(s.pending, text[i])
		done := -1
		for w := range s.words {
			if s.words[w].step(text[i]) && done < 0 {
				done = w
			}
		}
		if done >= 0 {
			return s.finish(s.words[done].text), true
		}
	}
	held := 0
	for w := range s.words {
		held = max(held, s.words[w].state)
	}
	return s.take(len(s.pending) - max(held, partialRune(s.pending))), false
}

func (s *Stopper) finish(word string) string {
	s.stopped, s.text = true, word
	n := len(s.pending)
	if !s.include {
		n -= len(word)
	}
	out := s.take(n)
	s.pending = nil
	return out
}

func (s *Stopper) take(n int) string {
	out := string(s.pending[:n])
	s.pending = append(s.pending[:0], s.pending[n:]...)
	return out
}

// partialRune returns how many bytes at the end of b begin a rune that is not
// complete.
func partialRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// Flush returns the text held back, at the end of an answer that no stop string
// ended, and starts the search anew.
func (s *Stopper) Flush() string {
	for w := range s.words {
		s.words[w].state = 0
	}
	return s.take(len(s.pending))
}

// Stopped reports whether the answer has ended here, and by which stop string
// or, if that is empty, by which stop token.
func (s *Stopper) Stopped() (stopped bool, text string, token int32) {
	return s.stopped, s.text, s.token
}
