package main

import (
	"strings"
	"testing"
	"time"
)

// TestEndWithin: an engine that does not end is left behind, with a word of it.
func TestEndWithin(t *testing.T) {
	said := ""
	forever := make(chan struct{})
	defer close(forever)
	endWithin(func() error { <-forever; return nil }, time.Millisecond, func(s string) { said = s })
	if !strings.Contains(said, "still at a step") {
		t.Errorf("said %q", said)
	}
	ended := false
	endWithin(func() error { ended = true; return nil }, time.Hour, func(s string) { t.Errorf("said %q", s) })
	if !ended {
		t.Error("end was not called")
	}
}
