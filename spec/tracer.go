package spec

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/tensor"
)

// Limits of one trace. They hold for shipped specifications too, where they
// never bind.
const (
	maxSteps    = 16 << 20
	maxNodes    = 1 << 20
	maxLayers   = 1 << 14
	maxProblems = 40   // listed
	enough      = 2000 // problems that end a trace
)

// tracer is the state of one trace; builtins find it by the thread.
type tracer struct {
	thread   *starlark.Thread
	b        *graph.Builder
	files    Files
	stored   []string // names of all stored tensors
	opts     Options
	config   *configData
	names    *nameTable
	weights  map[string]*weightValue // by reference name
	changes  map[string]starlark.Callable
	views    []tensor.View   // of stored, where the files list them
	used     map[string]bool // stored tensors that something reads, beside those of series
	series   seriesTable
	perms    map[[2]int][]int // row orders by heads and width
	slices   map[sliceKey]*weightValue
	ignores  []matcher
	free     map[string]bool // keys of unchecked(…)
	serves   []servesRule
	problems []Problem
	sketch   bool // some tensor is known by its name only
	layers   int
	chat     Chat
	tasks    []Task

	// generation holds defaults of generation settings
	generation map[string]any

	quantization *quantization // of the folder, once asked for
	asked        *asked        // what a conversion wants to know; nil otherwise

	mask string // of attention that names none; "": not decided yet

	methods []string // of quantisation that the specification reads itself

	printed []string // by print(…), for whoever writes the specification

	room   []value                       // for further ones
	stacks map[graph.Line][][]graph.Line // of the nodes so far, by line

	others   map[string]bool // stored tensors that are not the text model's
	filled   map[string]bool // stored tensors that only other readers of GGUF want
	partNote string          // tells of them
}

const tracerKey = "tracer"

func current(thread *starlark.Thread) (*tracer, error) {
	if t, ok := thread.Local(tracerKey).(*tracer); ok {
		return t, nil
	}
	return nil, errors.New("can only be called while a model is traced")
}

func newTracer(files Files, o Options) *tracer {
	t := &tracer{
		b: graph.NewBuilder(), files: files, opts: o, weights: map[string]*weightValue{},
		changes: map[string]starlark.Callable{}, used: map[string]bool{}, perms: map[[2]int][]int{}, others: map[string]bool{}, stacks: map[graph.Line][][]graph.Line{},
		slices: map[sliceKey]*weightValue{},
	}
	t.thread = &starlark.Thread{Name: "spec", Load: loadStd, Print: func(_ *starlark.Thread, s string) { t.print(s) }}
	t.thread.SetMaxExecutionSteps(maxSteps)
	t.thread.SetLocal(tracerKey, t)
	t.b.At = t.where
	t.config = newConfigData(t)
	t.names = newNameTable(files.Binding())
	t.filled = filled(files)
	return t
}

// where finds the innermost line outside the standard library and the calls
// that led there.
//
// The calls are shared by all nodes that were made at the same place: they are
// not to be changed.
func (t *tracer) where() (graph.Line, []graph.Line) {
	depth := t.thread.CallStackDepth()
	var few [16]graph.Line
	stack := few[:0]
	var line graph.Line
	for i := depth - 1; i >= 0; i-- {
		pos := t.thread.CallFrame(i).Pos
		if pos.Line == 0 {
			continue
		}
		l := graph.Line{File: pos.Filename(), Line: int(pos.Line)}
		stack = append(stack, l)
		if !strings.HasPrefix(l.File, stdPrefix) {
			line = l
		}
	}
	known := t.stacks[line]
	for _, s := range known {
		if slices.Equal(s, stack) {
			return line, s
		}
	}
	fresh := slices.Clone(stack)
	if len(known) < 64 {
		t.stacks[line] = append(known, fresh)
	}
	return line, fresh
}

// line is where's first result alone.
func (t *tracer) line() graph.Line {
	for i, depth := 0, t.thread.CallStackDepth(); i < depth; i++ {
		pos := t.thread.CallFrame(i).Pos
		if pos.Line != 0 && !strings.HasPrefix(pos.Filename(), stdPrefix) {
			return graph.Line{File: pos.Filename(), Line: int(pos.Line)}
		}
	}
	return graph.Line{}
}

// complain records a problem at the present line and says what stands there.
// A trace goes on after one, so that all are told together.
func (t *tracer) complain(format string, args ...any) {
	t.complainOf(ProblemOther, "", format, args...)
}

// complainOf is complain for a problem of a kind, about a tensor.
func (t *tracer) complainOf(kind, tensor, format string, args ...any) {
	if t.full() {
		t.thread.Cancel("too many problems")
		return
	}
	line, stack := t.where()
	p := Problem{Kind: kind, Line: line, Tensor: tensor, Text: brief(fmt.Sprintf(format, args...))}
	if n := len(stack); n > 0 && strings.HasPrefix(stack[n-1].File, stdPrefix) {
		p.Text += fmt.Sprintf(" (in %s)", stack[n-1])
	}
	t.problems = append(t.problems, p)
}

// full says that so many problems are known that more would not help.
func (t *tracer) full() bool { return len(t.problems) >= enough }

// trace runs a specification's text over the files.
func trace(file, source string, files Files, o Options) (*Traced, error) {
	return newTracer(files, o).run(file, source)
}

// run is the trace itself.
func (t *tracer) run(file, source string) (*Traced, error) {
	files, o := t.files, t.opts
	t.list()
	t.names.stored = t.stored
	t.used = map[string]bool{}
	if err := t.loadNames(); err != nil {
		return nil, err
	}
	if part, ok := files.(*textFiles); ok {
		t.takeText(part)
	}
	globals, err := execute(t, file, source)
	if err != nil {
		if lacks := missingLoad(source, file); lacks != nil {
			err = lacks
		}
		return nil, t.fail(hintedSyntax(err, source))
	}
	if err := checkQuantization(files, t.methods); err != nil {
		return nil, err
	}
	out, err := t.entries(file, globals)
	if err != nil {
		return nil, err
	}
	if err := t.setOutputs(file, out); err != nil {
		return nil, err
	}
	var gives []string
	for _, out := range t.b.G.Outputs {
		gives = append(gives, out.Name)
	}
	if err := t.choose(o.Output); err != nil {
		return nil, err
	}
	t.checkNumbers()
	notes, err := t.notes(file)
	if err != nil {
		return nil, err
	}
	r, err := t.finish()
	if r != nil {
		r.Notes, r.Gives = append(t.printed, notes...), gives
	}
	return r, err
}

// setOutputs reads what model(c) returned: a value, or a dict of values by name.
func (t *tracer) setOutputs(file string, out starlark.Value) error {
	switch out := out.(type) {
	case *value:
		t.output("logits", out)
	case *starlark.Dict:
		for _, item := range out.Items() {
			name, ok := starlark.AsString(item[0])
			v, isValue := item[1].(*value)
			if !ok || !isValue {
				return fmt.Errorf("spec: %s: %w: model(c) returns a dict of names and values, got %s: %s", file, ErrTrace, item[0].Type(), item[1].Type())
			}
			t.output(name, v)
		}
	default:
		return fmt.Errorf("spec: %s: %w: model(c) returns a value or a dict of values, got %s", file, ErrTrace, out.Type())
	}
	if len(t.b.G.Outputs) == 0 && len(t.problems) == 0 && !t.sketch {
		return fmt.Errorf("spec: %s: %w: model(c) returns nothing", file, ErrTrace)
	}
	return nil
}

func (t *tracer) output(name string, v *value) {
	if v.node != nil {
		t.b.G.Outputs = append(t.b.G.Outputs, graph.Output{Name: name, Node: v.node.ID})
	}
}

// finish sorts stored tensors into used, ignored and unused, and reports.
func (t *tracer) finish() (*Traced, error) {
	r := &Traced{Graph: t.b.G, Config: t.config.values(), Chat: t.chat, Tasks: t.tasks, Generation: t.generation, Sketch: t.sketch}
	r.Graph.Layers = t.layers
	for i, name := range t.stored {
		switch {
		case t.series.used(i) || t.used[name]:
		case t.others[name] || t.filled[name] || t.ignored(name):
			r.Ignored = append(r.Ignored, name)
		default:
			r.Unused = append(r.Unused, name)
		}
	}
	var err error
	if r.MaxPositions, err = t.config.maxPositions(); err != nil {
		return nil, fmt.Errorf("spec: %w: %w", ErrTrace, err)
	}
	r.MaxPositions = tablePositions(r.Graph, r.MaxPositions)
	r.Unread, r.IdleIgnores = t.config.unread(), t.idleIgnores(r.Ignored)
	sort.Strings(r.Ignored)
	sort.Strings(r.Unused)
	unused := r.Unused
	if t.opts.AllowUnused {
		unused = nil
	}
	if len(t.problems) > 0 || len(unused) > 0 {
		return nil, t.report(unused, nil)
	}
	if t.sketch {
		return r, nil
	}
	if err := graph.Validate(r.Graph); err != nil {
		return nil, fmt.Errorf("spec: %w: %w", ErrTrace, err)
	}
	return r, nil
}

// tablePositions lowers a number of positions (0: unknown) to what the tables
// that are read by position hold.
func tablePositions(g *graph.Graph, most int) int {
	for _, n := range g.Nodes {
		if n.Op != graph.OpEmbed {
			continue
		}
		at, ok := g.Nodes[n.In[0]].Attr.(*graph.PositionsAttr)
		if !ok {
			continue
		}
		if rows := n.Attr.(*graph.EmbedAttr).Table.Shape[0] - at.Offset; rows > 0 && (most == 0 || rows < most) {
			most = rows
		}
	}
	return most
}

// fail turns an error of the interpreter into one that names the line.
func (t *tracer) fail(err error) error {
	var stop error
	var ev *starlark.EvalError
	if errors.As(err, &ev) {
		var lines []string
		at := ""
		for _, f := range ev.CallStack {
			if f.Pos.Line == 0 {
				continue
			}
			l := fmt.Sprintf("%s:%d", f.Pos.Filename(), f.Pos.Line)
			if !strings.HasPrefix(l, stdPrefix) {
				at = l
			}
			lines = append(lines, l)
		}
		stop = fmt.Errorf("%s: %s%s", at, hinted(brief(ev.Msg)), t.zeros(ev.Msg))
		if len(lines) > 1 {
			slices.Reverse(lines)
			stop = fmt.Errorf("%w (called by %s)", stop, strings.Join(lines, " < "))
		}
	} else {
		stop = err
	}
	if len(t.problems) > 0 || len(t.printed) > 0 {
		return t.report(nil, stop)
	}
	return fmt.Errorf("spec: %w: %w", ErrTrace, stop)
}
