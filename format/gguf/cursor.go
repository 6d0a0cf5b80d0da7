package gguf

import (
	"encoding/binary"
	"fmt"
)

// cursor reads the header of one file front to back. The first failure sticks
// in err and later reads return zeros, so that callers check once an entry.
type cursor struct {
	name string // of the file, for errors
	data []byte
	off  int
	what string // what is being read, such as `key "general.name"`
	err  error
}

func (c *cursor) fail(kind error, format string, args ...any) {
	if c.err == nil {
		what := c.what
		if what != "" {
			what += ": "
		}
		c.err = fmt.Errorf("gguf: %s: offset %d: %s%s: %w", c.name, c.off, what, fmt.Sprintf(format, args...), kind)
	}
}

// left is the number of bytes not read yet.
func (c *cursor) left() uint64 { return uint64(len(c.data) - c.off) }

// take returns the next n bytes of the file, not copied.
func (c *cursor) take(n uint64, what string) []byte {
	if c.err != nil {
		return nil
	}
	if n > c.left() {
		c.fail(ErrCorrupt, "%s takes %d bytes, the file has %d more; was the download cut short?", what, n, c.left())
		return nil
	}
	b := c.data[c.off : c.off+int(n) : c.off+int(n)]
	c.off += int(n)
	return b
}

func (c *cursor) u32(what string) uint32 {
	if b := c.take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64(what string) uint64 {
	if b := c.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// str reads a length and as many bytes, at most limit.
func (c *cursor) str(what string, limit uint64) []byte {
	start := c.off
	n := c.u64("the length of " + what)
	if c.err == nil && n > limit {
		c.off = start
		c.fail(ErrCorrupt, "%s claims %d bytes, at most %d are allowed", what, n, limit)
		return nil
	}
	return c.take(n, what)
}
