package pull

import (
	"context"
	"os"
	"testing"
)

// TestReal fetches a real model if INFERFLOW_TEST_PULL names one: it is for
// hand use, with a network.
func TestReal(t *testing.T) {
	ref := os.Getenv("INFERFLOW_TEST_PULL")
	if ref == "" {
		t.Skip("INFERFLOW_TEST_PULL is not set")
	}
	o := Options{Cache: os.Getenv("INFERFLOW_CACHE"), Progress: Terminal(os.Stderr), Note: func(s string) { t.Log(s) }}
	path, err := Resolve(context.Background(), ref, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(path)
}
