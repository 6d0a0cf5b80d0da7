package spec

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/near"
	"github.com/inferflow/inferflow/tensor"
)

// Info tells what a shipped specification is.
type Info struct {
	Name       string
	Title      string // its first comment
	Lines      int    // of code: neither empty nor comment
	ModelTypes []string
	Classes    []string // architectures
	GGUF       []string
	When       bool // some rule has a further condition
	// NotCovered is what its comment "# Not covered: …" says, lines that follow included.
	NotCovered string
}

// Describe reads a shipped specification's head.
func Describe(name string) (Info, error) {
	i := Info{Name: name}
	src, err := librarySource(name)
	if err != nil {
		return i, noShipped(name)
	}
	for n, line := range strings.Split(src, "\n") {
		s := strings.TrimSpace(line)
		if n == 0 {
			i.Title = strings.TrimSpace(strings.TrimPrefix(s, "#"))
		}
		if s != "" && !strings.HasPrefix(s, "#") {
			i.Lines++
		}
	}
	if _, rest, ok := strings.Cut("\n"+src, "\n# Not covered: "); ok {
		for n, line := range strings.Split(rest, "\n") {
			if n > 0 && !strings.HasPrefix(line, "#") {
				break
			}
			i.NotCovered = strings.TrimSpace(i.NotCovered + " " + strings.TrimSpace(strings.TrimPrefix(line, "#")))
		}
	}
	t := newTracer(noFiles{}, Options{})
	if _, err := starlark.ExecFileOptions(fileOptions, t.thread, name+".star", src, predeclared); err != nil {
		return i, t.fail(err)
	}
	for _, r := range t.serves {
		i.ModelTypes = append(i.ModelTypes, r.modelTypes...)
		i.Classes = append(i.Classes, r.architectures...)
		i.GGUF = append(i.GGUF, r.gguf...)
		i.When = i.When || r.when != nil
	}
	return i, nil
}

// noFiles are the files of no model.
type noFiles struct{}

func (noFiles) Binding() string                        { return HF }
func (noFiles) Architecture() string                   { return "" }
func (noFiles) Config() map[string]any                 { return map[string]any{} }
func (noFiles) Tensor(string) (v tensor.View, ok bool) { return v, false }
func (noFiles) TensorNames() []string                  { return nil }

// Show is the text of a shipped specification, or of a file of the standard
// library under its @std name.
func Show(name string) (string, error) {
	if file, ok := strings.CutPrefix(name, stdPrefix); ok {
		if !slices.Contains(stdNames(), name) {
			return "", fmt.Errorf("spec: %q: there are %s", name, strings.Join(stdNames(), ", "))
		}
		b, err := sources.ReadFile("std/" + file)
		return string(b), err
	}
	src, err := librarySource(strings.TrimSuffix(name, ".star"))
	if err != nil {
		return "", noShipped(name)
	}
	return src, nil
}

func noShipped(name string) error {
	hint := near.Hint(name, Library())
	if hint == "" {
		hint = "; inferflow spec list shows them"
	}
	return noName{fmt.Sprintf("spec: %q is neither a file nor the name of a shipped specification%s", name, hint)}
}

// noName is ErrNoSpec in the words that fit a name.
type noName struct{ says string }

func (e noName) Error() string { return e.says }
func (e noName) Unwrap() error { return ErrNoSpec }
