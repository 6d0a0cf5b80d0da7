package spec

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
)

// TestMain lets the test binary be its own tracing child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildCommand {
		os.Exit(ChildMain(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

func writeSpec(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "foreign.star")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestForeignAgrees traces shipped specifications as if they were strangers'.
func TestForeignAgrees(t *testing.T) {
	for _, c := range [][2]string{{"llama", "llama.gguf"}, {"gpt_oss", "gpt_oss.hf"}, {"mixtral", "mixtral.hf"}} {
		src, err := librarySource(c[0])
		if err != nil {
			t.Fatal(err)
		}
		f := loadShapes(t, c[1])
		want, err := resolveAndTrace(f, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := resolveAndTrace(f, Options{SpecFile: writeSpec(t, src)})
		if err != nil {
			t.Fatal(err)
		}
		text := func(tr *Traced) string {
			return strings.ReplaceAll(report(tr), "foreign.star", c[0]+".star")
		}
		got.SpecName = want.SpecName
		if text(got) != text(want) {
			t.Errorf("%s: the child's graph differs:\n%s", c[1], text(got))
		}
		if !reflect.DeepEqual(got.Unused, want.Unused) || got.MaxPositions != want.MaxPositions {
			t.Errorf("%s: lists differ", c[1])
		}
		if err := graph.Validate(got.Graph); err != nil {
			t.Error(err)
		}
	}
}

// TestForeignLimits holds strangers' specifications against the limits.
func TestForeignLimits(t *testing.T) {
	body := func(s string) string { return "def model(c):\n" + s + "\n    return embed(\"model.embed_tokens\")\n" }
	for name, c := range map[string]struct{ text, says string }{
		"list bomb":     {body("    x = [0] * (1 << 28)"), "memory"},
		"string bomb":   {body("    s = \"x\" * 1000\n    for i in range(60):\n        s = s + s"), ""},
		"squares":       {body("    n = 12345678901234567890\n    for i in range(30):\n        n = n * n"), ""},
		"endless loop":  {body("    for i in range(1000000000):\n        pass"), "step"},
		"nested loops":  {body("    for i in range(1000000):\n        for j in range(1000000):\n            x = [j]"), ""},
		"graph bomb":    {body("    x = embed(\"model.embed_tokens\")\n    for i in range(100000000):\n        x = x + x"), ""},
		"weight bomb":   {body("    w = tensor(\"model.norm\")\n    for i in range(100):\n        w = concat([w, w])\n    param(w)"), ""},
		"const bomb":    {body("    const([1.0] * (1 << 26))"), ""},
		"recursion":     {"def f(n):\n    return f(n)\ndef model(c):\n    return f(1)\n", "called recursively"},
		"while":         {body("    while True:\n        pass"), "while"},
		"escapes":       {body("    fail(\"\\x1b[31m red \\x00\")"), "·[31m red ·"},
		"long fail":     {body("    fail(\"x\" * 100000)"), " …"},
		"file":          {"load(\"/etc/passwd\", \"x\")\ndef model(c):\n    pass\n", "only the standard library"},
		"dots":          {"load(\"@std/../library/llama.star\", \"model\")\n", "only the standard library"},
		"unknown std":   {"load(\"@std/nope.star\", \"x\")\n", "there is no"},
		"open":          {body("    open(\"/etc/passwd\")"), "undefined: open"},
		"syntax":        {"def model(c:\n", "foreign.star:1"},
		"no model":      {"x = 1\n", "no function model"},
		"returns none":  {"def model(c):\n    pass\n", "returns a value"},
		"deep nesting":  {body("    x = " + strings.Repeat("[", 100000) + strings.Repeat("]", 100000)), ""},
		"sort callback": {body("    sorted(range(100000000), key = lambda x: -x)"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := resolveAndTrace(loadShapes(t, "llama.hf"), Options{SpecFile: writeSpec(t, c.text), AllowUnused: true})
			if err == nil || !errors.Is(err, ErrTrace) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, expected …%s…", err, c.says)
			}
			if err != nil && len(err.Error()) > 9000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			t.Logf("%.300v", err)
		})
	}
}

func TestForeignFile(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	if _, err := Resolve(f, Options{SpecFile: filepath.Join(t.TempDir(), "none.star")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	big := writeSpec(t, strings.Repeat("#", maxSource+1))
	if _, err := Resolve(f, Options{SpecFile: big}); err == nil {
		t.Error("a text of a megabyte is taken")
	}
	// A shipped specification goes before the folder's own.
	s, err := Resolve(f, Options{FolderSpec: big})
	if err != nil || s.Name != "llama" || s.Foreign {
		t.Errorf("got %v, %v", s, err)
	}
	f.config["model_type"], f.config["architectures"] = "new_thing", []any{"NewThing"}
	s, err = Resolve(f, Options{FolderSpec: writeSpec(t, "def model(c):\n    pass\n")})
	if err != nil || !s.Foreign {
		t.Errorf("got %v, %v", s, err)
	}
}
