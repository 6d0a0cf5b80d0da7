package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestForeign: pages of other origins and names bent to this machine are
// refused, also where the body is as a form would send it.
func TestForeign(t *testing.T) {
	s := service(t)
	for _, c := range []struct {
		origins, name string // of the server
		origin, host  string // of the request
		status        int
		says          string
	}{
		{"", "", "", "", 200, ""},
		{"", "", "http://localhost:3000", "localhost:1", 200, ""},
		{"", "", "", "[::1]:8080", 200, ""},
		{"", "", "", "127.0.0.1", 200, ""},
		{"", "", "https://evil.example", "", 403, "--origins"},
		{"", "", "null", "", 403, "--origins"},
		{"", "", "http://localhost.evil.example", "", 403, "--origins"},
		{"", "", "", "evil.example:8080", 403, "--host"},
		{"", "", "", "localhost.evil.example", 403, "--host"},
		{"", "my.box", "", "my.box:8080", 200, ""},
		{"https://a.example", "", "https://a.example", "a.example", 200, ""},
		{"https://a.example", "", "https://b.example", "", 403, "--origins"},
		{"*", "", "https://evil.example", "evil.example", 200, ""},
	} {
		v := New(s, Options{Name: "tiny", Origins: c.origins, Host: c.name})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- v.Serve(ctx, l, 0) }()
		body := `{"model": "tiny", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}`
		r, err := http.NewRequest("POST", "http://"+l.Addr().String()+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "text/plain")
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		r.Host = c.host
		before := s.Engine.Stats().Requests
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		ran := s.Engine.Stats().Requests > before
		if resp.StatusCode != c.status || !strings.Contains(string(raw), c.says) || ran != (c.status == 200) {
			t.Errorf("%+v: %d %s, computed: %t", c, resp.StatusCode, raw, ran)
		}
		cancel()
		<-done
	}
}

// TestHalfClosed: a client that closes its sending side is told so in words.
func TestHalfClosed(t *testing.T) {
	_, h := serve(t, endless(t, 1, 0), Options{Name: "tiny"})
	c, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"model": "tiny", "messages": [{"role": "user", "content": "Hi"}]}`
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if raw, _ := io.ReadAll(resp.Body); resp.StatusCode != 400 || !strings.Contains(string(raw), "keep both sides open") {
		t.Errorf("%s %s", resp.Status, raw)
	}
}
