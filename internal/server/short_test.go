package server

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestShort bounds what a message repeats, and keeps both its ends.
func TestShort(t *testing.T) {
	if s := strings.Repeat("a", maxMessage); Short(s) != s {
		t.Error("a short message is changed")
	}
	for _, middle := range []string{"x", "é", "\xff", "漢"} {
		s := Short("what happened " + strings.Repeat(middle, 1<<20) + " what to do")
		if len(s) > maxMessage+8 || !strings.HasPrefix(s, "what happened ") || !strings.HasSuffix(s, " what to do") || !utf8.ValidString(s) {
			t.Errorf("%q: %d bytes, valid %v", middle, len(s), utf8.ValidString(s))
		}
	}
	w := httptest.NewRecorder()
	writeError(w, errors.New("a name "+strings.Repeat("é", 1<<20)))
	writeError(w, badRequest("input", "%s", strings.Repeat("é", 1<<20)))
	if n := w.Body.Len(); n > 3*maxMessage {
		t.Errorf("the answers take %d bytes", n)
	}
}
