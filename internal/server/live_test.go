package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
)

// endless loads a model whose answers only end with a context of 20000 tokens.
func endless(t *testing.T, seqs, queue int) *complete.Service {
	t.Helper()
	path := modeltest.Write(t, t.TempDir(), modeltest.Options{Story: []string{"Row", " row", " row,"}, Template: template, Context: 20000})
	m, err := model.Open(path, model.Options{Threads: 1, Rows: 32, Seqs: seqs, Context: 20000})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(); err != nil {
		m.Close()
		t.Fatal(err)
	}
	s, err := complete.New(m, queue)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// post begins a chat request; extra are further fields.
func post(t *testing.T, ctx context.Context, base, extra string) *http.Response {
	t.Helper()
	body := `{"model": "tiny", "messages": [{"role": "user", "content": "Hi"}]` + extra + `}`
	r, err := http.NewRequestWithContext(ctx, "POST", base+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	return resp
}

// running waits until n sequences are computed.
func running(t *testing.T, s *complete.Service, n int) {
	t.Helper()
	for range 5000 {
		if s.Engine.Stats().Running == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%d run, want %d", s.Engine.Stats().Running, n)
}

// TestDisconnect: a client that goes away frees all it holds, whether it
// streams, waits for the whole answer, or waits in the queue.
func TestDisconnect(t *testing.T) {
	s := endless(t, 3, 0)
	_, h := serve(t, s, Options{Name: "tiny"})
	for round, extra := range []string{`, "stream": true`, `, "n": 2`, `, "stream": true, "n": 3`} {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if resp := post(t, ctx, h.URL, extra); resp != nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		}
		for i := 0; s.Engine.Stats().Requests < int64(3+3*round) || s.Engine.Stats().Running < 3; i++ {
			if i > 5000 {
				t.Fatal("nothing runs")
			}
			time.Sleep(time.Millisecond)
		}
		cancel()
		wg.Wait()
		idle(t, s)
	}
	if st := s.Engine.Stats(); st.Cancelled != 9 {
		t.Errorf("%d were cancelled, want 9", st.Cancelled)
	}
}

// TestStopsReading: a client that takes nothing is given up.
func TestStopsReading(t *testing.T) {
	s := endless(t, 3, 0)
	_, h := serve(t, s, Options{Name: "tiny", Stall: 100 * time.Millisecond})
	c, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(1024)
	}
	body := `{"model": "tiny", "stream": true, "n": 3, "logprobs": true, "top_logprobs": 20, "messages": [{"role": "user", "content": "Hi"}]}`
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	running(t, s, 3)
	idle(t, s)
}

// TestKeepAlive: while a request waits, comments come that no parser takes for
// an event.
func TestKeepAlive(t *testing.T) {
	s := endless(t, 1, 0)
	_, h := serve(t, s, Options{Name: "tiny", KeepAlive: 20 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first := post(t, ctx, h.URL, `, "stream": true`)
	defer first.Body.Close()
	running(t, s, 1)
	second := post(t, context.Background(), h.URL, `, "stream": true, "max_tokens": 2`)
	defer second.Body.Close()
	r := bufio.NewReader(second.Body)
	comments := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ends with %v after %d comments", err, comments)
		}
		if line == ": waiting\n" {
			if comments++; comments == 3 {
				cancel()
			}
		} else if line == "data: [DONE]\n" {
			break
		} else if line != "\n" && !strings.HasPrefix(line, "data: {") {
			t.Errorf("line %q", line)
		}
	}
	if comments < 3 {
		t.Errorf("%d comments", comments)
	}
}

func TestQueueFull(t *testing.T) {
	s := endless(t, 1, 1)
	_, h := serve(t, s, Options{Name: "tiny"})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 2 {
		resp := post(t, ctx, h.URL, `, "stream": true`)
		defer resp.Body.Close()
		running(t, s, 1)
	}
	resp := post(t, context.Background(), h.URL, `, "stream": true`)
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !bytes.Contains(raw, []byte(`"queue_full"`)) {
		t.Errorf("a full queue gives %d %s", resp.StatusCode, raw)
	}
}

// TestSlow: neither headers nor bodies that drip hold a connection for long.
func TestSlow(t *testing.T) {
	v := New(service(t), Options{Name: "tiny", BodyTime: 400 * time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := v.HTTP()
	srv.ReadHeaderTimeout = time.Second // a busy machine is not slow for so long
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	for text, want := range map[string]string{
		"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Slow: ":                          "",
		"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{\"mod": "408",
		"GET /health HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", 30000) + "\r\n":              "431",
	} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		go func() { _, _ = io.WriteString(c, text) }()
		raw, err := io.ReadAll(c)
		if want != "" && !bytes.Contains(raw, []byte(" "+want+" ")) || want == "" && err != nil {
			t.Errorf("%.60q… gives %q, %v", text, raw, err)
		}
		c.Close()
	}
	// The deadline of a body does not outlive it.
	body := `{"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}`
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for range 2 {
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		time.Sleep(v.o.BodyTime + 50*time.Millisecond)
	}
}

// TestDrain: after the signal requests under way end as they should while
// /health and new ones get 503; what lasts beyond the grace is cut off, and then
// nobody listens.
func TestDrain(t *testing.T) {
	for _, c := range []struct {
		tokens int
		grace  time.Duration
		whole  bool
	}{{3000, 20 * time.Second, true}, {19000, 50 * time.Millisecond, false}} {
		s := endless(t, 2, 0)
		var words bytes.Buffer
		v := New(s, Options{Name: "tiny", Log: log.New(&words, "", 0)})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- v.Serve(ctx, l, c.grace) }()
		base := "http://" + l.Addr().String()
		resp := post(t, context.Background(), base, fmt.Sprintf(`, "stream": true, "max_tokens": %d`, c.tokens))
		cancel()
		if c.whole {
			refusesAll(t, v, base)
		}
		raw, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if whole := strings.HasSuffix(string(raw), "data: [DONE]\n\n"); whole != c.whole {
			t.Errorf("grace %v: the stream is whole: %t, %v", c.grace, whole, err)
		}
		if told := strings.HasSuffix(string(raw), "\n\n") && strings.Contains(string(raw), `data: {"error":{"code":null,"message":"the server is shutting down"`); told == c.whole {
			t.Errorf("grace %v: the stream ends with %q", c.grace, raw[max(0, len(raw)-200):])
		}
		if err := <-done; err != nil {
			t.Errorf("grace %v: %v", c.grace, err)
		}
		if said := words.String(); !strings.Contains(said, "under way (1) have "+c.grace.String()+" to finish") || !strings.Contains(said, "a second signal ends it at once") {
			t.Errorf("grace %v: the log says %q", c.grace, said)
		}
		if said := strings.Contains(words.String(), "are cut off"); said == c.whole {
			t.Errorf("grace %v: the log says %q", c.grace, words.String())
		}
		if _, err := http.Get(base + "/health"); err == nil {
			t.Error("somebody still answers")
		}
		idle(t, s)
	}
}

// refusesAll: an ending server tells so at its door while an answer runs.
func refusesAll(t *testing.T, v *Server, base string) {
	t.Helper()
	for !v.drain.Load() {
		time.Sleep(time.Millisecond)
	}
	for path, want := range map[string]int{"/health": 503, "/readyz": 503, "/livez": 200, "/metrics": 200} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	resp := post(t, context.Background(), base, "")
	resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !resp.Close {
		t.Errorf("a new request: %d %v, closes: %t", resp.StatusCode, resp.Header, resp.Close)
	}
}

// TestClientLeft: a client that leaves is told in the log as that, and not as a
// mistake of its request.
func TestClientLeft(t *testing.T) {
	for _, extra := range []string{"", `, "stream": true`} {
		var words syncBuffer
		s := endless(t, 1, 0)
		_, h := serve(t, s, Options{Name: "tiny", Log: log.New(&words, "", 0)})
		ctx, cancel := context.WithCancel(context.Background())
		go func() { running(t, s, 1); cancel() }()
		body := `{"model": "tiny", "messages": [{"role": "user", "content": "Hi"}]` + extra + `}`
		r, err := http.NewRequestWithContext(ctx, "POST", h.URL+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		idle(t, s)
		for i := 0; i < 2000 && words.String() == ""; i++ {
			time.Sleep(time.Millisecond)
		}
		if said := words.String(); !strings.Contains(said, "the client left") || strings.Contains(said, "400") {
			t.Errorf("%q: the log says %q", extra, said)
		}
	}
}

// syncBuffer is a buffer for a log that others read meanwhile.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestShutdownTold: requests that the engine's end catches get an error in
// their stream, or 503.
func TestShutdownTold(t *testing.T) {
	s := endless(t, 2, 0)
	v, h := serve(t, s, Options{Name: "tiny"})
	resp := post(t, context.Background(), h.URL, `, "stream": true`)
	defer resp.Body.Close()
	running(t, s, 1)
	s.Engine.Close()
	raw, _ := io.ReadAll(resp.Body)
	if !bytes.HasSuffix(raw, []byte("\n\n")) || !bytes.Contains(raw, []byte(`data: {"error":{"code":null,"message":"the server is shutting down"`)) {
		t.Errorf("the stream ends with %q", raw[max(0, len(raw)-200):])
	}
	if resp := post(t, context.Background(), h.URL, ""); resp.StatusCode != 503 {
		t.Errorf("status %d", resp.StatusCode)
	}
	v.Drain()
	if resp, err := http.Get(h.URL + "/health"); err != nil || resp.StatusCode != 503 {
		t.Errorf("health: %v %v", resp.StatusCode, err)
	}
}

// TestNonFinite: weights that are no numbers end each request with an error
// that names the layer; the server goes on.
func TestNonFinite(t *testing.T) {
	for tensor, where := range map[string]string{"blk.1.ffn_down.weight": "layer 1", "token_embd.weight": "before the layers", "output.weight": "after the layers"} {
		t.Run(tensor, func(t *testing.T) { nonFinite(t, tensor, where) })
	}
}

func nonFinite(t *testing.T, tensor, where string) {
	path := modeltest.Write(t, t.TempDir(), modeltest.Options{Template: template, Edit: func(name string, values []float32) {
		if name == tensor {
			for i := 7; i < len(values); i += 8 {
				values[i] = float32(math.Inf(1))
			}
		}
	}})
	m, err := model.Open(path, model.Options{Threads: 1})
	if err == nil {
		err = m.Load()
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := complete.New(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	_, h := serve(t, s, Options{Name: "tiny"})
	for extra, want := range map[string]string{"": `{"error":{`, `, "n": 3`: `{"error":{`, `, "stream": true, "n": 2`: `data: {"error":{`} {
		resp := post(t, context.Background(), h.URL, extra)
		raw, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !bytes.Contains(raw, []byte(want)) || !bytes.Contains(raw, []byte("not finite")) || !bytes.Contains(raw, []byte(where)) || !bytes.Contains(raw, []byte("server_error")) {
			t.Errorf("%s gives %s", extra, raw)
		}
		if stream := strings.Contains(extra, "stream"); !stream && (resp.StatusCode != 500 || resp.Header.Get("X-Should-Retry") != "false") {
			t.Errorf("%s gives %d %v", extra, resp.StatusCode, resp.Header)
		}
	}
	idle(t, s)
}

// TestCrowd: 32 clients at once get the answers that each would get alone.
func TestCrowd(t *testing.T) {
	s := service(t)
	_, h := serve(t, s, Options{Name: "tiny"})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for range 3 {
				resp := post(t, context.Background(), h.URL, fmt.Sprintf(`, "temperature": 0, "max_tokens": %d, "n": %d`, 1+i%16, 1+i%3))
				var a struct {
					Choices []struct{ Message struct{ Content string } }
				}
				err := json.NewDecoder(resp.Body).Decode(&a)
				resp.Body.Close()
				if err != nil || len(a.Choices) != 1+i%3 {
					t.Errorf("client %d: %v, %d answers", i, err, len(a.Choices))
					continue
				}
				for _, c := range a.Choices {
					if !strings.HasPrefix("Once upon a time, café cat 😺 sat.", strings.TrimSuffix(c.Message.Content, "�")) {
						t.Errorf("client %d got %q", i, c.Message.Content)
					}
				}
			}
		})
	}
	wg.Wait()
	idle(t, s)
}

// TestSeed: a seed repeats an answer, its absence does not.
func TestSeed(t *testing.T) {
	_, h := serve(t, service(t), Options{Name: "tiny"})
	text := func(extra string) string {
		resp := post(t, context.Background(), h.URL, `, "temperature": 30, "top_p": 1, "max_tokens": 20`+extra)
		defer resp.Body.Close()
		var a struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
			t.Fatal(err)
		}
		return a.Choices[0].Message.Content
	}
	if a, b := text(`, "seed": 5`), text(`, "seed": 5`); a != b {
		t.Errorf("%q and %q", a, b)
	}
	first, same := text(``), 0
	for range 6 {
		if text(``) == first {
			same++
		}
	}
	if same == 6 {
		t.Errorf("seven times %q", first)
	}
}

// TestLog: unknown fields are told once; ids of requests are kept.
func TestLog(t *testing.T) {
	var buf bytes.Buffer
	var mu sync.Mutex
	_, h := serve(t, service(t), Options{Name: "tiny", Log: log.New(writer(func(b []byte) {
		mu.Lock()
		buf.Write(b)
		mu.Unlock()
	}), "", 0)})
	for range 2 {
		resp := post(t, context.Background(), h.URL, `, "max_tokens": 1, "dance": true, "user": "me", "Max_Tokens": 1`)
		resp.Body.Close()
	}
	r, _ := http.NewRequest("GET", h.URL+"/health", nil)
	r.Header.Set("X-Request-Id", "mine-7")
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.Header.Get("X-Request-Id") != "mine-7" {
		t.Errorf("%v %v", resp.Header, err)
	}
	said := func() string {
		mu.Lock()
		defer mu.Unlock()
		return buf.String()
	}
	soon(func() bool {
		return strings.Contains(said(), "GET /health 200") && strings.Count(said(), "POST /v1/chat/completions 200") == 2
	})
	if got := said(); strings.Count(got, `"dance"`) != 1 || strings.Contains(got, `"user"`) || strings.Count(got, "POST /v1/chat/completions 200") != 2 {
		t.Errorf("the log says %s", got)
	}
}

// soon waits for what happens right after an answer was read, as lines of the
// log; a busy machine takes its time.
func soon(ok func() bool) {
	for i := 0; i < 5000 && !ok(); i++ {
		time.Sleep(time.Millisecond)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func TestMetrics(t *testing.T) {
	_, h := serve(t, service(t), Options{Name: "tiny"})
	post(t, context.Background(), h.URL, `, "max_tokens": 4, "temperature": 0`).Body.Close()
	post(t, context.Background(), h.URL, `, "n": 0`).Body.Close()
	var raw []byte
	soon(func() bool {
		resp, err := http.Get(h.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, _ = io.ReadAll(resp.Body)
		return bytes.Contains(raw, []byte(`inferflow_http_responses_total{code="4xx"} 1`)) && bytes.Contains(raw, []byte("inferflow_kv_cache_usage 0\n"))
	})
	for _, want := range []string{"inferflow_requests_running 0\n", "inferflow_requests_waiting 0\n", "inferflow_kv_cache_usage 0\n", "inferflow_requests_total 1\n",
		"inferflow_generated_tokens_total 4\n", "inferflow_prompt_tokens_total 21\n", `inferflow_http_responses_total{code="4xx"} 1`,
		"inferflow_time_to_first_token_seconds_count 1\n", `inferflow_time_per_token_seconds_bucket{le="+Inf"} 1`} {
		if !bytes.Contains(raw, []byte(want)) {
			t.Errorf("%q is missing in\n%s", want, raw)
		}
	}
}

// TestCutTold: what still runs when the server's grace is over is told that, not
// that its client has gone, whatever it waits for.
func TestCutTold(t *testing.T) {
	v := New(endless(t, 2, 0), Options{Name: "tiny"})
	h := v.handler(func(w http.ResponseWriter, r *http.Request) error {
		v.end(engine.ErrClosed)
		<-r.Context().Done()
		return fmt.Errorf("embed: %w", r.Context().Err())
	})
	w := httptest.NewRecorder()
	h(w, httptest.NewRequest(http.MethodPost, "/v1/embeddings", nil))
	if w.Code != 503 || !strings.Contains(w.Body.String(), "shutting down") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
