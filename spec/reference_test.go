package spec

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.starlark.net/starlark"
)

const regenerate = "run: go generate ./spec"

// TestReferenceFresh holds docs/spec-reference.md against the documentation in the code.
func TestReferenceFresh(t *testing.T) {
	got, err := Reference()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "docs", "spec-reference.md")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("docs/spec-reference.md is not what the code says; %s", regenerate)
	}
}

// signatureParams reads "f(a, b=1)" into names and whether each has a default.
func signatureParams(sig string) (names []string, optional map[string]bool) {
	optional = map[string]bool{}
	_, list, ok := strings.Cut(sig, "(")
	if !ok {
		return nil, optional
	}
	list = strings.TrimSuffix(list, ")")
	depth, start := 0, 0
	for i, r := range list + "," {
		switch r {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth > 0 {
				continue
			}
			name, _, has := strings.Cut(strings.TrimSpace(list[start:i]), "=")
			start = i + 1
			if name != "" {
				names = append(names, name)
				optional[name] = has
			}
		}
	}
	return names, optional
}

// TestWordsDocumented holds every function's documentation against what its
// code unpacks: each parameter stands in the signature, with a default if and
// only if it may be left out, and is told of.
func TestWordsDocumented(t *testing.T) {
	unpacked := unpackedParams(t)
	seen := map[string]bool{}
	for _, s := range vocabulary {
		for _, w := range s.words {
			if seen[w.name] {
				t.Errorf("%s stands twice in the vocabulary", w.name)
			}
			seen[w.name] = true
			checkWord(t, w, unpacked[funcName(w.f)])
		}
	}
	for name := range predeclared {
		if !seen[name] && name != "math" {
			t.Errorf("%s is not in the vocabulary", name)
		}
	}
}

func checkWord(t *testing.T, w word, params []string) {
	t.Helper()
	if strings.Contains(w.doc, "`") || strings.Contains(w.doc, "—") {
		t.Errorf("%s: plain words, please: no backquote or dash in its documentation", w.name)
	}
	d := parseWord(w.doc)
	if !strings.HasPrefix(d.signature, w.name+"(") || len(strings.TrimSpace(d.text)) < 4 {
		t.Errorf("%s: its documentation begins with %q; want a signature and then what it does", w.name, d.signature)
		return
	}
	names, optional := signatureParams(d.signature)
	told := map[string]bool{}
	for _, p := range d.params {
		for _, n := range strings.Split(p.names, ", ") {
			told[n] = true
		}
	}
	for _, p := range params {
		name := strings.TrimSuffix(strings.TrimRight(p, "?"), "_")
		if !slices.Contains(names, name) {
			t.Errorf("%s: the signature %q lacks %s", w.name, d.signature, name)
		} else if may := strings.HasSuffix(p, "?"); may != optional[name] && !(w.name == "slice" && name == "from") {
			t.Errorf("%s: %s: may be left out: %v, but the signature says %v", w.name, name, may, optional[name])
		}
		if !told[name] {
			t.Errorf("%s: its documentation does not tell of %s", w.name, name)
		}
	}
	for n := range told {
		if !slices.Contains(names, n) {
			t.Errorf("%s: its documentation tells of %s, which the signature lacks", w.name, n)
		}
	}
	if len(params) > 0 && len(names) != len(params) {
		t.Errorf("%s: the signature has %d parameters, the code unpacks %d: %q", w.name, len(names), len(params), params)
	}
}

// funcName is the name of the function, without that of a closure in it.
func funcName(f builtinFunc) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	name = name[strings.LastIndex(name, "/")+1:]
	return strings.Split(name, ".")[1]
}

// unpackedParams finds for each function of the package the parameters that it
// unpacks, itself or through functions that it hands its arguments on to.
func unpackedParams(t *testing.T) map[string][]string {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	direct, calls := map[string][]string{}, map[string][]string{}
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				direct[fn.Name.Name], calls[fn.Name.Name] = unpacks(fn)
			}
		}
	}
	for name, list := range calls {
		for _, c := range list {
			if len(direct[name]) == 0 {
				direct[name] = direct[c]
			}
		}
	}
	return direct
}

// unpacks lists the parameters of a function's call of UnpackArgs, and the
// functions that get its arguments whole.
func unpacks(fn *ast.FuncDecl) (params, calls []string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "UnpackArgs" {
			for _, a := range call.Args[3:] {
				if lit, ok := a.(*ast.BasicLit); ok {
					s, _ := strconv.Unquote(lit.Value)
					params = append(params, s)
				}
			}
			return true
		}
		for _, a := range call.Args {
			if id, ok := a.(*ast.Ident); ok && id.Name == "kwargs" {
				switch f := call.Fun.(type) {
				case *ast.Ident:
					calls = append(calls, f.Name)
				case *ast.SelectorExpr:
					calls = append(calls, f.Sel.Name)
				}
			}
		}
		return true
	})
	return params, calls
}

// TestLibraryDocumented: every function of @std says what it does.
func TestLibraryDocumented(t *testing.T) {
	for _, file := range stdNames() {
		m, err := loadStd(nil, file)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range m {
			if f, ok := v.(*starlark.Function); ok && !strings.HasPrefix(name, "_") && len(f.Doc()) < 10 {
				t.Errorf("%s: %s has no docstring", file, name)
			}
		}
	}
}

// TestConfigDocumented: every function of c is told of.
func TestConfigDocumented(t *testing.T) {
	all := strings.Join(docConfig, "\n")
	for name := range configMethods {
		if !regexp.MustCompile(`(?m)^c\.` + name + `\(`).MatchString(all) {
			t.Errorf("c.%s is not documented", name)
		}
	}
}
