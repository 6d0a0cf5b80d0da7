package compile

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// shapes are the files of small models without their bytes, one a family and binding.
const shapes = "../../spec/testdata/shapes"

type shapeFiles struct {
	binding, arch string
	config        map[string]any
	tensors       map[string]tensor.View
	views         []tensor.View
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
	for _, v := range f.Views() {
		names = append(names, v.Name)
	}
	return names
}

// Views lists the tensors by name, as writers of safetensors order them.
func (f *shapeFiles) Views() []tensor.View {
	if len(f.views) != len(f.tensors) {
		f.views = nil
		for _, name := range slices.Sorted(maps.Keys(f.tensors)) {
			f.views = append(f.views, f.tensors[name])
		}
	}
	return f.views
}

func loadShapes(t testing.TB, name string) *shapeFiles {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(shapes, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Binding, Architecture string
		Config                map[string]any
		Tensors               [][3]json.RawMessage
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&file); err != nil {
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

// compiled traces and fuses the model of shapes/NAME.json and names its specification.
func compiled(t *testing.T, name string, o Options) (*program.Program, string) {
	t.Helper()
	f := loadShapes(t, name)
	s, err := spec.Resolve(f, spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := s.Trace(f)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Fuse(tr.Graph, o)
	if err != nil {
		t.Fatal(err)
	}
	return p, s.Name
}

func shapeNames(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(shapes, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s: %v", shapes, err)
	}
	var names []string
	for _, p := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(p), ".json"))
	}
	return names
}

// TestGolden holds the compiled layers of every shipped family to their text
// in testdata/golden; -update writes it.
func TestGolden(t *testing.T) {
	var families []string
	for _, name := range shapeNames(t) {
		t.Run(name, func(t *testing.T) {
			p, family := compiled(t, name, Options{})
			families = append(families, family)
			golden(t, name, program.Text(p))
		})
	}
	for _, family := range spec.Library() {
		if !slices.Contains(families, family) {
			t.Errorf("specification %s: no model of %s is of it", family, shapes)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
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
		t.Fatalf("%v; go test ./internal/compile -run TestGolden -update writes it", err)
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			t.Fatalf("%s, line %d: compiled to\n%s\nwant\n%s\n(-update rewrites it)", path, i+1, y, x)
		}
	}
}

// TestStepsOfALayer pins the number of steps of one layer: at most 9 for
// the dense family whose shape most models share.
func TestStepsOfALayer(t *testing.T) {
	for _, x := range []struct {
		name string
		most int
	}{{"llama.hf", 5}, {"llama.gguf", 5}, {"smollm2.gguf", 5}, {"qwen3.hf", 5}, {"phi3.hf", 5}, {"mixtral.hf", 4}, {"gpt_oss.hf", 4}, {"gemma2.hf", 9}, {"ministral3.hf", 6}, {"cohere.hf", 5}, {"falcon.hf", 5}, {"bloom.hf", 5}, {"exaone4.hf", 7}} {
		t.Run(x.name, func(t *testing.T) {
			p, _ := compiled(t, x.name, Options{})
			steps := map[int]int{}
			for _, s := range p.Steps {
				if s.Kind != program.KindRows { // which stand once, where the wanted rows part
					steps[s.Layer]++
				}
			}
			for l := range p.Layers {
				if steps[l] == 0 || steps[l] > x.most {
					t.Errorf("layer %d has %d steps, at most %d expected", l, steps[l], x.most)
				}
			}
		})
	}
}

// TestUnfused checks that every node can run by itself: each step is an Op, a
// place where the wanted rows part, or an attention, and says why.
func TestUnfused(t *testing.T) {
	for _, name := range shapeNames(t) {
		p, _ := compiled(t, name, Options{NoFusion: true})
		for _, s := range p.Steps {
			if s.Kind != program.KindOp && s.Kind != program.KindRows && s.Kind != program.KindPut && s.Kind != program.KindAttention {
				t.Errorf("%s: unfused program has a step %s", name, s.Kind)
			}
			if s.Kind == program.KindOp && s.Why == "" {
				t.Errorf("%s: Op step of layer %d gives no reason", name, s.Layer)
			}
		}
	}
}

// TestCoverage checks that fused steps compute every node that the result
// depends on, and that a step reads no value before it is made.
func TestCoverage(t *testing.T) {
	for _, name := range shapeNames(t) {
		p, _ := compiled(t, name, Options{})
		covered := map[int]bool{}
		made := map[program.Buf]bool{}
		for i := range p.Steps {
			for _, n := range p.Steps[i].Nodes {
				covered[n] = true
			}
			p.Steps[i].Visit(func(b *program.Buf, write bool) {
				if !write && !made[*b] {
					t.Errorf("%s: step %d (%s) reads a value that no step has made", name, i, p.Steps[i].Kind)
				}
				if write {
					made[*b] = true
				}
			})
		}
		if !made[p.Logits] {
			t.Errorf("%s: no step makes the result", name)
		}
		need := map[int]bool{p.Graph.Outputs[0].Node: true}
		for i := len(p.Graph.Nodes) - 1; i >= 0; i-- {
			n := p.Graph.Nodes[i]
			if !need[i] {
				continue
			}
			for _, in := range n.In {
				need[in] = true
			}
			if !covered[i] && n.Op != "reshape" && n.Op != "tokens" && n.Op != "const" && n.Op != "slice" {
				t.Errorf("%s: node %d (%s, line %s) belongs to no step", name, i, n.Op, n.Line)
			}
		}
	}
}
