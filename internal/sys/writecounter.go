package sys

import "io"

// WriteCounter passes bytes on to W and counts them.
type WriteCounter struct {
	W io.Writer
	N int64 // bytes that W took
}

func (c *WriteCounter) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	c.N += int64(n)
	return n, err
}
