package spec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/inferflow/inferflow/internal/graph"
)

// traceChild runs a specification in a child process and trusts nothing that
// comes back: the graph is validated and held against the files.
func traceChild(s *Spec, files Files) (*Traced, error) {
	req := request{
		Name: s.fileName(), Source: s.Source, Binding: files.Binding(), Architecture: files.Architecture(), AllowUnused: s.opts.AllowUnused, Output: s.opts.Output, Elsewhere: s.opts.Elsewhere,
	}
	req.Config, _ = encodable(files.Config()).(map[string]any)
	req.Set, _ = encodable(s.opts.Set).(map[string]any)
	for _, n := range files.TensorNames() {
		if v, ok := files.Tensor(n); ok {
			req.Tensors = append(req.Tensors, storedTensor{n, v.Type, v.Shape})
		}
	}
	in, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("spec: child: %w", err)
	}
	out, err := runChild(s.opts.Executable, in)
	if err != nil {
		return nil, fmt.Errorf("spec: %s: %w", s.Name, err)
	}
	var r reply
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.UseNumber()
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("spec: %s: %w: the tracing process answered no JSON: %w", s.Name, ErrTrace, err)
	}
	if r.Error != "" {
		return nil, childFailure(r)
	}
	if r.Sketch {
		return &Traced{Sketch: true, Notes: printableNotes(r.Notes), Config: r.Config, Ignored: r.Ignored, Unused: r.Unused, Unread: r.Unread, IdleIgnores: r.IdleIgnores}, nil
	}
	g, err := graph.Decode(r.Graph)
	if err != nil {
		return nil, fmt.Errorf("spec: %s: %w: %w", s.Name, ErrTrace, err)
	}
	if err := checkStored(g, files); err != nil {
		return nil, fmt.Errorf("spec: %s: %w: %w", s.Name, ErrTrace, err)
	}
	return &Traced{Notes: printableNotes(r.Notes), Graph: g, Config: r.Config, Ignored: r.Ignored, Unused: r.Unused, Unread: r.Unread, IdleIgnores: r.IdleIgnores, Chat: r.Chat, MaxPositions: r.MaxPositions, Tasks: r.Tasks, Gives: r.Gives, Generation: r.Generation}, nil
}

// maxNotes bounds how many notes a child gives.
const maxNotes = 100

// printableNotes are the notes of a child as they may be shown.
func printableNotes(notes []string) []string {
	notes = notes[:min(len(notes), maxNotes)]
	for i, n := range notes {
		notes[i] = printable(n)
	}
	return notes
}

// maxMessage bounds what a stranger's specification makes us say.
const maxMessage = 8 << 10

// printable cuts a stranger's message and takes control characters out of it.
func printable(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage] + " …"
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, strings.ToValidUTF8(s, "·"))
}

// ownProgram is the running program if it is one of this project, whose main
// answers ChildCommand. Starting any other would run it as a whole.
func ownProgram() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path != modulePath {
		return "", errors.New("child: the running program is not inferflow's own; name one in Options.Executable")
	}
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("child: %w", err)
	}
	return program, nil
}

const modulePath = "github.com/inferflow/inferflow"

// childError is a child's message as it stands; it is an ErrTrace.
type childError struct{ text string }

func (e *childError) Error() string { return e.text }
func (e *childError) Unwrap() error { return ErrTrace }

// childFailure is what a child said of its failure.
func childFailure(r reply) error {
	if len(r.Problems) == 0 {
		return &childError{printable(r.Error)}
	}
	for i := range r.Problems {
		p := &r.Problems[i]
		p.Text, p.Tensor, p.Line.File = printable(p.Text), printable(p.Tensor), printable(p.Line.File)
	}
	return &FitError{Problems: r.Problems, Unread: r.Unread, Printed: printableNotes(r.Notes)}
}

// runChild gives a fresh process the request and returns what it wrote. The
// child has no environment but what the runtime needs, and no arguments.
func runChild(program string, in []byte) ([]byte, error) {
	if program == "" {
		var err error
		if program, err = ownProgram(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), childTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, ChildCommand)
	cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}
	if root := os.Getenv("SYSTEMROOT"); root != "" {
		cmd.Env = append(cmd.Env, "SYSTEMROOT="+root)
	}
	cmd.Stdin = bytes.NewReader(in)
	cmd.WaitDelay = time.Second
	out := &bounded{limit: childOutput, full: cancel}
	errs := &bounded{limit: 16 << 10}
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	switch {
	case out.over:
		return nil, fmt.Errorf("%w: its graph takes more than %d bytes", ErrTrace, childOutput)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: tracing took longer than %v", ErrTrace, childTime)
	case err == nil:
		return out.b.Bytes(), nil
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && (exit.ExitCode() == exitMemory || outOfMemory(errs.b.String())) {
		return nil, fmt.Errorf("%w: tracing took more than %d MiB of memory", ErrTrace, childMemory>>20)
	}
	return nil, fmt.Errorf("%w: the tracing process ended: %w: %s", ErrTrace, err, firstLine(errs.b.String()))
}

func outOfMemory(s string) bool {
	return strings.Contains(s, "out of memory") || strings.Contains(s, "cannot allocate memory") || strings.Contains(s, "stack exceeds")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// bounded collects output up to a limit and calls full beyond it.
type bounded struct {
	b     bytes.Buffer
	limit int
	over  bool
	full  func()
}

func (w *bounded) Write(p []byte) (int, error) {
	if room := w.limit - w.b.Len(); len(p) > room {
		w.b.Write(p[:max(room, 0)])
		if w.full != nil {
			w.over = true
			w.full()
		}
		return len(p), nil
	}
	return w.b.Write(p)
}

// checkStored holds every tensor that a graph reads against the files.
func checkStored(g *graph.Graph, files Files) error {
	seen := map[*graph.Weight]bool{}
	var check func(w *graph.Weight) error
	check = func(w *graph.Weight) error {
		if w == nil || seen[w] {
			return nil
		}
		seen[w] = true
		for _, a := range w.Parts() {
			if err := check(a); err != nil {
				return err
			}
		}
		if w.Op != graph.WTensor {
			return nil
		}
		v, ok := files.Tensor(w.Name)
		if !ok || !slices.Equal([]int(v.Shape), w.Shape) {
			return fmt.Errorf("the graph reads %s %v, which the files do not hold", w.Name, w.Shape)
		}
		return nil
	}
	for _, n := range g.Nodes {
		for _, w := range graph.AttrWeights(n.Attr) {
			if err := check(w); err != nil {
				return err
			}
		}
	}
	for _, t := range g.Ropes {
		if err := errors.Join(check(t.Divisors), check(t.LongDiv)); err != nil {
			return err
		}
	}
	return nil
}
