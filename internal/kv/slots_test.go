package kv

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestSlots takes and gives at random: no slot has two holders, none is lost.
func TestSlots(t *testing.T) {
	s, r := NewSlots(7), rand.New(rand.NewPCG(1, 2))
	var held []int32
	for range 2000 {
		if r.IntN(2) == 0 {
			slot, err := s.Take()
			if (len(held) == s.Total()) != errors.Is(err, ErrFull) {
				t.Fatalf("%d of %d held: %v", len(held), s.Total(), err)
			}
			if err == nil {
				held = append(held, slot)
			}
		} else if len(held) > 0 {
			i := r.IntN(len(held))
			s.Give(held[i])
			held = append(held[:i], held[i+1:]...)
		}
		if err := s.Check(held); err != nil {
			t.Fatal(err)
		}
	}
	if len(held) > 0 && s.Check(held[1:]) == nil {
		t.Error("a slot that nobody names is not missed")
	}
}
