package spec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"reflect"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// ChildCommand is the first argument that makes the program a tracing child.
const ChildCommand = "__trace"

// Limits of a child. A specification of a large model takes milliseconds and
// a few megabytes.
const (
	childTime   = 5 * time.Second
	childMemory = 384 << 20 // bytes of heap
	childOutput = 64 << 20
	childInput  = 256 << 20
)

// request is what a child is given: the text and what it may know of the files.
type request struct {
	Name, Source          string
	Binding, Architecture string
	Config, Set           map[string]any
	AllowUnused           bool
	Tensors               []storedTensor
}

type storedTensor struct {
	Name  string
	Type  quant.Type
	Shape []int
}

// reply is what a child gives back.
type reply struct {
	Error           string
	Graph           json.RawMessage
	Config          []ConfigValue
	Ignored, Unused []string
	Chat            Chat
	MaxPositions    int
}

// ChildMain traces one specification, given as JSON on stdin, under limits of
// memory, and writes the outcome as JSON to stdout. It returns the exit status.
// The program calls it when its first argument is ChildCommand.
func ChildMain(stdin io.Reader, stdout io.Writer) int {
	limitProcess(childMemory)
	debug.SetMemoryLimit(childMemory * 3 / 4)
	debug.SetMaxStack(64 << 20)
	go watchHeap(childMemory)
	var req request
	dec := json.NewDecoder(io.LimitReader(stdin, childInput))
	dec.UseNumber()
	if err := dec.Decode(&req); err != nil {
		return answer(stdout, reply{Error: fmt.Sprintf("spec: child: request: %v", err)})
	}
	t, err := trace(req.Name, req.Source, newRequestFiles(&req), Options{Set: req.Set, AllowUnused: req.AllowUnused})
	if err != nil {
		return answer(stdout, reply{Error: err.Error()})
	}
	g, err := graph.Encode(t.Graph)
	if err != nil {
		return answer(stdout, reply{Error: err.Error()})
	}
	return answer(stdout, reply{Graph: g, Config: t.Config, Ignored: t.Ignored, Unused: t.Unused, Chat: t.Chat, MaxPositions: t.MaxPositions})
}

func answer(w io.Writer, r reply) int {
	for i := range r.Config {
		r.Config[i].Value = encodable(r.Config[i].Value)
	}
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return 1
	}
	return 0
}

// exitMemory is the status of a child that ended itself for its memory.
const exitMemory = 86

// watchHeap ends the process once its heap passes the limit.
func watchHeap(limit uint64) {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for {
		metrics.Read(s)
		if s[0].Value.Uint64() > limit {
			os.Exit(exitMemory)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// requestFiles are the files that a request describes.
type requestFiles struct {
	*request
	tensors map[string]tensor.View
}

func newRequestFiles(r *request) *requestFiles {
	f := &requestFiles{request: r, tensors: make(map[string]tensor.View, len(r.Tensors))}
	for _, t := range r.Tensors {
		f.tensors[t.Name] = tensor.View{Name: t.Name, Type: t.Type, Shape: t.Shape}
	}
	return f
}

func (f *requestFiles) Binding() string        { return f.request.Binding }
func (f *requestFiles) Architecture() string   { return f.request.Architecture }
func (f *requestFiles) Config() map[string]any { return f.request.Config }

func (f *requestFiles) Tensor(name string) (tensor.View, bool) {
	v, ok := f.tensors[name]
	return v, ok
}

func (f *requestFiles) TensorNames() []string {
	names := make([]string, 0, len(f.tensors))
	for n := range f.tensors {
		names = append(names, n)
	}
	return names
}

// encodable replaces what JSON cannot say: numbers that are not finite, long lists.
func encodable(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return map[string]any{"__float__": map[bool]string{true: "Infinity", false: "-Infinity"}[v > 0]}
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = encodable(x)
		}
		return out
	case []any:
		if len(v) > maxMetaList {
			return nil
		}
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = encodable(x)
		}
		return out
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Float32:
		return encodable(shortest(r))
	case reflect.Slice:
		if r.Len() > maxMetaList {
			return nil
		}
		out := make([]any, r.Len())
		for i := range out {
			out[i] = encodable(r.Index(i).Interface())
		}
		return out
	}
	return v
}

// traceChild runs a specification in a child process and trusts nothing that
// comes back: the graph is validated and held against the files.
func traceChild(s *Spec, files Files) (*Traced, error) {
	req := request{
		Name: s.fileName(), Source: s.Source, Binding: files.Binding(), Architecture: files.Architecture(), AllowUnused: s.opts.AllowUnused,
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
		return nil, &childError{r.Error}
	}
	g, err := graph.Decode(r.Graph)
	if err != nil {
		return nil, fmt.Errorf("spec: %s: %w: %w", s.Name, ErrTrace, err)
	}
	if err := checkStored(g, files); err != nil {
		return nil, fmt.Errorf("spec: %s: %w: %w", s.Name, ErrTrace, err)
	}
	return &Traced{Graph: g, Config: r.Config, Ignored: r.Ignored, Unused: r.Unused, Chat: r.Chat, MaxPositions: r.MaxPositions}, nil
}

// childError is a child's message as it stands; it is an ErrTrace.
type childError struct{ text string }

func (e *childError) Error() string { return e.text }
func (e *childError) Unwrap() error { return ErrTrace }

// runChild gives a fresh process the request and returns what it wrote. The
// child has no environment but what the runtime needs, and no arguments.
func runChild(program string, in []byte) ([]byte, error) {
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("child: %w", err)
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
		for _, a := range w.Args {
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
