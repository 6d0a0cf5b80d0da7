package main

import "time"

// arrival is bytes of the terminal and when they came.
type arrival struct {
	b  []byte
	at time.Time
}

// press is a key and when it came.
type press struct {
	key
	at time.Time
}

// burst tells an Enter that a person pressed from the line ends of a text that
// comes as keys. An Enter counts only when nothing follows it within quiet.
type burst struct {
	last  time.Time
	lines int // Enters of this burst that were line ends
	held  bool
}

// key notes a key; true where the Enter before it was a line's end.
func (b *burst) key(at time.Time, enter bool) bool {
	if at.Sub(b.last) >= quiet {
		b.lines = 0
	}
	end := b.held
	if end {
		b.lines++
	}
	b.held, b.last = enter, at
	return end
}

// late says whether a key at this time leaves the held Enter a person's.
func (b *burst) late(at time.Time) bool { return b.held && at.Sub(b.last) >= quiet }

// settle ends the burst: true where a person pressed Enter, false where it was
// the last line's end of a pasted text.
func (b *burst) settle() bool {
	send := b.held && b.lines == 0
	b.held, b.lines = false, 0
	return send
}
