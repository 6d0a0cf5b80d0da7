package pull

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// blob is a model's content.
var blob = func() []byte {
	b := make([]byte, 3<<20)
	for i := range b {
		b[i] = byte(i*i>>7 ^ i)
	}
	copy(b, "GGUF")
	return b
}()

// fixedTime is when every served file was changed last.
var fixedTime = time.Unix(1700000000, 0)

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// fileServer serves one content with ranges, and can misbehave.
type fileServer struct {
	mu       sync.Mutex
	data     []byte
	etag     string
	cut      int // bytes after which the next answers break off; 0 is never
	cuts     int // how many answers still break off
	status   int // answers with this if not 0
	noRange  bool
	kind     string   // the content type
	claim    int      // the length told, if not 0
	accept   string   // the Accept-Ranges told
	hang     bool     // sends the head and then nothing
	requests []string // "GET bytes=5-" and the like
	auth     string   // the Authorization last seen
}

func (s *fileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.Header.Get("Range")))
	s.auth = r.Header.Get("Authorization")
	if s.status != 0 {
		w.WriteHeader(s.status)
		return
	}
	if s.etag != "" {
		w.Header().Set("ETag", s.etag)
	}
	w.Header().Set("Content-Type", s.kind)
	body, code := s.data, http.StatusOK
	if from, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && !s.noRange {
		n, _ := strconv.Atoi(strings.TrimSuffix(from, "-"))
		if v := r.Header.Get("If-Range"); v == "" || v == s.etag {
			if n >= len(body) {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", len(body)))
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", n, len(body)-1, len(body)))
			body, code = body[n:], http.StatusPartialContent
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if s.claim > 0 {
		w.Header().Set("Content-Length", strconv.Itoa(s.claim))
	}
	if s.accept != "" {
		w.Header().Set("Accept-Ranges", s.accept)
	}
	w.WriteHeader(code)
	if s.hang {
		w.(http.Flusher).Flush()
		s.hang = false
		<-r.Context().Done()
		return
	}
	if s.cuts > 0 && s.cut < len(body) {
		s.cuts--
		w.Write(body[:s.cut])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w.Write(body)
}

func (s *fileServer) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.requests
	s.requests = nil
	return r
}

// lab is a cache, an environment and options for a test.
type lab struct {
	t     *testing.T
	env   map[string]string
	o     Options
	notes []string
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, env: map[string]string{"PIP_CONFIG_FILE": os.DevNull}}
	l.o = Options{
		Cache:  t.TempDir(),
		Getenv: func(k string) string { return l.env[k] },
		Note:   func(s string) { l.notes = append(l.notes, s) },
		pip:    []string{"no-such-program-as-pip"},
		wait:   func(int) time.Duration { return 0 },
		Client: &http.Client{Transport: &http.Transport{}},
	}
	return l
}

func (l *lab) resolve(ref string) (string, error) { return Resolve(l.t.Context(), ref, l.o) }

func (l *lab) must(ref string, want []byte) string {
	l.t.Helper()
	path, err := l.resolve(ref)
	if err != nil {
		l.t.Fatalf("%s: %v", ref, err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		l.t.Fatalf("%s: %d bytes, %v; not the content wanted", ref, len(got), err)
	}
	return path
}

// leftovers lists what lies in the cache beside models, stamps and locks.
func (l *lab) leftovers() (files []string) {
	filepath.Walk(l.o.Cache, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && (strings.Contains(path, partialSuffix) || strings.Contains(path, ".unpack") || strings.HasSuffix(path, ".whl")) {
			files = append(files, filepath.Base(path))
		}
		return nil
	})
	return files
}

func serve(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// makeWheel returns a wheel with the members and a RECORD of them; a name in
// wrong gets another hash there.
func makeWheel(t *testing.T, dist string, members map[string][]byte, wrong string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	record := ""
	for name, data := range members {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(data)
		sum := sha256.Sum256(data)
		if name == wrong {
			sum[0]++
		}
		record += fmt.Sprintf("%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(data))
	}
	w, err := z.Create(dist + ".dist-info/RECORD")
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte(record))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// index serves packages as a simple index does, in JSON or HTML.
type index struct {
	html   bool
	noHash bool
	wheels map[string]*fileServer // by file name
	user   string                 // if set, the user name that requests must carry
	asked  []string
}

func (x *index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if user, _, _ := r.BasicAuth(); user != x.user {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if file, ok := strings.CutPrefix(r.URL.Path, "/files/"); ok {
		x.wheels[file].ServeHTTP(w, r)
		return
	}
	x.asked = append(x.asked, r.URL.Path)
	pkg := strings.Trim(strings.TrimPrefix(r.URL.Path, "/simple/"), "/")
	var rows []string
	for file, s := range x.wheels {
		if name, _, ok := wheelName(file); !ok || name != pkg {
			continue
		}
		sum := sumOf(s.data)
		switch {
		case x.html && x.noHash:
			rows = append(rows, fmt.Sprintf(`<a href="../../files/%s">%s</a>`, file, file))
		case x.html:
			rows = append(rows, fmt.Sprintf(`<a href="../../files/%s#sha256=%s" data-requires-python=">=3.9">%s</a><br/>`, file, sum, file))
		default:
			rows = append(rows, fmt.Sprintf(`{"filename":%q,"url":"../../files/%s","hashes":{"sha256":%q},"yanked":false,"size":%d}`, file, file, sum, len(s.data)))
		}
	}
	if len(rows) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if x.html {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!DOCTYPE html><html><body><!-- <a href='x'>no</a> -->%s</body></html>", strings.Join(rows, "\n"))
		return
	}
	w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
	fmt.Fprintf(w, `{"meta":{"api-version":"1.1"},"files":[%s]}`, strings.Join(rows, ","))
}
