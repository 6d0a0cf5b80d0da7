//go:build linux || darwin

package safetensors

import (
	"errors"
	"io"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/inferflow/inferflow/internal/sys"
)

// TestPipe opens and writes over named pipes, which must not be waited for.
func TestPipe(t *testing.T) {
	for _, name := range []string{"model.safetensors.index.json", "model.safetensors"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip("no pipes here:", err)
		}
		if _, err := Open(dir); !errors.Is(err, sys.ErrNotRegular) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Open(path); !errors.Is(err, sys.ErrNotRegular) {
			t.Errorf("%s itself: %v", name, err)
		}
		if _, err := Sketch(dir); !errors.Is(err, sys.ErrNotRegular) {
			t.Errorf("sketch of %s: %v", name, err)
		}
		w := &Writer{}
		if err := w.Add("a", 0, nil, func(io.Writer) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteFile(path); !errors.Is(err, sys.ErrNotRegular) {
			t.Errorf("writing %s: %v", name, err)
		}
	}
}
