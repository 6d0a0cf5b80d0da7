package spec

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/tensor"
)

// TestDraftAgrees drafts specifications for models that are built in the usual
// ways: each traces at once and multiplies by the same weights as the shipped one.
func TestDraftAgrees(t *testing.T) {
	for _, name := range []string{"llama.hf", "qwen2.hf", "qwen3.hf", "starcoder2.hf", "gpt2.hf", "phi3.hf", "mistral.hf", "mixtral.hf", "qwen3_moe.hf"} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join("testdata", "shapes", name+".json")); err != nil {
				t.Skip("no such shapes")
			}
			f := loadShapes(t, name)
			text, err := Draft(f)
			if err != nil {
				t.Fatal(err)
			}
			got, err := trace("draft.star", text, f, Options{})
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			want, err := resolveAndTrace(f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if g, w := linears(got.Graph), linears(want.Graph); !slices.Equal(g, w) {
				t.Errorf("the draft multiplies by %q, the shipped specification by %q\n%s", g, w, text)
			}
		})
	}
}

// TestDraftRuns drafts for every folder of the shapes: a draft is a program that
// runs, whatever it does not read, or it is refused with a specification to start from.
func TestDraftRuns(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "shapes", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if !strings.HasSuffix(name, ".hf") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f := loadShapes(t, name)
			text, err := Draft(f)
			if err != nil {
				if !errors.Is(err, ErrDraft) || strings.Contains(err.Error(), "drafts are made") && !strings.Contains(err.Error(), "spec show ") {
					t.Errorf("got %v", err)
				}
				return
			}
			_, err = trace("draft.star", text, f, Options{})
			var fit *FitError
			if err != nil && !errors.As(err, &fit) || strings.Contains(text, `L + ""`) {
				t.Fatalf("%v\n%s", err, text)
			}
			if fit != nil && slices.ContainsFunc(fit.Problems, func(p Problem) bool { return p.Kind == ProblemStop }) {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}

// TestDraftTells marks what it does not know.
func TestDraftTells(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	for i := range 2 {
		name := "model.layers." + string(rune('0'+i)) + ".self_attn.mystery.weight"
		f.tensors[name] = tensor.View{Name: name, Type: f.tensors["model.norm.weight"].Type, Shape: tensor.Shape{3, 5}}
	}
	f.config["strange_key"] = 7
	text, err := Draft(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"does not read: model.layers.{i}.self_attn.mystery [3, 5]\n", "does not read: strange_key = 7\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the draft lacks %q:\n%s", want, text)
		}
	}
}

// TestDraftServed: of a model that is served already it says so first, and it
// leads the list of those that are alike.
func TestDraftServed(t *testing.T) {
	for name, want := range map[string]string{"llama.hf": "llama", "qwen3.hf": "qwen3", "bart.hf": "bart", "llama.gguf": "llama"} {
		f := loadShapes(t, name)
		text, err := Draft(f)
		first := "# the shipped specification " + want + " serves this model"
		switch {
		case err != nil && !strings.Contains(err.Error(), ": the shipped specification "+want+" serves this model"):
			t.Errorf("%s: %v", name, err)
		case err != nil && strings.Contains(err.Error(), "drafts are made") && !strings.Contains(err.Error(), "called alike ("+want+", "):
			t.Errorf("%s: %v", name, err)
		case err == nil && (!strings.HasPrefix(text, first) || !strings.Contains(text, "most alike: "+want+", ")):
			t.Errorf("%s:\n%s", name, text)
		}
	}
	f := loadShapes(t, "llama.hf")
	f.config["model_type"], f.config["architectures"] = "new_thing", []any{"NewThing"}
	if text, err := Draft(f); err != nil || strings.Contains(text, "serves this model") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestDraftRefuses says why there is none.
func TestDraftRefuses(t *testing.T) {
	empty := &shapeFiles{binding: HF, config: map[string]any{}, tensors: map[string]tensor.View{"a.weight": {Name: "a.weight", Shape: tensor.Shape{2, 2}}}}
	odd := &shapeFiles{binding: HF, config: map[string]any{}, tensors: map[string]tensor.View{"layers.0.a.weight": {Name: "layers.0.a.weight", Shape: tensor.Shape{}}}}
	for _, f := range []*shapeFiles{loadShapes(t, "llama.gguf"), empty, odd} {
		if _, err := Draft(f); !errors.Is(err, ErrDraft) {
			t.Errorf("got %v", err)
		}
	}
}

// TestDraftOneLine keeps names of tensors and keys within their comments.
func TestDraftOneLine(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	delete(f.config, "rms_norm_eps")
	name := "model.layers.0.evil\nfail(\"pwn\")\r\x1b[2J"
	f.tensors[name] = tensor.View{Name: name, Type: f.tensors["model.norm.weight"].Type, Shape: tensor.Shape{3}}
	f.config["norm_eps\nfail()"], f.config["norm_eps + fail()"] = 1e-6, 1e-6
	text, err := Draft(f)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.Contains(line, "fail(") && !strings.HasPrefix(line, "#") || oneLine(line) != line {
			t.Errorf("the draft holds the line %q", line)
		}
	}
}
