package spec

import (
	"fmt"
	"strings"
	"testing"

	"go.starlark.net/starlark"
)

// TestStdLoads: files of the standard library load each other, not in a circle
// and nothing else.
func TestStdLoads(t *testing.T) {
	files := map[string]string{
		"a.star":     "load(\"@std/b.star\", \"twice\")\ndef f(n): return twice(n) + 1",
		"b.star":     "def twice(n): return 2 * n",
		"x.star":     "load(\"@std/y.star\", \"g\")",
		"y.star":     "load(\"@std/x.star\", \"g\")\nh = 1",
		"self.star":  "load(\"@std/self.star\", \"g\")",
		"other.star": "load(\"../library/z.star\", \"g\")",
	}
	l := &stdLoader{modules: map[string]starlark.StringDict{}, read: func(name string) ([]byte, error) {
		if s, ok := files[name]; ok {
			return []byte(s), nil
		}
		return nil, fmt.Errorf("none")
	}}
	m, err := l.load(nil, "@std/a.star")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := starlark.Call(&starlark.Thread{}, m["f"], starlark.Tuple{starlark.MakeInt(3)}, nil); err != nil || v.String() != "7" {
		t.Errorf("%v, %v", v, err)
	}
	if m["twice"] != nil {
		t.Error("what a file loads is not its own")
	}
	for name, want := range map[string]string{
		"@std/x.star": "@std/x.star → @std/y.star → @std/x.star", "@std/self.star": "circle", "@std/other.star": "only the standard library", "@std/no.star": "there is no",
	} {
		if _, err := l.load(nil, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		if len(l.open) != 0 {
			t.Fatalf("%s: %v stay open", name, l.open)
		}
	}
}
