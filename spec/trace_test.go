package spec

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// shapeFiles are the files of a model without their bytes.
type shapeFiles struct {
	binding, arch string
	config        map[string]any
	tensors       map[string]tensor.View
}

func (f *shapeFiles) Binding() string        { return f.binding }
func (f *shapeFiles) Architecture() string   { return f.arch }
func (f *shapeFiles) Config() map[string]any { return f.config }

func (f *shapeFiles) Tensor(name string) (tensor.View, bool) {
	v, ok := f.tensors[name]
	return v, ok
}

func (f *shapeFiles) TensorNames() []string {
	var names []string
	for n := range f.tensors {
		names = append(names, n)
	}
	return names
}

// loadShapes reads testdata/shapes/NAME.json, made by testdata/make_shapes.py.
func loadShapes(t testing.TB, name string) *shapeFiles {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "shapes", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Binding, Architecture string
		Config                map[string]any
		Tensors               [][3]json.RawMessage
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&file); err != nil {
		t.Fatal(err)
	}
	f := &shapeFiles{binding: file.Binding, arch: file.Architecture, config: file.Config, tensors: map[string]tensor.View{}}
	for _, e := range file.Tensors {
		var v tensor.View
		var typ string
		for i, dst := range []any{&v.Name, &typ, &v.Shape} {
			if err := json.Unmarshal(e[i], dst); err != nil {
				t.Fatal(err)
			}
		}
		var ok bool
		if v.Type, ok = quant.ParseType(typ); !ok {
			t.Fatalf("%s: no type %q", v.Name, typ)
		}
		f.tensors[v.Name] = v
	}
	return f
}

func resolveAndTrace(f Files, o Options) (*Traced, error) {
	s, err := Resolve(f, o)
	if err != nil {
		return nil, err
	}
	return s.Trace(f)
}

// TestGolden traces every model of testdata/shapes and compares the text of
// its graph and of the configuration it read.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/shapes/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatal("no shapes")
	}
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), ".json")
		t.Run(name, func(t *testing.T) {
			tr, err := resolveAndTrace(loadShapes(t, name), Options{})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", "golden", name+".txt"), report(tr))
		})
	}
}

func report(tr *Traced) string {
	var b strings.Builder
	fmt.Fprintf(&b, "specification %s\n", tr.SpecName)
	for _, c := range tr.Config {
		v, _ := json.Marshal(c.Value)
		fmt.Fprintf(&b, "%s = %s   %s\n", c.Key, v, c.Source)
	}
	if len(tr.Ignored) > 0 {
		fmt.Fprintf(&b, "ignored %s\n", strings.Join(tr.Ignored, " "))
	}
	b.WriteString(graph.Text(tr.Graph, graph.PrintOptions{Fold: true}))
	return b.String()
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update after checking):\n%s", path, got)
	}
}
