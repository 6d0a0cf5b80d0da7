package kv

import "fmt"

// Slots hands out the places in which devices keep the recurrent states of a
// sequence: one slot a sequence, never shared.
type Slots struct {
	free []int32
	used []bool
}

// NewSlots makes n slots, numbered from 0.
func NewSlots(n int) *Slots {
	s := &Slots{used: make([]bool, n), free: make([]int32, n)}
	for i := range s.free {
		s.free[i] = int32(n - 1 - i)
	}
	return s
}

// Total is the number of slots.
func (s *Slots) Total() int { return len(s.used) }

// Free is the number of slots that nobody holds.
func (s *Slots) Free() int { return len(s.free) }

// Take hands out a slot, or ErrFull.
func (s *Slots) Take() (int32, error) {
	if len(s.free) == 0 {
		return -1, ErrFull
	}
	slot := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.used[slot] = true
	return slot, nil
}

// Give takes a slot back.
func (s *Slots) Give(slot int32) {
	s.used[slot] = false
	s.free = append(s.free, slot)
}

// Check returns an error if the slots do not match the held ones, which must
// be all that are.
func (s *Slots) Check(held []int32) error {
	seen := make([]bool, len(s.used))
	for _, slot := range held {
		if slot < 0 || int(slot) >= len(seen) || seen[slot] || !s.used[slot] {
			return fmt.Errorf("kv: state slot %d is held twice, or not handed out", slot)
		}
		seen[slot] = true
	}
	for _, slot := range s.free {
		if s.used[slot] {
			return fmt.Errorf("kv: free state slot %d is marked as used", slot)
		}
	}
	if len(held)+len(s.free) != len(s.used) {
		return fmt.Errorf("kv: %d state slots held and %d free of %d", len(held), len(s.free), len(s.used))
	}
	return nil
}
