// Package spec runs specifications: files in Starlark that say what a model
// computes, traced once over symbolic tensors into a graph. It knows
// operations, names and configuration, never devices, and no model family is
// named in its Go code. It must not import devices, formats or anything that
// opens files of a model. Read Traced first, then Files.
package spec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/near"
	"github.com/inferflow/inferflow/tensor"
)

// Bindings: how the files of a model name their tensors and configuration.
const (
	HF   = "hf"   // a Hugging Face folder: config.json, safetensors
	GGUF = "gguf" // a GGUF file: ggml's metadata and names
)

// Files is what a specification may see of a model's files.
type Files interface {
	// Binding is HF or GGUF.
	Binding() string
	// Config is config.json as decoded (numbers as json.Number or float64),
	// or the metadata of a GGUF file under its own keys.
	Config() map[string]any
	// Architecture is general.architecture of a GGUF file, "" otherwise.
	Architecture() string
	// Tensor finds a stored tensor; its bytes are not read. Where only names
	// are known the view's Shape is nil: such files can be checked, not run.
	Tensor(name string) (tensor.View, bool)
	// TensorNames lists all stored tensors in any order.
	TensorNames() []string
}

// Options choose and change a specification. The zero value picks a shipped one.
type Options struct {
	SpecFile    string         // a specification on disk that overrides the choice; traced in a child process
	Name        string         // a shipped specification by name, whatever the files say
	FolderSpec  string         // the model folder's own spec.star, used where no shipped one matches
	FolderText  string         // its text, where it stands inside a file
	Set         map[string]any // configuration values that override files and specification
	Elsewhere   []string       // keys of Set that are read by others than the specification: no note says that it does not
	AllowUnused bool           // stored tensors that nothing reads are listed, not refused
	Output      string         // the graph's only output, by name (OutputEmbedding among them); "": all that the specification gives
	// Executable is the program for the child process, one that calls
	// ChildMain; "" is the running one if it is this project's own.
	Executable string
}

// Choose is the options for a specification that a user names: a file, or a
// shipped one by its name, where no such file exists; "" chooses none.
func Choose(ref string) (o Options) {
	if ref == "" {
		return o
	}
	if _, err := os.Stat(ref); err == nil || filepath.Ext(ref) != "" || strings.ContainsAny(ref, `/\`) {
		o.SpecFile = ref
	} else {
		o.Name = ref
	}
	return o
}

// Errors that callers tell apart.
var (
	ErrNoSpec    = errors.New("no specification serves this model")
	ErrAmbiguous = errors.New("more than one specification serves this model")
	ErrTrace     = errors.New("the specification does not fit the files")
	ErrQuantized = errors.New("the folder is quantised in a way that is not served")
)

// Spec is a chosen specification.
type Spec struct {
	Name    string // of a shipped one, or the base name of a file
	Source  string // its text
	Foreign bool   // not in the binary: traced in a child process
	opts    Options
	notes   []string // of the reading of the file
	part    bool     // it serves the text model inside the files
}

// ConfigValue is one value that the specification read, and where it came from.
type ConfigValue struct {
	Key    string // dotted name as in config.json
	Value  any
	Source string // "config.json", "gguf KEY", "spec default FILE:LINE", "override: REASON", "set by the user"
}

// Chat is what a specification says of the model's chat format.
type Chat struct {
	Template  string   // replaces the files' template
	EndTokens []string // tokens that end an answer, beside those of the files
	Tools     string   // name of the tool-call format
	Reasoning string   // name of the reasoning format
	// What becomes of roles that the template may not take; "" leaves it to a
	// trial rendering.
	Developer  string // "keep", "system" or "user"
	LateSystem string // system messages behind the first: "keep", "merge" or "user"
	System     string // "keep", or "user": joined to the user's message that follows
}

// Traced is the outcome of a trace.
type Traced struct {
	Graph   *graph.Graph
	Config  []ConfigValue // in order of first use
	Ignored []string      // stored tensors that are not needed, by rule
	Unused  []string      // stored tensors that nothing reads (with AllowUnused)
	Chat    Chat
	// Unread lists configuration keys of the files that nothing asked for.
	Unread []string
	// IdleIgnores lists the patterns of ignore(…) that fit no stored tensor.
	IdleIgnores []string
	// Notes are what the user should know though it stops nothing: one sentence each.
	Notes []string
	// MaxPositions is the number of positions that the files say the model
	// takes, 0 if they do not say.
	MaxPositions int
	// Generation holds what the files' generation settings mean where they do not
	// say it, by the keys of generation_config.json; Tasks what the model was
	// trained to do with a source.
	Generation map[string]any
	Tasks      []Task
	SpecName   string
	// Gives names the outputs that the specification makes of the files, of which
	// Graph may hold one alone.
	Gives []string
	// Sketch says that shapes were unknown: Graph is incomplete and cannot run.
	Sketch bool
	Lines  []string // the specification's text by line, for explain and profiles
}

// Resolve picks the specification for a model: the one that options name, else
// the shipped one whose serves(…) fits, else the folder's own. It fails with
// ErrNoSpec or ErrAmbiguous.
func Resolve(files Files, o Options) (*Spec, error) {
	switch {
	case o.SpecFile != "":
		return readForeign(o.SpecFile, o)
	case o.Name != "":
		src, err := librarySource(o.Name)
		if err != nil {
			return nil, noShipped(o.Name)
		}
		return &Spec{Name: o.Name, Source: src, opts: o}, nil
	}
	names, err := matching(files)
	if err != nil {
		return nil, err
	}
	part := false
	if inner := innerText(files); inner != nil && len(names) == 0 && o.FolderSpec == "" && o.FolderText == "" {
		if names, err = matching(inner); err != nil {
			return nil, err
		}
		part = true
	}
	switch {
	case len(names) == 1:
		src, err := librarySource(names[0])
		return &Spec{Name: names[0], Source: src, opts: o, part: part}, err
	case len(names) > 1:
		return nil, fmt.Errorf("spec: %w: %s (choose one by name)", ErrAmbiguous, strings.Join(names, ", "))
	case o.FolderSpec != "":
		return readForeign(o.FolderSpec, o)
	case o.FolderText != "" && len(o.FolderText) <= maxSource:
		return &Spec{Name: "spec.star", Source: o.FolderText, Foreign: true, opts: o}, nil
	}
	return nil, noSpec(files)
}

func noSpec(files Files) error {
	id := identity(files)
	return fmt.Errorf(`spec: %w: %s
To serve it, write a specification (a page of Starlark; docs/spec.md is the guide) and pass it with --spec, or lay it into the
model's folder as spec.star. It must say:
  serves(…)      which model_type, architectures or GGUF architecture it is for
  model(c)       the computation: embed, layers(n), norms, linear, attention with its scale and mask, rope_table, the head
  names(gguf=…)  GGUF names that differ from the standard ones; weights(gguf=…) what that format changed in the values
  ignore(…)      stored tensors that are not needed
%d specifications are shipped; inferflow spec list shows them`, ErrNoSpec, id, len(Library()))
}

// maxSource bounds the text of a specification that is not in the binary.
const maxSource = 1 << 20

// notRead says that a specification's file cannot be read, without the name of the call.
func notRead(path string, err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	hint := near.Hint(strings.TrimSuffix(path, ".star"), Library())
	return fmt.Errorf("spec: the specification %s cannot be read: %w%s", path, err, hint)
}

func readForeign(path string, o Options) (*Spec, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, notRead(path, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxSource { // a pipe would be waited for
		return nil, fmt.Errorf("spec: the specification %s is no regular file or larger than %d bytes", path, maxSource)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, notRead(path, err)
	}
	s := &Spec{Name: filepath.Base(path), Source: string(src), Foreign: true, opts: o}
	if filepath.Ext(path) == ".json" {
		m, err := ParseModelSpec(src)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		s.Source, s.notes = m.Starlark(s.Name), m.Notes
	}
	return s, nil
}

// Trace runs the specification over the files' configuration and tensor
// shapes. All missing, mis-shaped and unused tensors are reported at once, in
// an error that wraps ErrTrace. A specification that is not in the binary runs
// in a child process under limits of memory and time.
func (s *Spec) Trace(files Files) (*Traced, error) {
	if s.part {
		files = innerText(files)
	}
	var t *Traced
	var err error
	if s.Foreign {
		t, err = traceChild(s, files)
	} else {
		t, err = trace(s.fileName(), s.Source, files, s.opts)
	}
	if err != nil {
		return nil, err
	}
	t.SpecName = s.Name
	t.Notes = append(s.notes, t.Notes...)
	t.Lines = strings.Split(strings.TrimSuffix(s.Source, "\n"), "\n")
	return t, nil
}

func (s *Spec) fileName() string {
	if s.Foreign {
		return s.Name
	}
	return s.Name + ".star"
}
