package server

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// sse writes server-sent events. Between events it writes comments, so that
// nobody on the way takes a long prefill for a dead connection.
type sse struct {
	mu   sync.Mutex
	w    io.Writer
	rc   *http.ResponseController
	last time.Time
	stop chan struct{}
	done chan struct{} // closed when no comment will be written any more
	err  error

	stall time.Duration
}

func newSSE(w http.ResponseWriter, every, stall time.Duration) *sse {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := &sse{w: w, rc: http.NewResponseController(w), last: time.Now(), stop: make(chan struct{}), done: make(chan struct{}), stall: stall}
	_ = s.rc.Flush()
	go s.keepAlive(every)
	return s
}

func (s *sse) keepAlive(every time.Duration) {
	defer close(s.done)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-t.C:
			s.mu.Lock()
			if s.err == nil && now.Sub(s.last) >= every/2 {
				// A comment line without a blank line after it is no event to any parser.
				s.write(": waiting\n")
			}
			s.mu.Unlock()
		}
	}
}

// send writes one event; v is encoded as JSON unless it is a string.
func (s *sse) send(v any) error {
	b, ok := v.(string)
	if !ok {
		raw, err := encode(v)
		if err != nil {
			return err
		}
		b = string(raw)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.write("data: " + strings.TrimSuffix(b, "\n") + "\n\n")
		s.last = time.Now()
	}
	return s.err
}

// write sends text at once. A reader that takes nothing until the deadline is
// given up, so that nobody holds an answer's memory by not reading it.
func (s *sse) write(text string) {
	_ = s.rc.SetWriteDeadline(time.Now().Add(s.stall))
	if _, s.err = io.WriteString(s.w, text); s.err == nil {
		s.err = s.rc.Flush()
	}
}

// close ends the comments; afterwards nobody writes.
func (s *sse) close() {
	close(s.stop)
	<-s.done
}

// fail ends the stream with an error object, as clients expect it.
func (s *sse) fail(err error) { _ = s.send(map[string]any{"error": toAPI(err)}) }
