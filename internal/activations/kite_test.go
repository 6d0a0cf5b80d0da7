package activations

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// The family of the tutorial (docs/kite) and PyTorch's activations of it.
var kite = filepath.Join("..", "..", "docs", "kite")

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spec.ChildCommand {
		os.Exit(spec.ChildMain(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// compared runs docs/kite by its specification, changed, and compares it.
func compared(t *testing.T, edits ...string) (*Report, []string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(kite, "kite.star"))
	if err != nil {
		t.Fatal(err)
	}
	src := string(raw)
	for i := 0; i+1 < len(edits); i += 2 {
		if !strings.Contains(src, edits[i]) {
			t.Fatalf("kite.star does not hold %q", edits[i])
		}
		src = strings.ReplaceAll(src, edits[i], edits[i+1])
	}
	path := filepath.Join(t.TempDir(), "kite.star")
	if err := os.WriteFile(path, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(kite, model.Options{NoTokenizer: true, Spec: spec.Options{SpecFile: path, AllowUnused: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, err := OpenReference(filepath.Join(kite, "activations.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rep, err := Compare(m.Exact(), r, 1e-4, whole(r.IDs))
	if err != nil {
		t.Fatal(err)
	}
	return rep, strings.Split(src, "\n")
}

func whole(ids []int32) *batch.Batch {
	b := &batch.Batch{Tokens: ids, Seqs: []batch.Seq{{N: int32(len(ids)), Length: int32(len(ids))}}}
	for i := range ids {
		b.Pos, b.Out = append(b.Pos, int32(i)), append(b.Out, int32(i))
	}
	return b
}

func TestKiteAgrees(t *testing.T) {
	rep, _ := compared(t)
	if rep.First != nil || len(rep.Apart) > 0 || rep.Worst > 1e-5 || rep.Compared < 60 {
		t.Errorf("%d values compared, largest error %g, first difference %+v, other shapes %v", rep.Compared, rep.Worst, rep.First, rep.Apart)
	}
	var names []string
	for _, m := range rep.Matches {
		names = append(names, m.Name)
	}
	for _, want := range []string{"embed", "layers.0.attention.wqkv", "layers.2.norm_1:in", "layers.3", "layers.1.mlp.down", "logits"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s was not compared: %v", want, names)
		}
	}
}

// TestIdleRename: a renaming that meets no name is told from one that does.
func TestIdleRename(t *testing.T) {
	r, err := OpenReference(filepath.Join(kite, "activations.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m, err := model.Open(kite, model.Options{NoTokenizer: true, Spec: spec.Options{SpecFile: filepath.Join(kite, "kite.star"), AllowUnused: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, c := range []struct {
		rename [][2]string
		idle   string
	}{{nil, ""}, {[][2]string{{"attention.", "attention."}, {"foo", "bar"}}, "foo"}, {[][2]string{{"attention.", "attention."}, {"mlp", "mlp"}}, ""}} {
		r.Rename = c.rename
		if _, err := Compare(m.Exact(), r, 1e-4, whole(r.IDs)); err != nil {
			t.Fatal(err)
		}
		if idle := r.Idle(); idle != c.idle {
			t.Errorf("%v: %q met no name, want %q", c.rename, idle, c.idle)
		}
	}
}

// TestPlantedErrors plants the usual mistakes. The line that is named, or one
// of the lines that lie behind values that agree, is the wrong one.
func TestPlantedErrors(t *testing.T) {
	for _, c := range []struct {
		what   string
		edits  []string
		line   string // the line that is named
		wrong  string // a line that must be among the suspects
		row    int
		factor float64
	}{
		{what: "scale", edits: []string{"1 / math.sqrt(c.n_embd)", "1 / math.sqrt(d)"}, line: "attention.gate", wrong: "a = attention(", row: 1},
		{what: "rotation", edits: []string{`"interleaved"`, `"half"`}, line: "attention.gate", wrong: "rope(z", row: 1},
		{what: "window", edits: []string{`c.get("window", 256))`, `c.get("window", 256) + 1)`}, line: "attention.gate", wrong: "a = attention(", row: 5},
		{what: "offset", edits: []string{`"norm_1", eps, offset = 1`, `"norm_1", eps`}, line: "norm_1", wrong: "norm_1"},
		{what: "factor of the embedding", edits: []string{" * math.sqrt(c.n_embd)\n", "\n"}, line: "ground", wrong: "x = embed", factor: 5.65685},
		{what: "activation", edits: []string{"relu2", "silu"}, line: "mlp.down", wrong: "relu2"},
		{what: "order of the parts", edits: []string{"q, k, v = split(y, [per, 1, 1]", "q, v, k = split(y, [per, 1, 1]"}, line: "attention.gate", wrong: "split(y"},
		{what: "something left out", edits: []string{`x += param(L + "line") * ground`, "pass"}, line: "x = embed", wrong: "x = embed"},
		{what: "eps", edits: []string{`c.get("norm_eps", 1e-5)`, "1e-2"}, line: "norm_1", wrong: "norm_1"},
		{what: "soft cap", edits: []string{`c.get("logit_cap", None)`, "None"}, line: "softcap", wrong: "softcap"},
	} {
		t.Run(c.what, func(t *testing.T) {
			rep, src := compared(t, c.edits...)
			d := rep.First
			if d == nil {
				t.Fatal("no difference was found")
			}
			if text := src[d.Line.Line-1]; !strings.Contains(text, c.line) {
				t.Errorf("line %d is named: %s (%s)", d.Line.Line, text, d.Match)
			}
			wrong := c.wrong
			for i := 0; i+1 < len(c.edits); i += 2 {
				wrong = strings.ReplaceAll(wrong, c.edits[i], c.edits[i+1])
			}
			if !slices.ContainsFunc(append(d.Lines, d.Line), func(l graph.Line) bool { return strings.Contains(src[l.Line-1], wrong) }) {
				t.Errorf("the lines %v do not hold %q", d.Lines, wrong)
			}
			if d.FirstRow != c.row {
				t.Errorf("it differs from row %d on, want %d", d.FirstRow, c.row)
			}
			if got := d.Factor; c.factor != 0 && (got < c.factor-1e-4 || got > c.factor+1e-4) {
				t.Errorf("factor %g, want %g", got, c.factor)
			}
		})
	}
}

// TestNamesake: a value that differs from the reference's of that name is no
// error where all that is computed from it agrees.
func TestNamesake(t *testing.T) {
	rep, _ := compared(t, `x = rms_norm(x, "norm", eps, offset = 1)`, `x = rms_norm(name(x, "layers.0.norm_1"), "norm", eps, offset = 1)`)
	n := 0
	for _, m := range rep.Matches {
		if m.Namesake {
			n++
		}
	}
	if rep.First != nil || n != 1 || rep.Worst > 1e-5 {
		t.Errorf("first difference %+v, %d namesakes, largest error %g", rep.First, n, rep.Worst)
	}
}

func TestNoReference(t *testing.T) {
	_, err := OpenReference(filepath.Join(kite, "model.safetensors"))
	if !errors.Is(err, ErrNoReference) {
		t.Errorf("got %v", err)
	}
}

// TestNames shows how values are named.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"model.layers.3.a", "model.layers.3.b.c"}, "model.layers.3"},
		{[]string{"h.0.attn.0.q", "h.0.attn.0.k"}, "h.0.attn.0"},
		{[]string{"layers.1.a", "layers.2.b"}, ""},
		{[]string{"one"}, ""},
	} {
		if got := commonPrefix(c.names); got != c.want {
			t.Errorf("%v: %q, want %q", c.names, got, c.want)
		}
	}
	w := graph.Tensor("w", []int{10, 4})
	rows, err := graph.SliceWeight(w, 0, 2, 10, 2)
	if err == nil {
		rows, err = graph.SliceWeight(rows, 0, 1, 3, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := &graph.Node{Op: graph.OpLinear, Attr: &graph.LinearAttr{W: rows}}
	if got := columns(n); !slices.Equal(got, []int{4, 6}) {
		t.Errorf("columns %v", got)
	}
}
