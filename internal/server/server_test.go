package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

const template = `{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('tools are unknown here') }}{% endif %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// tale is what the test model says: words, a rune in two tokens, another in four.
var tale = []string{"Once", " upon", " a", " time", ",", " caf", "\xc3", "\xa9", " cat", " \xf0", "\x9f", "\x98", "\xba", " sat", ".", "<|im_end|>"}

// service loads a tiny model.
func service(t testing.TB) *complete.Service {
	t.Helper()
	o := modeltest.Options{Story: tale, Template: template, Context: 256}
	m, err := model.Open(modeltest.Write(t, t.TempDir(), o), model.Options{Threads: 1, Rows: 64, Seqs: 16})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(); err != nil {
		m.Close()
		t.Fatal(err)
	}
	s, err := complete.New(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func serve(t testing.TB, s *complete.Service, o Options) (*Server, *httptest.Server) {
	t.Helper()
	v := New(s, o)
	h := httptest.NewUnstartedServer(v)
	h.Config = v.HTTP()
	h.Start()
	t.Cleanup(h.Close)
	return v, h
}

// exchange is one request of a transcript and what came back.
type exchange struct{ request, answer string }

var split = regexp.MustCompile(`(?m)^--- .*\n`)

// readTranscript cuts a file into exchanges, each begun by a line "=== title".
func readTranscript(text string) (head string, list []exchange) {
	parts := strings.Split(text, "\n=== ")
	for i, p := range parts {
		if i == 0 {
			head = p
			continue
		}
		at := split.FindStringIndex(p)
		if at == nil {
			at = []int{len(p), len(p)}
		}
		list = append(list, exchange{p[:at[0]], strings.TrimRight(p[at[0]:], "\n")})
	}
	return head, list
}

// send makes the request that an exchange describes: a title, a line with
// method and path, headers, and the body after them.
func send(t *testing.T, base, request string) string {
	lines := strings.SplitN(request, "\n", 3)
	method, path, _ := strings.Cut(lines[1], " ")
	body := ""
	if len(lines) > 2 {
		body = lines[2]
	}
	r, err := http.NewRequest(method, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for {
		line, rest, _ := strings.Cut(body, "\n")
		name, value, ok := strings.Cut(line, ": ")
		if !ok || strings.ContainsAny(name, `{" `) {
			break
		}
		r.Header.Set(name, value)
		body = rest
	}
	if body = strings.TrimSpace(body); body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %d", resp.StatusCode)
	for _, h := range []string{"Content-Type", "Allow", "Retry-After", "X-Should-Retry", "Access-Control-Allow-Origin", "Access-Control-Allow-Headers", "Access-Control-Allow-Methods"} {
		if x := resp.Header.Get(h); x != "" {
			fmt.Fprintf(&out, " · %s: %s", h, x)
		}
	}
	out.WriteString("\n" + normal(string(raw)))
	return strings.TrimRight(out.String(), "\n")
}

// normal makes an answer repeatable: ids and times go, numbers are rounded.
func normal(raw string) string {
	var out strings.Builder
	for line := range strings.Lines(raw) {
		line = strings.TrimRight(line, "\n")
		prefix := ""
		if rest, ok := strings.CutPrefix(line, "data: "); ok {
			prefix, line = "data: ", rest
		}
		var v any
		if json.Unmarshal([]byte(line), &v) == nil {
			b, _ := json.Marshal(tidy("", v))
			line = string(b)
			if prefix == "" {
				b, _ = json.MarshalIndent(tidy("", v), "", " ")
				line = string(b)
			}
		}
		out.WriteString(prefix + line + "\n")
	}
	return out.String()
}

func tidy(key string, v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k := range x {
			x[k] = tidy(k, x[k])
		}
	case []any:
		for i := range x {
			x[i] = tidy(key, x[i])
		}
	case string:
		if key == "id" && x != "tiny" {
			return x[:strings.IndexByte(x, '-')+1] + "ID"
		}
	case float64:
		if key == "created" {
			return "TIME"
		}
		return math.Round(x*100)/100 + 0
	}
	return v
}

// TestTranscripts replays testdata/*.txt against a server.
func TestTranscripts(t *testing.T) {
	_, h := serve(t, service(t), Options{Name: "tiny", Aliases: []string{"org/tiny"}, Version: "test", MaxBody: 8000})
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d transcripts: %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, list := readTranscript(string(raw))
		var out bytes.Buffer
		out.WriteString(head)
		for _, x := range list {
			got := send(t, h.URL, x.request)
			title, _, _ := strings.Cut(x.request, "\n")
			if got != x.answer && !*update {
				t.Errorf("%s: %s: got\n%s\nwant\n%s", file, title, got, x.answer)
			}
			fmt.Fprintf(&out, "\n=== %s%s\n", x.request, got)
		}
		if *update {
			if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// idle waits until no request holds anything.
func idle(t *testing.T, s *complete.Service) {
	t.Helper()
	for range 3000 {
		if st := s.Engine.Stats(); st.Running+st.Waiting+st.BlocksUsed == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("something is held: %+v", s.Engine.Stats())
}
