package main

import (
	"bufio"
	"bytes"
	"testing"
)

// TestOneRowOfAText prints the row of what is pooled once, in JSON as in text.
func TestOneRowOfAText(t *testing.T) {
	for _, c := range []struct {
		once bool
		want string
	}{{true, "{\"logits\": [[1, 2]]}\n"}, {false, "{\"logits\": [[1, 2], [1, 2]]}\n"}} {
		var b bytes.Buffer
		p := rowPrinter{w: bufio.NewWriter(&b), json: true, key: "logits", once: c.once}
		p.row([]float32{1, 2})
		p.row([]float32{1, 2})
		p.end()
		p.w.Flush()
		if b.String() != c.want {
			t.Errorf("once %v: got %s", c.once, b.String())
		}
	}
}
