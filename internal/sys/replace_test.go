package sys

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func put(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, stale := range []string{"a.0123abcd.partial", "a.0123abcd", "a.xyz.partial", "ab.0123abcd.partial"} {
		if err := os.WriteFile(filepath.Join(dir, stale), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"one", "two"} {
		if err := Replace(path, put(text)); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Errorf("holds %q, want %q", got, text)
		}
	}
	boom := errors.New("boom")
	err := Replace(path, func(w io.Writer) error { io.WriteString(w, "part"); return boom })
	if got, _ := os.ReadFile(path); !errors.Is(err, boom) || string(got) != "two" {
		t.Errorf("after %v it holds %q", err, got)
	}
	if got := names(t, dir); len(got) != 4 { // a and the three that are not its own
		t.Errorf("left: %q", got)
	}
	if err := Replace(dir, put("")); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
}

// TestReplaceKeepsRunning leaves what another run is writing.
func TestReplaceKeepsRunning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	err := Replace(path, func(w io.Writer) error {
		if err := Replace(path, put("inner")); err != nil {
			t.Error(err)
		}
		return put("outer")(w)
	})
	if got, _ := os.ReadFile(path); err != nil || string(got) != "outer" {
		t.Errorf("holds %q: %v", got, err)
	}
}

func TestReplaceLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join("sub", "second"), link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "sub", "second")); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"made", "replaced"} { // at first the link leads nowhere
		if err := Replace(link, put(text)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(filepath.Join(dir, "sub", "real"))
		if got, _ := os.ReadFile(link); err != nil || !info.Mode().IsRegular() || string(got) != text {
			t.Errorf("holds %q: %v", got, err)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if err := Replace(loop, put("")); err == nil {
		t.Error("a link to itself is written")
	}
	if runtime.GOOS == "linux" {
		if err := Replace("/dev/null", put("")); !errors.Is(err, ErrNotRegular) {
			t.Errorf("a device: %v", err)
		}
	}
}

// TestReplaceTogether: many writers of one file all succeed, and leave nothing but
// one whole file.
func TestReplaceTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	var writers sync.WaitGroup
	for i := range 16 {
		writers.Go(func() {
			for range 40 {
				want := strings.Repeat(string(rune('a'+i)), 100+i)
				if err := Replace(path, put(want)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	got, err := os.ReadFile(path)
	if err != nil || len(got) < 100 || len(got) != 100+int(got[0]-'a') || strings.Trim(string(got), string(got[0])) != "" {
		t.Errorf("holds %q, %v", got, err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}
