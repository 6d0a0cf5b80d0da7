package rules

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stems are beginnings of names that no identifier or string may contain,
// whatever follows; whole names stand in testdata/families.txt.
var stems = []string{"llama", "mistral", "mixtral", "qwen", "gemma", "phi3", "gpt2", "gpt_oss", "gpt-oss", "olmo", "starcoder", "falcon", "bloom",
	"deepseek", "cohere", "granite", "mamba", "minicpm", "modernbert", "nemotron", "stablelm", "zamba", "exaone", "ernie", "dbrx", "jetmoe", "kimi", "longcat", "lfm2"}

// notFamilies are names that contain one and mean a program, a file format, a
// rotary scaling or a model that is fetched.
var notFamilies = regexp.MustCompile(`(?i)llama\.cpp|llama_cpp|llama2\.?c\b|ik_llama|llama-(bench|server|cli|perplexity|quantize)|ollama|smollm2|\bllama3\b|gguf-metadata`)

// familyExempt are the paths that may name families: a file format that is
// called after one, and tests.
func familyExempt(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "format/llama2c/")
}

// TestNoFamilyInCode greps the names of families over the identifiers,
// strings and comments of all Go that is no test.
func TestNoFamilyInCode(t *testing.T) {
	names := familyNames(t)
	for _, f := range files(t) {
		if familyExempt(f.path) {
			continue
		}
		for _, text := range texts(f) {
			clean := strings.ToLower(notFamilies.ReplaceAllString(text, ""))
			for _, stem := range stems {
				if strings.Contains(clean, stem) {
					t.Errorf("%s: %q names the family %q; only specifications may", f.path, text, stem)
				}
			}
		}
		for _, text := range append(texts(f), comments(f)...) {
			clean := words(notFamilies.ReplaceAllString(text, ""))
			if m := names.FindString(clean); m != "" {
				t.Errorf("%s: %q names the family %q; only specifications may", f.path, text, strings.TrimSpace(m))
			}
		}
	}
}

// familyNames matches any name of testdata/families.txt in what words made.
func familyNames(t *testing.T) *regexp.Regexp {
	raw, err := os.ReadFile(filepath.Join("testdata", "families.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var alts []string
	for _, name := range strings.Fields(string(raw)) {
		alts = append(alts, regexp.QuoteMeta(strings.TrimSpace(words(name))))
	}
	return regexp.MustCompile(` (` + strings.Join(alts, "|") + `) `)
}

var (
	camel    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	notWords = regexp.MustCompile(`[^a-z0-9]`)
)

// words writes a text as lower-case words with blanks around each: what is
// joined by capitals, points, dashes or underscores falls apart.
func words(s string) string {
	return " " + notWords.ReplaceAllString(strings.ToLower(camel.ReplaceAllString(s, "$1 $2")), " ") + " "
}

// texts are the identifiers and strings of a file.
func texts(f file) []string {
	seen := map[string]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Ident:
			seen[x.Name] = true
		case *ast.BasicLit:
			if x.Kind == token.STRING {
				seen[x.Value] = true
			}
		}
		return true
	})
	var out []string
	for s := range seen {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func comments(f file) (out []string) {
	for _, g := range f.ast.Comments {
		for _, c := range g.List {
			out = append(out, c.Text)
		}
	}
	return out
}

// TestFamilyWords shows what the grep finds.
func TestFamilyWords(t *testing.T) {
	names := familyNames(t)
	for text, want := range map[string]bool{
		"LlamaModel": true, "newT5": true, "a phi-3 layer": true, "Phi": true, "gpt_oss": true, "gptOss": true, "gpt-oss": true,
		"adopt": false, "options": false, "opt": true, "philox": false, "llama3": false, "the llama family": true,
	} {
		if got := names.MatchString(words(text)); got != want {
			t.Errorf("%q: found %v, want %v", text, got, want)
		}
	}
}
