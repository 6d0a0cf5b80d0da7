package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/server"
)

func serveCommand() *cobra.Command {
	var f modelFlags
	var host, name, origins, task string
	var port int
	var aliases []string
	var quiet bool
	var grace time.Duration
	c := &cobra.Command{
		Use:   "serve [MODEL]",
		Short: "Serve a model over OpenAI's API",
		Long: `Serves a model at http://HOST:PORT/v1: chat/completions, completions, models; a
model that reads texts (an encoder, a folder of sentence-transformers, a
classifier, a masked-LM) serves embeddings, rerank, classify or fill-mask instead
(docs/embeddings.md). To an encoder-decoder the field "task" of a request says what
is asked, as --task of run does: "summarize", "translate:en-fr".
/health tells whether requests are taken (503 after a signal to end, while answers
still run), /metrics has gauges. Without MODEL the
demo model is served. An .ini file of the C++ Inferflow is served as it says:
port, model, its model_spec.json, prompt template, decoding strategy; flags win.`,
		Example: `  inferflow serve smollm2
  inferflow serve inferflow_service.ini
  inferflow serve ./all-MiniLM-L6-v2
  curl http://localhost:8080/v1/chat/completions -d '{"model": "smollm2", "messages": [{"role": "user", "content": "Hello"}]}'`,
		Args: argsBetween(0, 1, "one model"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := untilSignal(c.Context())
			defer stop()
			o, err := f.options()
			if err != nil {
				return err
			}
			if !slices.Contains(serveTasks, task) && task != "" {
				return usagef("--task %q: want %s", task, strings.Join(serveTasks, ", "))
			}
			ref := demoName
			if len(args) == 1 {
				ref = args[0]
			}
			v := served{ref: ref, name: ref}
			if err := until(ctx, func() error { return v.read(&o, c.Flags(), &port) }); err != nil {
				return err
			}
			if port < 0 || port > 65535 {
				return usagef("--port %d: want 1 to 65535, or 0 for any free one", port)
			}
			// The port is taken first, so that a busy one is told before a long load.
			l, err := listen(host, port)
			if err != nil {
				return err
			}
			defer l.Close()
			so := server.Options{Name: name, Aliases: aliases, Version: revision(), Origins: origins, Host: host}
			if !quiet {
				so.Log = log.New(os.Stderr, "", log.LstdFlags)
			}
			var h *server.Server
			var end func() error
			if err := until(ctx, func() (err error) { h, end, err = v.handler(ctx, task, o, &so); return err }); err != nil {
				return err
			}
			defer endWithin(end, lastStep, notice)
			notice(fmt.Sprintf("serving %s at http://%s/v1", so.Name, l.Addr()))
			err = h.Serve(ctx, l, grace)
			if errors.Is(err, http.ErrServerClosed) {
				err = nil
			}
			return err
		},
	}
	f.add(c.Flags())
	c.Flags().StringVar(&host, "host", "127.0.0.1", "address to listen on; 0.0.0.0 for all")
	c.Flags().IntVar(&port, "port", 8080, "port to listen on")
	c.Flags().StringVar(&task, "task", "", "what is served: generate, embed, rerank, classify or fill-mask (default: what the model's files are made for)")
	c.Flags().StringVar(&name, "name", "", "name of the model in the API (default: the short name that was given, else that of the file or folder, which is then also found as it was given)")
	c.Flags().StringSliceVar(&aliases, "alias", nil, "further names for the model")
	c.Flags().StringVar(&origins, "origins", "", `web pages that may call, such as https://example.org or "*" (default: those of this machine)`)
	c.Flags().DurationVar(&grace, "grace", 30*time.Second, "time that requests under way have to finish after a signal to end")
	c.Flags().BoolVar(&quiet, "quiet", false, "do not log requests")
	return c
}

// untilSignal is a context that ends at a signal; a second one ends the program,
// unless stop was called.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, unhook := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() { secondSignal(ended, unhook) })
	return ctx, func() { close(ended); unhook() }
}

// secondSignal ends the program at a signal after the one that ended its context,
// unless the command is through before.
func secondSignal(ended <-chan struct{}, stop func()) {
	second := make(chan os.Signal, 1)
	signal.Notify(second, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(second)
	stop()
	select {
	case <-ended:
	case s := <-second:
		notice(fmt.Sprintf("a second signal (%v): ended at once, answers under way are cut off", s))
		code := 1
		if n, ok := s.(syscall.Signal); ok {
			code = 128 + int(n)
		}
		os.Exit(code)
	}
}

func listen(host string, port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("serve: %w; choose another with --port", err)
	case err != nil:
		return nil, fmt.Errorf("serve: %w; --host takes an address of this machine", err)
	}
	return l, nil
}

// serveTasks are the values of --task.
var serveTasks = []string{"generate", "embed", "rerank", "classify", "fill-mask"}

// servedName is a short name as it was given, else the file's name.
func servedName(ref, file string) string {
	if _, err := os.Stat(ref); err != nil && len(ref) < 40 {
		return ref
	}
	return file
}

// lastStep is how long the engine may take to end its step when nobody is served any more.
const lastStep = 2 * time.Second

// endWithin calls end, and leaves it behind after the given time: a step of the
// engine cannot be interrupted, and the process ends with it.
func endWithin(end func() error, most time.Duration, say func(string)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = end() // nobody is there to be told
	}()
	select {
	case <-done:
	case <-time.After(most):
		say(fmt.Sprintf("the engine is still at a step after %s and is left at it", most))
	}
}
