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
	return loadFrom(t, filepath.Join("testdata", "shapes", name+".json"))
}

func loadFrom(t testing.TB, path string) *shapeFiles {
	t.Helper()
	raw, err := os.ReadFile(path)
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
	released, err := filepath.Glob("testdata/released/*.json")
	if err != nil {
		t.Fatal(err)
	}
	paths = append(paths, released...)
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), ".json")
		t.Run(name, func(t *testing.T) {
			tr, err := resolveAndTrace(loadFrom(t, p), Options{})
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

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// manyExperts is the shape of an 80-layer model with 256 experts a layer.
func manyExperts() *shapeFiles {
	const layers, experts, h, inner, d = 80, 256, 4096, 1536, 128
	f := &shapeFiles{binding: HF, tensors: map[string]tensor.View{}, config: map[string]any{
		"model_type": "qwen3_moe", "num_hidden_layers": layers, "num_experts": experts, "hidden_size": h, "num_attention_heads": 64,
		"head_dim": d, "moe_intermediate_size": inner, "norm_topk_prob": true,
	}}
	add := func(name string, shape ...int) {
		f.tensors[name] = tensor.View{Name: name, Type: quant.BF16, Shape: shape}
	}
	add("model.embed_tokens.weight", 1000, h)
	add("lm_head.weight", 1000, h)
	add("model.norm.weight", h)
	for i := range layers {
		l := fmt.Sprintf("model.layers.%d.", i)
		add(l+"input_layernorm.weight", h)
		add(l+"post_attention_layernorm.weight", h)
		add(l+"self_attn.q_proj.weight", 64*d, h)
		add(l+"self_attn.k_proj.weight", 4*d, h)
		add(l+"self_attn.v_proj.weight", 4*d, h)
		add(l+"self_attn.o_proj.weight", h, 64*d)
		add(l+"self_attn.q_norm.weight", d)
		add(l+"self_attn.k_norm.weight", d)
		add(l+"mlp.gate.weight", experts, h)
		for e := range experts {
			x := fmt.Sprintf("%smlp.experts.%d.", l, e)
			add(x+"gate_proj.weight", inner, h)
			add(x+"up_proj.weight", inner, h)
			add(x+"down_proj.weight", h, inner)
		}
	}
	return f
}

func BenchmarkTrace(b *testing.B) {
	for _, c := range []struct {
		name  string
		files *shapeFiles
	}{{"80 layers, 256 experts", manyExperts()}, {"30 layers, GGUF", loadShapes(b, "smollm2.gguf")}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := resolveAndTrace(c.files, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestConcurrent traces in several goroutines, which share the standard library.
func TestConcurrent(t *testing.T) {
	f := loadShapes(t, "llama.gguf")
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			_, err := resolveAndTrace(f, Options{})
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
