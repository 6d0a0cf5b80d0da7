package convert

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tokenizer"
)

// zoo is the folder of tiny models, named by INFERFLOW_ZOO or beside the repository.
func zoo(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("INFERFLOW_ZOO")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "zoo")
	}
	dir, err := filepath.Abs(dir) // tests join it to folders of their own
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "INDEX.tsv")); err != nil {
		t.Skipf("the zoo of tiny models is not at %s; set INFERFLOW_ZOO to its folder", dir)
	}
	return dir
}

// toGGUF are families of the zoo whose tensors come out, bit for bit, as
// llama.cpp's own converter writes them; among them rows that are reordered,
// values that are shifted, experts that are stacked or cut out of one matrix.
var toGGUF = []string{"llama", "qwen2", "qwen3", "qwen3_moe", "mixtral", "gemma", "glm", "olmo2", "granitemoe", "gpt_oss", "dbrx", "lfm2", "mamba2", "starcoder2"}

func TestToGGUF(t *testing.T) {
	dir := zoo(t)
	f32 := quant.F32
	for _, family := range toGGUF {
		t.Run(family, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "m.gguf")
			if err := Run(filepath.Join(dir, family), out, Options{Type: &f32}); err != nil {
				t.Fatal(err)
			}
			answers(t, out, readGolden(t, filepath.Join(dir, family, "golden.json")))
			sameTensors(t, out, filepath.Join(dir, "gguf", family+".gguf"))
		})
	}
}

func sameTensors(t *testing.T, a, b string) {
	t.Helper()
	f, err := gguf.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := gguf.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if len(f.Tensors()) != len(g.Tensors()) {
		t.Errorf("%d tensors, want %d", len(f.Tensors()), len(g.Tensors()))
	}
	for _, want := range g.Tensors() {
		got, ok := f.Tensor(want.Name)
		if !ok || got.Type != want.Type || !got.Shape.Equal(want.Shape) || string(got.Data) != string(want.Data) {
			t.Errorf("%s: %s %s, want %s %s, or other values", want.Name, got.Type, got.Shape, want.Type, want.Shape)
		}
	}
}

// TestToFolder writes GGUF files of llama.cpp's converter as folders.
func TestToFolder(t *testing.T) {
	dir := zoo(t)
	for _, family := range []string{"llama", "qwen2", "qwen3_moe", "mixtral", "gemma", "bloom", "falcon", "starcoder2", "gpt_oss", "granitemoe", "lfm2_moe", "llama4_text", "mamba2"} {
		t.Run(family, func(t *testing.T) {
			out := t.TempDir()
			if err := Run(filepath.Join(dir, "gguf", family+".gguf"), out, Options{}); err != nil {
				t.Fatal(err)
			}
			answers(t, out, readGolden(t, filepath.Join(dir, family, "golden.json")))
		})
	}
}

// TestKept converts models whose settings GGUF has no keys for: the file
// carries them, and a notice says what others will miss.
func TestKept(t *testing.T) {
	dir := zoo(t)
	for family, say := range map[string]string{"gemma2": "query_pre_attn_scalar", "mistral": "sliding_window", "llama": "", "t5": "otherwise"} {
		t.Run(family, func(t *testing.T) {
			var notes []string
			out := filepath.Join(t.TempDir(), "m.gguf")
			if err := Run(filepath.Join(dir, family), out, Options{Notice: func(s string) { notes = append(notes, s) }}); err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(notes, "; "); (text == "") != (say == "") || !strings.Contains(text, say) {
				t.Errorf("the notices are %q, want %q", text, say)
			}
			if family != "t5" {
				answers(t, out, readGolden(t, filepath.Join(dir, family, "golden.json")))
			}
		})
	}
}

func TestRefused(t *testing.T) {
	dir := zoo(t)
	for what, c := range map[string]struct{ in, out, say string }{
		"itself":         {"gguf/llama.gguf", filepath.Join(dir, "gguf", "llama.gguf"), "its own target"},
		"its own folder": {"llama", filepath.Join(dir, "llama"), "its own target"},
	} {
		t.Run(what, func(t *testing.T) {
			out := c.out
			if !filepath.IsAbs(out) {
				out = filepath.Join(t.TempDir(), out)
			}
			err := Run(filepath.Join(dir, c.in), out, Options{})
			if err == nil || !strings.Contains(err.Error(), c.say) {
				t.Errorf("got %v, want an error that says %q", err, c.say)
			}
		})
	}
}

// TestRoundTrip takes a made model from GGUF to a folder and back: the values
// are the same bits, and the tokenizer gives the same ids.
func TestRoundTrip(t *testing.T) {
	for what, o := range map[string]modeltest.Options{"bytes": {Template: "{{ messages }}"}, "pieces": {Pieces: true}, "blocks": {Types: map[string]quant.Type{"": quant.Q8_0}}} {
		t.Run(what, func(t *testing.T) {
			first := modeltest.Write(t, t.TempDir(), o)
			dir := filepath.Join(t.TempDir(), "folder")
			back := filepath.Join(t.TempDir(), "back.gguf")
			if err := Run(first, filepath.Join(dir, "weights.safetensors"), Options{}); err != nil {
				t.Fatal(err)
			}
			if err := Run(dir, back, Options{}); err != nil {
				t.Fatal(err)
			}
			if what != "blocks" {
				sameTensors(t, back, first)
			}
			f, err := safetensors.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			for _, path := range []string{dir, back} {
				sameIDs(t, first, path)
			}
		})
	}
}

func sameIDs(t *testing.T, a, b string) {
	t.Helper()
	x, err := model.OpenTokenizer(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := model.OpenTokenizer(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range probes {
		o := tokenizer.Options{AddSpecial: true, ParseSpecial: true}
		if got, want := y.Encode(p, o), x.Encode(p, o); !slices.Equal(got, want) {
			t.Errorf("%s: %q is %v, want %v", b, p, got, want)
			return
		}
	}
}

func TestTypes(t *testing.T) {
	f16, bf16 := quant.F16, quant.BF16
	first := modeltest.Write(t, t.TempDir(), modeltest.Options{})
	for _, typ := range []*quant.Type{nil, &f16, &bf16} {
		out := filepath.Join(t.TempDir(), "m.gguf")
		var last int64
		if err := Run(first, out, Options{Type: typ, Progress: func(done, total int64) { last = total - done }}); err != nil || last != 0 {
			t.Fatalf("%v, %d bytes left", err, last)
		}
		f, err := gguf.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		want := quant.F32
		if typ != nil {
			want = *typ
		}
		m, _ := f.Tensor("blk.0.ffn_up.weight")
		n, _ := f.Tensor("blk.0.ffn_norm.weight")
		if m.Type != want || n.Type != quant.F32 {
			t.Errorf("matrices are %s, norms %s", m.Type, n.Type)
		}
		f.Close()
	}
	big := modeltest.Write(t, t.TempDir(), modeltest.Options{Edit: func(_ string, v []float32) { v[0] = 1e6 }})
	if err := Run(big, filepath.Join(t.TempDir(), "m.gguf"), Options{Type: &f16}); err == nil || !strings.Contains(err.Error(), "bf16") {
		t.Errorf("1e6 as F16: %v", err)
	}
}
