package shelf

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/tensor"
)

// mapped is a part over a file of its own, with tensors of four bytes.
func mapped(t *testing.T, name string, tensors ...string) *Part {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, make([]byte, 4*len(tensors)+1), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := sys.MapFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	p := &Part{Name: path, Mapping: m}
	for i, n := range tensors {
		p.Add(tensor.View{Name: n, Data: m.Bytes()[4*i : 4*i+4]}, 4*i)
	}
	return p
}

func TestShelf(t *testing.T) {
	a, b := mapped(t, "a", "x", "y"), mapped(t, "b", "y", "z")
	b.Add(tensor.View{Name: "copy", Data: []byte{1}}, -1)
	s, err := New([]*Part{a, b}, map[string]string{"y": "b", "x": "a"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range s.Tensors() {
		names = append(names, v.Name)
	}
	if !slices.Equal(names, []string{"x", "y", "z", "copy"}) || !slices.Equal(s.Files(), []string{a.Name, b.Name}) {
		t.Errorf("%v in %v", names, s.Files())
	}
	if v, ok := s.Tensor("y"); !ok || &v.Data[0] != &b.Mapping.Bytes()[0] {
		t.Error("y is not that of b")
	}
	for _, n := range []string{"x", "y", "copy", "none"} {
		if err := s.Release(n); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	if err := errors.Join(s.Close(), s.Close(), s.Release("x")); err != nil || a.Mapping != nil {
		t.Error(err)
	}
	if _, ok := s.Tensor("x"); ok || len(s.Tensors()) > 0 {
		t.Error("tensors of closed files")
	}
}

func TestMisfits(t *testing.T) {
	for says, c := range map[string]struct {
		parts []*Part
		where map[string]string
	}{
		`tensor "y" stands there and in`:                {[]*Part{mapped(t, "a", "x", "y"), mapped(t, "b", "y")}, nil},
		`tensor "x" stands there`:                       {[]*Part{mapped(t, "a", "x", "x")}, nil},
		`tensor "q" should be in b, which lacks it`:     {[]*Part{mapped(t, "a", "x")}, map[string]string{"q": "b", "x": "a", "r": "b"}},
		`tensor "x" should be in other, which lacks it`: {[]*Part{mapped(t, "a", "x")}, map[string]string{"x": "other"}},
	} {
		_, err := New(c.parts, c.where)
		if !errors.Is(err, ErrTensor) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
		for _, p := range c.parts {
			if p.Mapping != nil {
				t.Errorf("%s: %s stays open", says, p.Name)
			}
		}
	}
	if s := (Shelf{}); s.Close() != nil || s.Release("x") != nil || len(s.Files()) > 0 {
		t.Error("an empty shelf")
	}
	if q := Quote(strings.Repeat("\x1b", 200)); !strings.Contains(q, "(200 bytes)") || strings.Contains(q, "\x1b") {
		t.Error(q)
	}
}
