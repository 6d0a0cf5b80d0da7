package pull

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestCheckHead(t *testing.T) {
	const page = "\n<!DOCTYPE html>\n<title>Log in</title>"
	tensors := "\x02\x00\x00\x00\x00\x00\x00\x00{}"
	for _, c := range []struct {
		name, kind, head string
		hashed           bool
		tell             string // "" is a model
	}{
		{"m.gguf", "application/octet-stream", "GGUF\x03", false, ""},
		{"m.gguf", "text/html", "GGUF\x03", false, ""}, // a server that knows no better
		{"m.gguf", "", page, false, `web page that begins "<!DOCTYPE html>"`},
		{"m.gguf", "text/html; charset=utf-8", "<body>", false, `begins "<body>"`},
		{"m.gguf", "", page, true, "web page"},
		{"m.gguf", "application/json", `{"error": 1}`, false, `GGUF file does not begin "{\"error\": 1}"`},
		{"m.gguf", "", "other", true, ""}, // the hash decides
		{"m.gguf", "", "", false, "empty"},
		{"M.SAFETENSORS", "", tensors, false, ""},
		{"m.safetensors", "", "GGUF", false, "safetensors file does not begin"},
		{"m.safetensors", "", "\xff\xff\xff\xff\x00\x00\x00\x00{", false, "safetensors"},
		{"m.whl", "", "PK\x03\x04", false, ""},
		{"m.whl", "", "PK", false, "zip"},
		{"tokenizer.json", "text/plain", "{}", false, ""},
		{"tokenizer.json", "text/html", "{}", false, "web page"},
		{"m", "", "too many requests\n", false, `the text "too many requests"`},
		{"m", "", "\x00\x01", false, ""},
		{"m.bin", "", "", false, ""},
		{"m.gguf", "", strings.Repeat("é", 100), false, strings.Repeat("é", 79) + "…"},
	} {
		err := checkHead([]byte(c.head), c.name, c.kind, c.hashed, true)
		if (err == nil) != (c.tell == "") || (err != nil && (!errors.Is(err, ErrHash) || !strings.Contains(err.Error(), c.tell))) {
			t.Errorf("%s, %q, %q: %v", c.name, c.kind, c.head, err)
		}
	}
}

// What is no model is refused, leaves nothing, and the next run asks again.
func TestWebPageIsNotKept(t *testing.T) {
	for _, data := range []string{"<html>log in</html>", "<HTML>" + strings.Repeat("long ", 1000)} {
		s := &fileServer{data: []byte(data), kind: "text/html", etag: `"v"`}
		l := newLab(t)
		ref := serve(t, s) + "/m.gguf"
		if _, err := l.resolve(ref); !errors.Is(err, ErrHash) || !strings.Contains(err.Error(), "web page") {
			t.Fatalf("%v", err)
		}
		if left := l.leftovers(); len(left) != 0 || len(s.take()) != 1 {
			t.Errorf("left %v", left)
		}
		s.data, s.kind = blob, ""
		l.must(ref, blob)
	}
}

// A page that an earlier version took for a model is fetched anew.
func TestCachedWebPage(t *testing.T) {
	s := &fileServer{data: blob}
	l := newLab(t)
	ref := serve(t, s) + "/m.gguf"
	path := l.must(ref, blob)
	page := []byte("<!doctype html>")
	os.WriteFile(path, page, 0o644)
	if err := writeStamp(path, stamp{Ref: ref, SHA256: sumOf(page)}); err != nil {
		t.Fatal(err)
	}
	l.o.Offline = true
	if _, err := l.resolve(ref); !errors.Is(err, ErrHash) {
		t.Errorf("offline: %v", err)
	}
	l.o.Offline = false
	l.must(ref, blob)
}

// TestNoLength serves without a length: in chunks, whose end shows, and up to
// the end of the connection, which may come early.
func TestNoLength(t *testing.T) {
	short, chunks := false, false
	base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := blob
		if short {
			body = blob[:1<<20]
		}
		if chunks {
			w.(http.Flusher).Flush()
			w.Write(body)
			if short {
				panic(http.ErrAbortHandler)
			}
			return
		}
		c, b, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintf(b, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
		b.Write(body)
		b.Flush()
	}))
	l := newLab(t)
	if _, err := l.resolve(base + "/m.gguf"); !errors.Is(err, errLength) || !strings.Contains(err.Error(), "#sha256=") {
		t.Errorf("up to the end of the connection: %v", err)
	}
	known := base + "/m.gguf#sha256=" + sumOf(blob)
	short = true
	if _, err := l.resolve(known); !errors.Is(err, ErrHash) {
		t.Errorf("cut short: %v", err)
	}
	short = false
	l.must(known, blob)
	l = newLab(t)
	short, chunks = true, true
	if _, err := l.resolve(base + "/m.gguf"); err == nil {
		t.Error("a cut answer in chunks is taken")
	}
	short = false
	l.must(base+"/m.gguf", blob)
}

func TestRefetch(t *testing.T) {
	s := &fileServer{data: blob}
	l := newLab(t)
	ref := serve(t, s) + "/m.gguf"
	path := l.must(ref, blob)
	if hint := Again(path, l.o); !strings.Contains(hint, path) || !strings.Contains(hint, "--refetch") {
		t.Errorf("hint %q", hint)
	}
	if hint := Again(os.DevNull, l.o); hint != "" {
		t.Errorf("outside the cache: %q", hint)
	}
	l.o.Refetch = true
	s.status = http.StatusNotFound
	if _, err := l.resolve(ref); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	l.o.Refetch = false
	l.must(ref, blob) // a failure leaves the old file
	l.o.Refetch = true
	s.status, s.data = 0, blob[:2<<20]
	l.must(ref, blob[:2<<20])
	l.o.Offline = true
	if _, err := l.resolve(ref); !errors.Is(err, ErrOffline) {
		t.Errorf("offline: %v", err)
	}
}
