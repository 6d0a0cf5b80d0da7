//go:build unix

package spec

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPipe names a pipe that nobody writes to as specification.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spec.star")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := Resolve(loadShapes(t, "llama.hf"), Options{SpecFile: path})
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a pipe is waited for")
	}
}
