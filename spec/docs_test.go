package spec

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// TestGuideExample traces the guide's first specification.
func TestGuideExample(t *testing.T) {
	guide, err := os.ReadFile("../docs/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```python\n(# tiny.star.*?)```").FindSubmatch(guide)
	if m == nil {
		t.Fatal("the guide has no example")
	}
	tr, err := trace("tiny.star", string(m[1]), loadShapes(t, "llama.hf"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := resolveAndTrace(loadShapes(t, "llama.hf"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Graph.Nodes) != len(want.Graph.Nodes) {
		t.Errorf("the example has %d operations, the shipped one %d", len(tr.Graph.Nodes), len(want.Graph.Nodes))
	}
	// It serves a GGUF of its kind alike, the order of rows included.
	if tr, err = trace("tiny.star", string(m[1]), loadShapes(t, "llama.gguf"), Options{}); err != nil {
		t.Fatal(err)
	}
	if want, err = resolveAndTrace(loadShapes(t, "llama.gguf"), Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := linears(tr.Graph), linears(want.Graph); !slices.Equal(got, want) {
		t.Errorf("the example multiplies by %q, the shipped one by %q", got, want)
	}
}

// TestTutorial holds what the tutorial shows of its family against the files.
func TestTutorial(t *testing.T) {
	guide, err := os.ReadFile("../docs/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(guide), "\r\n", "\n")
	star, err := os.ReadFile("../docs/kite/kite.star")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "```python\n"+strings.TrimSpace(string(star))+"\n```") {
		t.Error("docs/spec.md does not show docs/kite/kite.star as it is")
	}
	f := loadKite(t)
	draft, err := Draft(f)
	if err != nil {
		t.Fatal(err)
	}
	shown, _, _ := strings.Cut(draft, "\n# What to look at")
	if !strings.Contains(text, "```python\n"+strings.TrimSpace(shown)+"\n```") {
		t.Errorf("docs/spec.md does not show the draft of docs/kite:\n%s", shown)
	}
	tr, err := trace("kite.star", string(star), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if fits := fmt.Sprintf("kite.star fits: %d operations, %d layers", len(tr.Graph.Nodes), tr.Graph.Layers); !strings.Contains(text, fits) {
		t.Errorf("docs/spec.md lacks %q", fits)
	}
}

// loadKite are the files of the tutorial's family without their bytes.
func loadKite(t *testing.T) *shapeFiles {
	t.Helper()
	f := &shapeFiles{binding: HF, tensors: map[string]tensor.View{}}
	readJSON(t, "../docs/kite/config.json", &f.config)
	raw, err := os.ReadFile("../docs/kite/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	var header map[string]struct {
		Dtype string
		Shape []int
	}
	if err := json.Unmarshal(raw[8:8+binary.LittleEndian.Uint64(raw)], &header); err != nil {
		t.Fatal(err)
	}
	for name, h := range header {
		if name != "__metadata__" {
			f.tensors[name] = tensor.View{Name: name, Type: quant.BF16, Shape: h.Shape}
		}
	}
	return f
}

// linears lists the weights of a graph's linears, sorted.
func linears(g *graph.Graph) []string {
	var list []string
	for _, n := range g.Nodes {
		if a, ok := n.Attr.(*graph.LinearAttr); ok {
			list = append(list, graph.WeightText(a.W))
		}
	}
	slices.Sort(list)
	return list
}

// TestRecipes traces what the guide says can be said with the words that there are.
func TestRecipes(t *testing.T) {
	guide, err := os.ReadFile("../docs/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```python\n(# recipes.star.*?)```").FindSubmatch(guide)
	if m == nil {
		t.Fatal("the guide has no recipes")
	}
	use := string(m[1]) + `
unchecked("num_attention_heads", "num_key_value_heads")
def model(c):
    x = embed("model.embed_tokens")
    y = heads(x, 8)
    chosen_experts(softmax(slice(x, 0, 8)), 8, 0.9)
    a = hidden_keys(y, y, y, slice(x, 0, 1)) + strided(y, y, y, 3)
    a += slots(y, y, y, -softplus(reshape(slice(x, 0, 24), [6, 4])), 4)
    x += merge(a) + over_text(x) + pair_rows("model.embed_tokens", 199) + linear(x, tensor("model.layers.0.self_attn.q_proj"))
    return linear(x, "lm_head", tied = "model.embed_tokens")
`
	defined := regexp.MustCompile(`(?m)^def (\w+)`).FindAllStringSubmatch(string(m[1]), -1)
	for _, d := range defined {
		if strings.Count(use, d[1]+"(") < 2 {
			t.Errorf("the recipe %s is not tried", d[1])
		}
	}
	if _, err := trace("recipes.star", use, loadShapes(t, "llama.hf"), Options{AllowUnused: true}); err != nil {
		t.Error(err)
	}
}
