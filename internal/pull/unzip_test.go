package pull

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func writeZip(t *testing.T, path string, edit func(*zip.Writer)) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	edit(z)
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, z *zip.Writer, name, text string) {
	t.Helper()
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// zipped is the target of the archives here, whose lock they are unpacked under.
var zipped = target{label: "m.zip", dest: "m.zip"}

// TestUnzipsOnce: of several that want a folder at once, one unpacks it, and
// all find it whole; a folder without the mark of its archive is made anew.
func TestUnzipsOnce(t *testing.T) {
	cache, path := t.TempDir(), ""
	const files = 200
	open := func(note func(string)) *puller {
		p, err := newPuller(Options{Cache: cache, Note: note})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	path = filepath.Join(cache, "m.zip")
	writeZip(t, path, func(z *zip.Writer) {
		for i := range files {
			put(t, z, fmt.Sprintf("f%d", i), "x")
		}
	})
	whole := func() error {
		dir, err := open(nil).unzipped(context.Background(), path, zipped)
		if err != nil {
			return err
		}
		list, err := os.ReadDir(dir)
		if err == nil && len(list) != files {
			err = fmt.Errorf("%d files of %d", len(list), files)
		}
		return err
	}
	for round := range 3 {
		errs := make(chan error)
		for range 4 {
			go func() { errs <- whole() }()
		}
		for range 4 {
			if err := <-errs; err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		switch round {
		case 0: // as a process leaves it that was ended
			os.Remove(filepath.Join(path+unpackedSuffix, "f7"))
			os.Remove(path + unpackedSuffix + wholeSuffix)
		case 1: // another archive in its place
			if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			os.Remove(filepath.Join(path+unpackedSuffix, "f7"))
		}
	}
	p := open(nil)
	unlock, err := p.lock(context.Background(), zipped)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	os.Remove(path + unpackedSuffix + wholeSuffix)
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := open(func(string) { cancel() }).unzipped(ctx, path, zipped); !errors.Is(err, context.Canceled) {
		t.Errorf("unpacked beside another: %v", err)
	}
}

func TestUnzipped(t *testing.T) {
	p, err := newPuller(Options{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.Cache, "m.zip")
	writeZip(t, path, func(z *zip.Writer) { put(t, z, "m/config.json", "{}"); put(t, z, "m/1_Pooling/config.json", "{}") })
	for range 2 { // the second time it is there
		dir, err := p.unzipped(context.Background(), path, zipped)
		if err != nil || dir != filepath.Join(path+".d", "m") {
			t.Fatalf("%s: %v", dir, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "1_Pooling", "config.json")); err != nil {
			t.Error(err)
		}
	}
}

func TestUnzipRefuses(t *testing.T) {
	p, err := newPuller(Options{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*zip.Writer){
		"leads out":     func(z *zip.Writer) { put(t, z, "../evil", "x") },
		"leads out of":  func(z *zip.Writer) { put(t, z, "/etc/evil", "x") },
		"leads out of ": func(z *zip.Writer) { put(t, z, `a\..\..\evil`, "x") },
		"stands twice":  func(z *zip.Writer) { put(t, z, "a", "x"); put(t, z, "A", "y") },
		"neither a file": func(z *zip.Writer) {
			h := &zip.FileHeader{Name: "link"}
			h.SetMode(os.ModeSymlink | 0o777)
			w, err := z.CreateHeader(h)
			if err == nil {
				_, err = w.Write([]byte("/etc/passwd"))
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"would become more": func(z *zip.Writer) {
			h := &zip.FileHeader{Name: "bomb", Method: zip.Store, UncompressedSize64: 1 << 40, CompressedSize64: 0}
			if _, err := z.CreateRaw(h); err != nil {
				t.Fatal(err)
			}
		},
	} {
		path := filepath.Join(p.Cache, "bad.zip")
		writeZip(t, path, edit)
		_, err := p.unzipped(context.Background(), path, zipped)
		if err == nil || !errors.Is(err, ErrArchive) || !strings.Contains(err.Error(), strings.TrimSpace(name)) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(path + ".d"); err == nil {
			t.Errorf("%s: a folder is left", name)
		}
	}
}
