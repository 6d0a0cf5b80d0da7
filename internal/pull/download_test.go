package pull

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestURL(t *testing.T) {
	s := &fileServer{data: blob, etag: `"v1"`}
	base := serve(t, s)
	l := newLab(t)
	path := l.must(base+"/dir/tiny.gguf?x=1#sha256="+strings.ToUpper(sumOf(blob)), blob)
	if filepath.Base(path) != "tiny.gguf" {
		t.Errorf("stored as %s", path)
	}
	s.take()
	l.o.Offline = true
	l.must(base+"/dir/tiny.gguf?x=1#sha256="+sumOf(blob), blob)
	if r := s.take(); len(r) != 0 {
		t.Errorf("the cache was not used: %v", r)
	}
	if left := l.leftovers(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestResumeWithinACall(t *testing.T) {
	s := &fileServer{data: blob, etag: `"v1"`, cut: 1 << 20, cuts: 2}
	l := newLab(t)
	l.must(serve(t, s)+"/m.gguf", blob)
	want := []string{"GET", "GET bytes=1048576-", "GET bytes=2097152-"}
	if r := s.take(); !slices.Equal(r, want) {
		t.Errorf("requests %q, want %q", r, want)
	}
}

func TestResumeAfterAKill(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *fileServer)
		url    string
		want   []string
		data   []byte
	}{
		{"same file", func(*fileServer) {}, "/m.gguf", []string{"GET bytes=1048576-"}, blob},
		{"the file changed", func(s *fileServer) { s.data, s.etag = blob[:2<<20], `"v2"` }, "/m.gguf", []string{"GET bytes=1048576-"}, blob[:2<<20]},
		{"no ranges", func(s *fileServer) { s.noRange = true }, "/m.gguf", []string{"GET bytes=1048576-"}, blob},
		{"the file shrank", func(s *fileServer) { s.data = blob[:1<<20] }, "/m.gguf", []string{"GET bytes=1048576-", "GET"}, blob[:1<<20]},
	} {
		s := &fileServer{data: blob, etag: `"v1"`, cut: 1 << 20, cuts: 1}
		base := serve(t, s)
		l := newLab(t)
		ctx, cancel := context.WithCancel(t.Context())
		l.o.wait = func(int) time.Duration { cancel(); return time.Hour } // the kill
		if _, err := Resolve(ctx, base+c.url, l.o); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", c.name, err)
		}
		if left := l.leftovers(); !slices.Contains(left, "m.gguf.partial") {
			t.Fatalf("%s: nothing was kept: %v", c.name, left)
		}
		s.take()
		c.change(s)
		l.o.wait = func(int) time.Duration { return 0 }
		l.must(base+c.url, c.data)
		if r := s.take(); !slices.Equal(r, c.want) {
			t.Errorf("%s: requests %q, want %q", c.name, r, c.want)
		}
	}
}

// A run may be killed between the last byte and the renaming.
func TestCompletePartial(t *testing.T) {
	s := &fileServer{data: blob, etag: `"v1"`}
	base := serve(t, s)
	l := newLab(t)
	path := l.must(base+"/m", blob)
	s.take()
	os.Rename(path, path+partialSuffix)
	os.WriteFile(path+partialSuffix+".json", []byte(`{"url":"`+base+`/m","validator":"\"v1\"","size":3145728}`), 0o644)
	l.must(base+"/m", blob)
	if r := s.take(); !slices.Equal(r, []string{"GET bytes=3145728-"}) {
		t.Errorf("requests %q", r)
	}
}

func TestPartialThatLies(t *testing.T) {
	s := &fileServer{data: blob}
	base := serve(t, s)
	l := newLab(t)
	ref := base + "/m.gguf#sha256=" + sumOf(blob)
	tg, err := parseURL(ref)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPuller(l.o)
	if err != nil {
		t.Fatal(err)
	}
	dest := p.path(tg)
	os.MkdirAll(filepath.Dir(dest), 0o755)
	os.WriteFile(dest+partialSuffix, []byte("garbage"), 0o644)
	os.WriteFile(dest+partialSuffix+".json", []byte(`{"url":"`+base+`/m.gguf","sha256":"`+sumOf(blob)+`","size":3145728}`), 0o644)
	if _, err := l.resolve(ref); !errors.Is(err, ErrHash) {
		t.Fatalf("%v, want ErrHash", err)
	}
	l.must(ref, blob) // thrown away, so the next run succeeds
	os.WriteFile(dest+partialSuffix+".json", []byte(`{]`), 0o644)
}

func TestDownloadErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *fileServer
		frag string
		want error
		tell string
	}{
		{"wrong hash", &fileServer{data: blob}, "#sha256=" + strings.Repeat("0", 64), ErrHash, "SHA-256"},
		{"missing", &fileServer{status: 404}, "", ErrNotFound, "404"},
		{"refused", &fileServer{status: 403}, "", ErrDenied, "403"},
		{"broken for good", &fileServer{data: blob, cut: 0, cuts: 99}, "", nil, "gave up after 5 attempts"},
		{"overloaded", &fileServer{status: 503}, "", nil, "gave up after 5 attempts"},
	} {
		l := newLab(t)
		_, err := l.resolve(serve(t, c.s) + "/m" + c.frag)
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.tell) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestStall(t *testing.T) {
	s := &fileServer{data: blob, hang: true}
	l := newLab(t)
	l.o.stall = 300 * time.Millisecond // long enough for a busy machine to answer in
	l.must(serve(t, s)+"/m", blob)
}

func TestCredentialsAreNotTold(t *testing.T) {
	l := newLab(t)
	_, err := l.resolve("http://user:secret@127.0.0.1:1/m?token=secret")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error: %v", err)
	}
	for _, n := range l.notes {
		if strings.Contains(n, "secret") {
			t.Errorf("note: %s", n)
		}
	}
}

func TestRedirections(t *testing.T) {
	via := func(s string) *http.Request { r, _ := http.NewRequest("GET", s, nil); return r }
	if err := safeRedirect(via("http://a/x"), []*http.Request{via("https://a/x")}); err == nil {
		t.Error("a redirection from https to http is followed")
	}
	if err := safeRedirect(via("https://b/x"), []*http.Request{via("https://a/x")}); err != nil {
		t.Error(err)
	}
	if err := safeRedirect(via("https://b/x"), make([]*http.Request, 10)); err == nil {
		t.Error("an endless chain is followed")
	}
}

func TestTwoAtOnce(t *testing.T) {
	s := &fileServer{data: blob}
	base := serve(t, s)
	l := newLab(t)
	l.o.Note = nil
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := Resolve(t.Context(), base+"/m", l.o); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if r := s.take(); len(r) != 1 {
		t.Errorf("fetched %d times", len(r))
	}
}

func TestDiskFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	defer full.Close()
	p, err := newPuller(newLab(t).o)
	if err != nil {
		t.Fatal(err)
	}
	tr := &transfer{p: p, path: "x.partial", f: full, h: nopHash{}, meter: newMeter(nil, "x", "fetching", 0, 0)}
	err = tr.write(make([]byte, 100))
	if !errors.Is(err, ErrDiskFull) || transient(err) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("%v", err)
	}
}

type nopHash struct{}

func (nopHash) Write(b []byte) (int, error) { return len(b), nil }
func (nopHash) Sum(b []byte) []byte         { return b }
func (nopHash) Reset()                      {}
func (nopHash) Size() int                   { return 0 }
func (nopHash) BlockSize() int              { return 1 }

func TestContentRange(t *testing.T) {
	for s, want := range map[string][2]int64{
		"bytes 5-9/10": {5, 10}, "bytes */10": {-1, 10}, "bytes 5-9/*": {5, -1}, "": {-1, -1},
		"bytes -5-/1": {-1, 1}, "items 1-2/3": {-1, -1}, "bytes 99999999999999999999-/5": {-1, 5},
	} {
		if a, b := contentRange(s); a != want[0] || b != want[1] {
			t.Errorf("%q: %d, %d; want %v", s, a, b, want)
		}
	}
}

// TestRefusedConnection: where nobody listens, one more attempt is enough.
func TestRefusedConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	pauses := 0
	_, err = Resolve(context.Background(), "http://"+l.Addr().String()+"/m.gguf", Options{Cache: t.TempDir(), Getenv: func(string) string { return "" },
		wait: func(int) time.Duration { pauses++; return 0 }})
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "gave up after 2 attempts") || pauses != 1 {
		t.Errorf("%d pauses, %v", pauses, err)
	}
}
