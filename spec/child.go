package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
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
	Elsewhere             []string
	AllowUnused           bool
	Output                string
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
	Problems        []Problem
	Sketch          bool
	Graph           json.RawMessage
	Config          []ConfigValue
	Ignored, Unused []string
	Unread, Notes   []string
	IdleIgnores     []string
	Chat            Chat
	MaxPositions    int
	Gives           []string
	Tasks           []Task
	Generation      map[string]any
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
	t, err := trace(req.Name, req.Source, newRequestFiles(&req), Options{Set: req.Set, Elsewhere: req.Elsewhere, AllowUnused: req.AllowUnused, Output: req.Output})
	if err != nil {
		r := reply{Error: err.Error()}
		if fit := (*FitError)(nil); errors.As(err, &fit) {
			r.Problems, r.Unread, r.Notes = fit.Problems, fit.Unread, fit.Printed
		}
		return answer(stdout, r)
	}
	g, err := graph.Encode(t.Graph)
	if err != nil {
		return answer(stdout, reply{Error: err.Error()})
	}
	return answer(stdout, reply{Graph: g, Config: t.Config, Ignored: t.Ignored, Unused: t.Unused, Unread: t.Unread, IdleIgnores: t.IdleIgnores, Notes: t.Notes, Chat: t.Chat, MaxPositions: t.MaxPositions,
		Tasks: t.Tasks, Gives: t.Gives, Generation: t.Generation, Sketch: t.Sketch})
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
