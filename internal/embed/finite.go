package embed

import (
	"fmt"
	"math"

	"github.com/inferflow/inferflow/internal/device"
)

// unsound finds a value that is no answer: NaN or an infinity. A logit of -Inf
// forbids a token, as it does where tokens are drawn. It is -1 where all is well.
func unsound(row []float32, forbids bool) int {
	for i, v := range row {
		x := float64(v)
		if math.IsNaN(x) || math.IsInf(x, 1) || math.IsInf(x, -1) && !forbids {
			return i
		}
	}
	return -1
}

// judge fails the texts of a computed batch whose rows are not finite. The
// batch runs again, once, to name the step where that begins.
func (s *Service) judge(items []*item) {
	where := ""
	for _, it := range items {
		for _, row := range it.rows {
			c := unsound(row, s.Output == OutputLogits)
			if c < 0 {
				continue
			}
			if where == "" {
				if where = s.m.Diagnose(&s.b); where == "" {
					where = "the output"
				}
			}
			it.rows, it.err = nil, fmt.Errorf("embed: %w: value %d of the output is %v: first in %s", device.ErrNonFinite, c, row[c], where)
			break
		}
	}
}

// spells is the most bytes of a text that the service takes: what as many
// tokens as it takes can spell, with 64 for a token at least, since
// vocabularies drop spaces and take long words for one unknown token.
func (s *Service) spells() int { return s.most * s.longest() }

func (s *Service) longestToken() int {
	n := 64
	for id := range s.Tok.Size() {
		n = max(n, len(s.Tok.TokenBytes(int32(id))))
	}
	return n
}

// bound keeps a text within bytes whose tokens can be paid for, n being those
// of the text with what stands before it. Where texts may be cut it loses its end.
func (s *Service) bound(i int, text string, n int, o Options) (kept string, cut bool, err error) {
	most := s.spells()
	if n <= most {
		return text, false, nil
	}
	if !o.Truncate || n-len(text) >= most {
		return "", false, s.beyond(i, n)
	}
	at := most - (n - len(text))
	for at > 0 && text[at]&0xc0 == 0x80 {
		at--
	}
	return text[:at], true, nil
}

func (s *Service) beyond(i, n int) error {
	return fmt.Errorf("embed: %w: text %d has %d bytes; %d tokens are at most %d bytes", ErrTooLong, i+1, n, s.most, s.spells())
}

// sparse refuses a text that was cut at its bytes and has fewer tokens than are
// taken: what of its rest would have stayed is unknown.
func (s *Service) sparse(i int) error {
	return fmt.Errorf("embed: %w: text %d: its first %d bytes are fewer than %d tokens: cut it before it is sent", ErrRequest, i+1, s.spells(), s.most)
}
