package convert

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/inferflow/inferflow/internal/model/modeltest"
)

// TestStopped: nothing is left of a conversion that is stopped while it writes.
func TestStopped(t *testing.T) {
	dir, in := t.TempDir(), modeltest.Write(t, t.TempDir(), modeltest.Options{})
	for _, out := range []string{"new/deep", "m.gguf"} {
		ctx, stop := context.WithCancel(context.Background())
		err := Run(in, filepath.Join(dir, out), Options{Context: ctx, Progress: func(done, total int64) {
			if done > total/2 {
				stop()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", out, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v: %v", out, left, err)
		}
	}
}

// TestStoppedModules: nor of what stood ready before the last file was written.
func TestStoppedModules(t *testing.T) {
	dir, in := t.TempDir(), modeltest.Write(t, t.TempDir(), modeltest.Options{})
	ctx, stop := context.WithCancel(context.Background())
	err := Run(in, filepath.Join(dir, "new"), Options{Context: ctx, Progress: func(done, total int64) {
		if done == total {
			stop()
		}
	}})
	if left, _ := os.ReadDir(dir); !errors.Is(err, context.Canceled) || len(left) > 0 {
		t.Errorf("%v: left %v", err, left)
	}
}

// TestTwoAtOnce: of two conversions into one target the second is refused, while
// the first writes and when it has written.
func TestTwoAtOnce(t *testing.T) {
	dir, in := t.TempDir(), modeltest.Write(t, t.TempDir(), modeltest.Options{})
	for _, out := range []string{"new", "m.gguf"} {
		var once sync.Once
		var second error
		out = filepath.Join(dir, out)
		err := Run(in, out, Options{Progress: func(done, total int64) {
			once.Do(func() { second = Run(in, out, Options{Force: true}) })
		}})
		if err != nil || !errors.Is(second, ErrConvert) {
			t.Errorf("%s: %v, the second %v", out, err, second)
		}
		if err := Run(in, out, Options{}); !errors.Is(err, ErrConvert) {
			t.Errorf("%s: afterwards %v", out, err)
		}
		if _, err := os.Stat(out + ".lock"); err == nil {
			t.Error("a lock is left")
		}
		if _, err := os.Stat(filepath.Join(out, lockFile)); err == nil {
			t.Error("a lock is left")
		}
	}
}
