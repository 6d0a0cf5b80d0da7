package sys

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestLock: one run holds a lock at a time, what a killed run left is taken
// over, and nothing stays.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		release, err := Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Lock(path); !errors.Is(err, ErrLocked) {
			t.Errorf("a second one: %v", err)
		}
		release()
		if got := names(t, filepath.Dir(path)); len(got) > 0 {
			t.Errorf("left: %q", got)
		}
	}
	if err := os.Symlink(filepath.Join(t.TempDir(), "x"), path); err == nil {
		if _, err := Lock(path); err == nil {
			t.Error("a link was followed")
		}
	}
}

// TestPrepare: several files appear together, and one that is discarded leaves nothing.
func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	a, err := Prepare(filepath.Join(dir, "a"), put("a"))
	b, err2 := Prepare(filepath.Join(dir, "b"), put("b"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if exists := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }; exists("a") || exists("b") {
		t.Error("named too early")
	}
	b.Discard()
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); len(got) != 1 || got[0] != "a" {
		t.Errorf("holds %q", got)
	}
}
