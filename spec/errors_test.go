package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// traceText traces a specification's text in process over changed files.
func traceText(f Files, text string) (*Traced, error) {
	return trace("m.star", text, f, Options{AllowUnused: true})
}

// lineOf is the line of a shipped specification that holds a text.
func lineOf(t *testing.T, name, text string) string {
	t.Helper()
	src, err := librarySource(name)
	before, _, ok := strings.Cut(src, text)
	if err != nil || !ok {
		t.Fatalf("%s does not hold %q", name, text)
	}
	return fmt.Sprintf("%s.star:%d", name, 1+strings.Count(before, "\n"))
}

func TestProblemsAtOnce(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	delete(f.tensors, "model.layers.1.mlp.up_proj.weight")
	delete(f.tensors, "model.norm.weight")
	f.tensors["model.layers.2.self_attn.o_proj.weight"] = tensor.View{Type: quant.BF16, Shape: tensor.Shape{48, 47}}
	f.tensors["surplus.weight"] = tensor.View{Type: quant.F32, Shape: tensor.Shape{3}}
	f.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = tensor.View{Type: quant.F32, Shape: tensor.Shape{4}}
	_, err := resolveAndTrace(f, Options{})
	if !errors.Is(err, ErrTrace) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"4 problems",
		lineOf(t, "llama", "gated_ffn(h") + ": missing tensor model.layers.1.mlp.up_proj.weight",
		lineOf(t, "llama", "return linear(") + ": missing tensor model.norm.weight",
		lineOf(t, "llama", "o_proj") + ": linear: the input [48] needs a weight [out, 48], got [48 47] of model.layers.2.self_attn.o_proj.weight",
		"unused tensor surplus.weight F32 [3]",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "inv_freq") {
		t.Errorf("a buffer is reported:\n%v", err)
	}
}

func TestQuantizedFolder(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	f.config["quantization_config"] = map[string]any{"quant_method": "gptq", "bits": 4}
	if _, err := resolveAndTrace(f, Options{}); !errors.Is(err, ErrQuantized) || !strings.Contains(err.Error(), `"gptq"`) {
		t.Errorf("got %v", err)
	}
	f.config["quantization_config"] = "fp8"
	if _, err := resolveAndTrace(f, Options{}); !errors.Is(err, ErrQuantized) || !strings.Contains(err.Error(), `quantization_config "fp8" is no object`) {
		t.Errorf("a string: %v", err)
	}
}

func TestProblemsOfAKind(t *testing.T) {
	f := loadShapes(t, "smollm2.gguf")
	for i := range 30 {
		delete(f.tensors, fmt.Sprintf("blk.%d.ffn_up.weight", i))
	}
	_, err := resolveAndTrace(f, Options{})
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "30 problems") || !strings.Contains(err.Error(), "(and 29 more of the kind)") {
		t.Errorf("got %v", err)
	}
}

func TestGGUFNamesInMessages(t *testing.T) {
	f := loadShapes(t, "llama.gguf")
	delete(f.tensors, "blk.1.attn_k.weight")
	_, err := resolveAndTrace(f, Options{})
	if err == nil || !strings.Contains(err.Error(), "missing tensor model.layers.1.self_attn.k_proj.weight (in the file: blk.1.attn_k.weight)") {
		t.Errorf("got %v", err)
	}
}

func TestLanguageErrors(t *testing.T) {
	body := func(s string) string {
		return "def model(c):\n    x = embed(\"model.embed_tokens\")\n    " + s + "\n    return x\n"
	}
	for name, c := range map[string]struct{ text, says string }{
		"missing key":     {body("c.frobnication"), "m.star:3: config.json lacks frobnication; use c.get("},
		"missing in sub":  {body("c.sub(\"rope_parameters\").nope"), "lacks rope_parameters.nope"},
		"heads":           {body("x = heads(x, 7)"), "m.star:3: heads: [48] does not divide into heads of 7"},
		"two shapes":      {body("x = x + heads(x, 8)"), "m.star:3: add: [48] and [6 8] do not fit"},
		"bias demanded":   {body("x = linear(x, \"lm_head\", bias = True)"), "missing tensor lm_head.bias"},
		"unknown act":     {body("x = activation(\"sinusoid\", x)"), `no function "sinusoid"`},
		"bad layout":      {body("x = rope(x, rope_table(c, dim = 8), layout = \"spiral\")"), "layout is"},
		"division":        {body("x = x / 0"), "division of a value by zero"},
		"key as value":    {body("x = {x: 1}"), "cannot be a key"},
		"two caches":      {body("q = heads(x, 8)\n    x = attention(q, q, q, cache = q)"), "takes the place of k and v"},
		"stacked pattern": {body("stacked(\"a.b\", 3)"), "takes a name with {e}"},
		"stacked count":   {body("stacked(\"nothing.{e}.x\", 2)"), "missing tensor nothing.0.x.weight (and 1 more of the kind)"},
		"layers":          {body("layers(1 << 29)"), "is no number of layers"},
		"split":           {body("split(x, [10, 20])"), "the parts [10 20] do not add up"},
		"scaling":         {"YARN = {\"rope_type\": \"spiral\"}\n" + strings.Replace(body("rope_table(c.sub(\"nothing\"), dim = 8, default = YARN)"), "\n", "\n", 1), `no scaling "spiral"`},
		"top level":       {"x = embed(\"a\")\n", "m.star:1: missing tensor a.weight"},
		"frozen":          {"L = []\ndef model(c):\n    L.append(1)\n", "frozen"},
		"std line":        {"load(\"@std/blocks.star\", \"gated_ffn\")\n" + body("x = gated_ffn(heads(x, 8), \"model.layers.0.mlp\")"), "m.star:4: linear: the input [6 8] needs a weight [out, 8], got [112 48] of model.layers.0.mlp.gate_proj.weight (in @std/blocks.star:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := traceText(loadShapes(t, "llama.hf"), c.text)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, expected …%s…", err, c.says)
			}
		})
	}
}

func TestBlockTypesKeepColumns(t *testing.T) {
	f := loadShapes(t, "smollm2.gguf")
	for text, says := range map[string]string{
		"transpose(w)":                   "only whole rows of a block type can be moved",
		"w * 2":                          "only whole rows",
		"slice(w, 0, 64)":                "only whole rows",
		"reshape(w, [1152, 288])":        "only whole rows",
		"rows(w, 0, 64)":                 "",
		"unpermute(w, 64)":               "",
		"stack([w, w])":                  "",
		"concat([w, w], axis = 0)":       "",
		"reshape(w, [9, 64, 576])":       "",
		"permute(w, range(576), axis=0)": "",
	} {
		src := "def model(c):\n    w = tensor(\"model.layers.0.self_attn.q_proj\")\n    " + text + "\n    return embed(\"model.embed_tokens\")\n"
		_, err := traceText(f, src)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: got %v, expected %q", text, err, says)
		}
	}
}

// TestMXFP4 traces experts stored as blocks and scales, as releases have them.
func TestMXFP4(t *testing.T) {
	f := loadShapes(t, "gpt_oss.hf")
	f.config["hidden_size"], f.config["intermediate_size"] = 64, 128
	wide := map[int]int{48: 64, 112: 128, 224: 256}
	for name, v := range f.tensors {
		for i, d := range v.Shape {
			if w, ok := wide[d]; ok && !(strings.Contains(name, "self_attn.q_proj") && i == 0 || strings.Contains(name, "o_proj.weight") && i == 1 || strings.HasSuffix(name, "q_proj.bias")) {
				v.Shape[i] = w
			}
		}
		if strings.HasSuffix(name, "experts.gate_up_proj") || strings.HasSuffix(name, "experts.down_proj") {
			delete(f.tensors, name)
			rows, cols := v.Shape[2], v.Shape[1]
			f.tensors[name+"_blocks"] = tensor.View{Type: quant.U8, Shape: tensor.Shape{4, rows, cols / 32, 16}}
			f.tensors[name+"_scales"] = tensor.View{Type: quant.U8, Shape: tensor.Shape{4, rows, cols / 32}}
		}
	}
	tr, err := resolveAndTrace(f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range tr.Graph.Nodes {
		if a, ok := n.Attr.(*graph.ExpertsAttr); ok && n.Layer == 0 {
			want := "slice(mxfp4(model.layers.0.mlp.experts.gate_up_proj_blocks, model.layers.0.mlp.experts.gate_up_proj_scales); axis 1 1:256:2)[4,128,64]"
			if got := graph.WeightText(a.Up); got != want {
				t.Errorf("got %s", got)
			}
			return
		}
	}
	t.Error("there are no experts")
}

func TestResolve(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	f.config["model_type"], f.config["architectures"] = "new_thing", []any{"NewThing"}
	_, err := Resolve(f, Options{})
	if !errors.Is(err, ErrNoSpec) || !strings.Contains(err.Error(), "docs/spec.md") || !strings.Contains(err.Error(), "new_thing") {
		t.Errorf("got %v", err)
	}
	if _, err := Resolve(f, Options{Name: "nope"}); !errors.Is(err, ErrNoSpec) {
		t.Errorf("got %v", err)
	}
	if s, err := Resolve(f, Options{Name: "llama"}); err != nil || s.Name != "llama" {
		t.Errorf("got %v, %v", s, err)
	}
	g := loadShapes(t, "llama.gguf")
	for name, want := range map[string]string{"Mistral 7B v0.1": "mistral", "Yi 6B": "llama"} {
		g.config["general.name"] = name
		if s, err := Resolve(g, Options{}); err != nil || s.Name != want {
			t.Errorf("%s: got %v, %v", name, s, err)
		}
	}
	g.arch = "frobnicator"
	if _, err := Resolve(g, Options{}); !errors.Is(err, ErrNoSpec) || !strings.Contains(err.Error(), "frobnicator") {
		t.Errorf("got %v", err)
	}
}

// TestMeant: errors of names say which was meant.
func TestMeant(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	for source, want := range map[string]string{
		`load("@std/blocks.star", "gated_fn")` + "\ndef model(c):\n    gated_ffn(1)":      "x.star:1:27: @std/blocks.star has no gated_fn; did you mean gated_ffn?",
		`load("@std/blocks.star", "gated_fn")` + "\ndef model(c):\n    gated_fn(1)":       "has no gated_fn; did you mean gated_ffn?",
		`load("@std/blocks.star", "nothing_of_it")` + "\ndef model(c):\n    gated_ffn(1)": "@std/blocks.star has no nothing_of_it",
		`load("@std/blocks.star", "qkv")` + "\ndef model(c):\n    gated_ffn(1)":           `undefined: gated_ffn (it is in the standard library: load("@std/blocks.star", "gated_ffn"))`,
		"def model(c):\n    return embd(1)":                                               "undefined: embd (did you mean embed?)",
		"serve(model_type = [])\ndef model(c):\n    return 1":                             "undefined: serve (did you mean serves?)",
		"def model(c):\n    hidden = 1\n    return hiden":                                 "undefined: hiden (did you mean hidden?)",
		"def model(c):\n    return wholly_unknown_thing":                                  "undefined: wholly_unknown_thing",
	} {
		_, err := trace("x.star", source, f, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "did you mean") > 1 {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
	for o, want := range map[*Options]string{{Name: "qwn3"}: "did you mean qwen3?", {SpecFile: "qwen33.star"}: "did you mean qwen3?",
		{SpecFile: "there-is-none.star"}: "the specification there-is-none.star cannot be read: "} {
		if _, err := Resolve(f, *o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "stat ") {
			t.Errorf("%+v: %v, want %q", *o, err, want)
		}
	}
}

func TestUserValues(t *testing.T) {
	f := loadShapes(t, "mistral.hf")
	tr, err := resolveAndTrace(f, Options{Set: map[string]any{"sliding_window": 5}})
	if err != nil {
		t.Fatal(err)
	}
	if w := tr.Graph.Caches[0].Window; w != 5 {
		t.Errorf("window %d", w)
	}
	for _, v := range tr.Config {
		if v.Key == "sliding_window" && v.Source != "set by the user" {
			t.Errorf("%+v", v)
		}
	}
	f.config["sliding_window"] = nil // null: none
	if tr, err = resolveAndTrace(f, Options{}); err != nil || tr.Graph.Caches[0].Window != 0 {
		t.Errorf("window %v, %v", tr, err)
	}
	delete(f.config, "sliding_window") // missing: the family's 4096
	if tr, err = resolveAndTrace(f, Options{}); err != nil || tr.Graph.Caches[0].Window != 4096 {
		t.Errorf("window %v, %v", tr, err)
	}
}

// TestRopeTables holds every scaling against values of transformers 5
// (testdata/make_rope.py).
func TestRopeTables(t *testing.T) {
	var cases []struct {
		Name       string
		Config     map[string]any
		Dim        int
		Theta      float64
		Partial    float64
		Freq, Long []float64
		Factor     float64
	}
	readJSON(t, "testdata/rope.json", &cases)
	for _, c := range cases {
		f := &shapeFiles{binding: HF, config: c.Config}
		tr := newTracer(f, Options{})
		a := ropeArgs{dim: c.Dim, theta: c.Theta, thetaKey: "rope_theta", partial: c.Partial, scaled: true, factors: true}
		cfg := tr.config.root()
		settings, err := ropeSettings(cfg, "", true, nil)
		if err != nil {
			t.Fatal(err)
		}
		tab, err := tr.ropeTable(cfg, a, settings)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		near := func(what string, got, want []float64) {
			if len(got) != len(want) {
				t.Errorf("%s: %d %s, expected %d", c.Name, len(got), what, len(want))
				return
			}
			for i := range got {
				if math.Abs(got[i]-want[i]) > 2e-6*math.Abs(want[i]) {
					t.Errorf("%s: %s %d is %g, expected %g", c.Name, what, i, got[i], want[i])
				}
			}
		}
		near("frequencies", tab.Freq, c.Freq)
		near("long frequencies", tab.LongFreq, c.Long)
		near("factor", []float64{tab.Factor}, []float64{c.Factor})
	}
}

func TestProbit(t *testing.T) {
	v, err := starlark.EvalOptions(fileOptions, &starlark.Thread{}, "x", "math.probit(0.95)", predeclared)
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := starlark.AsFloat(v); math.Abs(f-1.6448536269514722) > 1e-12 {
		t.Errorf("got %v", v)
	}
}

// FuzzConfig changes a model's configuration at will: it ends in a graph or an
// error.
func FuzzConfig(f *testing.F) {
	names := []string{"llama.hf", "gemma3_text.hf", "gpt_oss.hf", "gpt_oss.gguf", "phi3.hf", "gpt2.hf", "qwen3_moe.hf", "mixtral.gguf"}
	for i, n := range names {
		raw, err := json.Marshal(loadShapes(f, n).config)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, raw)
	}
	f.Add(0, []byte(`{"model_type":"llama","num_hidden_layers":16384,"hidden_size":-1,"num_attention_heads":0,"rope_scaling":{"type":"yarn"}}`))
	f.Fuzz(func(t *testing.T, i int, raw []byte) {
		files := loadShapes(t, names[(i%len(names)+len(names))%len(names)])
		var config map[string]any
		if json.Unmarshal(raw, &config) != nil {
			return
		}
		files.config = config
		_, _ = resolveAndTrace(files, Options{})
	})
}

// A cap below 0, or one that float32 has no number for, means nothing.
func TestCaps(t *testing.T) {
	for _, cap := range []any{-0.05, -1e300, 1e300, 1e-300, math.NaN(), math.Inf(1)} {
		for _, key := range []string{"attn_logit_softcapping", "final_logit_softcapping"} {
			f := loadShapes(t, "gemma2.hf")
			f.config[key] = cap
			if _, err := resolveAndTrace(f, Options{}); err == nil || !strings.Contains(err.Error(), "want a finite number above 0") {
				t.Errorf("%s %v: %v", key, cap, err)
			}
		}
	}
	for _, cap := range []any{nil, 0.0, 1e-3, 50.0} {
		f := loadShapes(t, "gemma2.hf")
		f.config["attn_logit_softcapping"] = cap
		if _, err := resolveAndTrace(f, Options{}); err != nil {
			t.Errorf("%v: %v", cap, err)
		}
	}
}
