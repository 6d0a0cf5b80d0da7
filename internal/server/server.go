// Package server speaks the protocols of clients over HTTP: one file a
// protocol. It gives text to services and never sees tensors, devices or
// batches. Read Server first.
package server

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/tokenizer"
)

// Options bounds a server.
type Options struct {
	Name      string        // the model's name in the API; "" is the file's
	Aliases   []string      // further names that are accepted
	Version   string        // of the program
	MaxBody   int64         // bytes of a request; 0: 32 MiB
	BodyTime  time.Duration // for the arrival of a request's body; 0: 60 s
	KeepAlive time.Duration // between comments in a silent stream; 0: 15 s
	Stall     time.Duration // a reader that takes nothing for so long is gone; 0: 60 s
	Origins   string        // the origin whose pages may call, "*" for all; "": any origin of this machine
	Host      string        // a further name that requests may call this machine by while only it can reach the server
	Log       *log.Logger   // nil: nothing is logged
}

// Server answers requests for one model.
type Server struct {
	s       *complete.Service // nil where e is served
	e       *embed.Service    // nil where s is served
	tok     *tokenizer.Tokenizer
	created time.Time // when the model was loaded
	tokens  int       // of a sequence at most
	o       Options
	mux     *http.ServeMux
	v1      []string // addresses of requests
	ids     atomic.Uint64
	born    time.Time
	codes   [6]atomic.Int64 // answers by hundreds of the status
	drain   atomic.Bool
	busy    atomic.Int64 // requests that Serve waits for
	local   atomic.Bool  // only this machine can reach the server
	cut     context.Context
	end     context.CancelCauseFunc // of cut: requests under way end with an error
	times   histograms

	mu   sync.Mutex
	told map[string]bool // unknown fields that were logged
}

// New makes the handler for a service.
func New(s *complete.Service, o Options) *Server {
	v := &Server{s: s, tok: s.Tok, created: s.Created, tokens: s.Model.Room()}
	v.start(o, s.Model.Name)
	return v
}

// start fills in what options leave out, and the routes.
func (v *Server) start(o Options, name string) {
	if o.Name == "" {
		o.Name = name
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 32 << 20
	}
	for _, d := range []struct {
		v  *time.Duration
		or time.Duration
	}{{&o.KeepAlive, 15 * time.Second}, {&o.BodyTime, time.Minute}, {&o.Stall, time.Minute}} {
		if *d.v <= 0 {
			*d.v = d.or
		}
	}
	v.o, v.mux, v.born, v.told = o, http.NewServeMux(), time.Now(), map[string]bool{}
	v.cut, v.end = context.WithCancelCause(context.Background())
	v.routes()
}

func (v *Server) routes() {
	for _, r := range []struct {
		pattern string
		h       func(http.ResponseWriter, *http.Request) error
	}{
		{"POST /v1/chat/completions", v.writes(v.chat)},
		{"POST /v1/completions", v.writes(v.completions)},
		{"POST /v1/embeddings", v.embeddings},
		{"POST /v1/rerank", v.rerank},
		{"POST /rerank", v.rerank},
		{"POST /v1/classify", v.classify},
		{"POST /v1/fill-mask", v.fillMask},
		{"GET /v1/models", v.models},
		{"GET /v1/models/{id...}", v.model},
		{"GET /health", v.health},
		{"GET /livez", v.alive},
		{"GET /readyz", v.health},
		{"GET /metrics", v.metrics},
		{"POST /tokenize", v.tokenize},
		{"POST /detokenize", v.detokenize},
		{"GET /{$}", v.about},
	} {
		v.mux.HandleFunc(r.pattern, v.handler(r.h))
		if _, path, _ := strings.Cut(r.pattern, " "); strings.HasPrefix(path, "/v1/") && !strings.Contains(path, "{") {
			v.v1 = append(v.v1, path)
		}
	}
	v.mux.HandleFunc("/", v.handler(func(w http.ResponseWriter, r *http.Request) error {
		for _, m := range []string{"GET", "POST"} {
			probe := r.Clone(r.Context())
			probe.Method = m
			if _, p := v.mux.Handler(probe); m != r.Method && p != "/" && p != "" {
				w.Header().Set("Allow", m)
				return &apiError{Status: http.StatusMethodNotAllowed, Message: r.Method + " is not answered at " + r.URL.Path + "; use " + m}
			}
		}
		return &apiError{Status: http.StatusNotFound, Message: "nothing is served at " + r.URL.Path + "; see " + strings.Join(v.v1, ", ")}
	}))
}

// handler turns an error into the protocol's JSON and counts.
func (v *Server) handler(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		t0 := time.Now()
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		r.Body = http.MaxBytesReader(w, r.Body, v.o.MaxBody)
		w.Header().Set("X-Request-Id", v.requestID(r))
		// A deadline of the request before on this connection may be left.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		ctx, cancel := context.WithCancelCause(r.Context())
		stop := context.AfterFunc(v.cut, func() { cancel(context.Cause(v.cut)) })
		defer stop()
		defer cancel(nil)
		client := r.Context()
		r = r.WithContext(ctx)
		var err error
		if v.takes(r) {
			defer v.busy.Add(-1)
			err = h(rec, r)
		} else {
			w.Header().Set("Connection", "close")
			err = engine.ErrClosed
		}
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
			err = cause // not the client has gone, where the server ends
		}
		if err != nil && !rec.wrote {
			writeError(rec, err)
		}
		v.codes[min(5, rec.status/100)].Add(1)
		if v.o.Log != nil {
			status := fmt.Sprint(rec.status)
			if err != nil && client.Err() != nil && v.cut.Err() == nil {
				status = "unfinished: the client left after"
			}
			v.o.Log.Printf("%s %s %s %s", r.Method, r.URL.Path, status, time.Since(t0).Round(time.Millisecond))
		}
	}
}

// requestID is the client's own name for its request, or a new one.
func (v *Server) requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			id = ""
			break
		}
	}
	if id == "" || len(id) > 128 {
		id = v.newID("req-")
	}
	return id
}

// ServeHTTP implements http.Handler.
func (v *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.cors(w, r)
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", "GET, HEAD, POST, OPTIONS")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err := v.foreign(r); err != nil {
		v.handler(func(http.ResponseWriter, *http.Request) error { return err })(w, r)
		return
	}
	v.mux.ServeHTTP(w, r)
}

// Drain makes /health tell that no new requests should come, and refuses them.
func (v *Server) Drain() { v.drain.Store(true) }

// takes counts a request as under way. While the server ends none is taken but
// those that ask for its state.
func (v *Server) takes(r *http.Request) bool {
	v.busy.Add(1) // first: who waits for none after Drain must not miss one that came before
	if r.Method != http.MethodPost || !v.drain.Load() {
		return true
	}
	v.busy.Add(-1)
	return false
}

// recorder remembers the status for logs and counters.
type recorder struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (r *recorder) WriteHeader(status int) {
	r.status, r.wrote = status, true
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.wrote = true
	return r.ResponseWriter.Write(b)
}

func (r *recorder) Flush() {
	if f, ok := r.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// HTTP is the server that Serve runs, with limits against clients that stall.
func (v *Server) HTTP() *http.Server {
	return &http.Server{Handler: v, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: v.o.Log}
}

// lastWords is the time that cut requests have to tell their clients.
const lastWords = 2 * time.Second

// Serve answers on l until ctx ends. Then /health and new requests get 503, and
// those under way have grace to finish; what is left after it gets an error, in
// its stream or as its answer, and little time to read it.
//
// A client that closes only its sending side (a half-close) before it has its
// answer counts as gone: net/http cannot tell the two apart.
func (v *Server) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		v.local.Store(a.IP.IsLoopback())
	}
	srv := v.HTTP()
	errs := make(chan error, 1)
	go func() { errs <- srv.Serve(l) }()
	select {
	case err := <-errs:
		return err
	case <-ctx.Done():
	}
	v.Drain()
	end, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	v.finish(end, grace)
	if srv.Shutdown(end) == nil {
		return nil
	}
	if v.o.Log != nil && v.s != nil {
		st := v.s.Engine.Stats()
		v.o.Log.Printf("the grace of %s is over: %d answers are cut off, %d requests were still waiting", grace, st.Running, st.Waiting)
	}
	v.end(engine.ErrClosed)
	last, cancelLast := context.WithTimeout(context.Background(), lastWords)
	defer cancelLast()
	if srv.Shutdown(last) == nil {
		return nil
	}
	return srv.Close()
}

// finish waits, with an open door, until no request is under way or end comes.
func (v *Server) finish(end context.Context, grace time.Duration) {
	if n := v.busy.Load(); v.o.Log != nil && n > 0 {
		v.o.Log.Printf("the server ends: requests under way (%d) have %s to finish, new ones are refused; a second signal ends it at once", n, grace)
	} else if v.o.Log != nil {
		v.o.Log.Print("the server ends: no request is under way")
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for v.busy.Load() > 0 {
		select {
		case <-end.Done():
			return
		case <-tick.C:
		}
	}
}
