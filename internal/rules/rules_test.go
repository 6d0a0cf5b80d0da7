// Package rules holds the house rules as tests: which package may import
// which, how large files and functions may be, that packages say what they
// are, that no Go code names a model family. It holds no other code.
package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const module = "github.com/inferflow/inferflow"

// layers lists the packages from the bottom up: a package imports only what
// stands in a lower line, or what its own line's list allows.
var layers = [][]string{
	{"config", "quant", "internal/sys", "internal/near"},
	{"tensor", "tokenizer/pattern", "tokenizer", "format/shelf", "format/gguf", "format/safetensors", "format/pickle", "format/llama2c", "format"},
	{"internal/graph", "internal/program", "internal/batch", "internal/kv", "internal/kernel/vec", "internal/kernel/attn", "internal/kernel/gemm", "internal/weight", "spec"},
	{"internal/device", "internal/device/ref", "internal/device/cpu", "internal/device/devicetest", "internal/compile", "internal/partition", "internal/model", "internal/model/modeltest", "internal/convert"},
	{"internal/sched", "internal/sample", "chat/jinja", "chat", "internal/engine", "internal/complete", "internal/embed"},
	{"internal/server", "internal/pull", "internal/bench", "internal/activations", "internal/cluster", "internal/demo"},
	{"", "cmd/inferflow", "internal/demo/write"},
}

// inside lists the imports within a line that are allowed; "*" any.
var inside = map[string][]string{
	"internal/kernel/attn":       {"internal/kernel/vec"},
	"internal/model/modeltest":   {"*"},
	"tensor":                     {"quant"},
	"tokenizer":                  {"tokenizer/pattern"},
	"format/shelf":               {"tensor"},
	"format/gguf":                {"tensor", "format/shelf"},
	"format/safetensors":         {"tensor", "format/shelf"},
	"format/pickle":              {"tensor", "format/shelf", "format/safetensors"},
	"format/llama2c":             {"tensor", "format/shelf", "format/gguf"},
	"format":                     {"tensor", "format/gguf", "format/safetensors", "format/pickle", "format/llama2c"},
	"internal/program":           {"internal/graph"},
	"internal/kv":                {"internal/batch"},
	"internal/weight":            {"internal/graph"},
	"spec":                       {"internal/graph"},
	"internal/device/ref":        {"internal/device"},
	"internal/device/cpu":        {"internal/device", "internal/device/ref"},
	"internal/device/devicetest": {"internal/device", "internal/device/ref", "internal/device/cpu", "internal/compile"},
	"internal/model":             {"*"},
	"internal/convert":           {"internal/model", "internal/model/modeltest"},
	"chat":                       {"chat/jinja"},
	"internal/engine":            {"internal/sched", "internal/sample"},
	"internal/complete":          {"chat", "internal/engine", "internal/sched", "internal/sample"},
	"cmd/inferflow":              {"", "*"},
}

// never lists imports that the layers would allow and the design forbids.
var never = map[string][]string{
	"spec":                 {"format", "format/gguf", "format/safetensors", "internal/program", "internal/kernel", "internal/batch", "internal/kv"},
	"internal/graph":       {"format", "internal/batch"},
	"internal/sched":       {"internal/model", "internal/device", "internal/compile", "spec", "tokenizer"},
	"internal/engine":      {"internal/model", "tokenizer", "spec", "format"},
	"internal/server":      {"tensor", "internal/device", "internal/kernel", "internal/program"},
	"internal/device":      {"spec", "internal/model"},
	"internal/compile":     {"internal/device", "format", "spec"},
	"internal/pull":        {"internal/engine", "internal/model", "format", "tensor"},
	"internal/activations": {"internal/engine", "internal/server", "format/gguf", "internal/device/cpu"},
	"chat":                 {"internal/model", "tokenizer", "spec"},
}

func root(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(filepath.Dir(dir))
}

type file struct {
	path, dir string
	lines     int
	ast       *ast.File
	set       *token.FileSet
	src       string
}

// files parses all Go files of the module; generator modules are left out.
func files(t *testing.T) []file {
	top := root(t)
	var out []file
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && p != top && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, p, src, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, p)
		dir := filepath.ToSlash(filepath.Dir(rel))
		if dir == "." {
			dir = ""
		}
		out = append(out, file{filepath.ToSlash(rel), dir, strings.Count(string(src), "\n"), f, set, string(src)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func level(pkg string) int {
	for i, l := range layers {
		for _, p := range l {
			if p == pkg {
				return i
			}
		}
	}
	return -1
}

func TestLayers(t *testing.T) {
	for _, f := range files(t) {
		if strings.HasSuffix(f.path, "_test.go") || f.dir == "internal/rules" {
			continue
		}
		if level(f.dir) < 0 {
			t.Errorf("%s: package %s has no place in the table of layers", f.path, f.dir)
			continue
		}
		for _, im := range f.ast.Imports {
			p := strings.Trim(im.Path.Value, `"`)
			if p != module && !strings.HasPrefix(p, module+"/") {
				continue
			}
			checkImport(t, f, strings.TrimPrefix(strings.TrimPrefix(p, module), "/"))
		}
	}
}

func checkImport(t *testing.T, f file, p string) {
	for _, n := range never[f.dir] {
		if p == n || strings.HasPrefix(p, n+"/") {
			t.Errorf("%s: package %s must never import %s", f.path, f.dir, p)
		}
	}
	a, b := level(f.dir), level(p)
	if b < 0 || b > a {
		t.Errorf("%s: %s stands above %s", f.path, p, f.dir)
	}
	if a != b {
		return
	}
	for _, ok := range inside[f.dir] {
		if ok == "*" || ok == p {
			return
		}
	}
	t.Errorf("%s: %s and %s stand side by side", f.path, f.dir, p)
}

func TestPackageDocs(t *testing.T) {
	docs := map[string]string{}
	for _, f := range files(t) {
		if f.ast.Doc != nil && (!strings.HasSuffix(f.path, "_test.go") || f.dir == "internal/rules") {
			docs[f.dir] += f.ast.Doc.Text()
		} else if _, ok := docs[f.dir]; !ok {
			docs[f.dir] = ""
		}
	}
	for dir, doc := range docs {
		if len(doc) < 60 {
			t.Errorf("package %q has no doc comment that says what it holds", dir)
		}
	}
}

var badNames = regexp.MustCompile(`(^|/)(util|utils|common|base|helpers|types|misc)$`)

func TestPackageNames(t *testing.T) {
	for _, f := range files(t) {
		if badNames.MatchString(f.dir) {
			t.Errorf("%s: a package is named for what it holds", f.dir)
		}
	}
}

// exempt are kernels and tables: generated code and data.
func exempt(f file) bool {
	return strings.Contains(f.src[:min(len(f.src), 400)], "DO NOT EDIT") || strings.HasSuffix(f.path, "_table.go") || strings.HasSuffix(f.path, "_test.go")
}

func TestSizes(t *testing.T) {
	for _, f := range files(t) {
		if exempt(f) {
			continue
		}
		if f.lines > 800 {
			t.Errorf("%s: %d lines; 800 at most", f.path, f.lines)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1
			if n > 80 {
				t.Errorf("%s: %s has %d lines; 80 at most", f.path, fn.Name.Name, n)
			}
		}
	}
}

func TestNoInitRegistration(t *testing.T) {
	for _, f := range files(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "init" && fn.Recv == nil {
				t.Errorf("%s: init; keep one visible table in the caller", f.path)
			}
		}
	}
}

// TestReadmeSpec holds the whole specification that the README shows against the shipped one.
func TestReadmeSpec(t *testing.T) {
	top := root(t)
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```python\n")
	shown, _, ok := strings.Cut(rest, "```\n")
	shipped, err := os.ReadFile(filepath.Join(top, "spec", "library", "qwen3.star"))
	if err != nil || !ok || strings.TrimSpace(shown) != strings.TrimSpace(string(shipped)) {
		t.Errorf("README.md does not show spec/library/qwen3.star as it is (%v)", err)
	}
}
