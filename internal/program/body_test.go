package program

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// bodies is an empty body of each type.
var bodies = []Body{&Embed{}, &Norm{}, &Linear{}, &QKV{}, &Attention{}, &Join{}, &Stored{}, &Put{}, &MoE{}, &Index{}, &Heads{}, &Rows{}, &Pool{}, &Reverse{}, &Elementwise{},
	&Conv1D{}, &Recurrent{}, &OpStep{}}

// TestBodies: every buffer of every body is visited, with its own direction,
// and a copy shares none with the body that it is of.
func TestBodies(t *testing.T) {
	for _, b := range bodies {
		v := reflect.ValueOf(b).Elem()
		n := numbered(v, 1)
		if e, ok := b.(*Elementwise); ok {
			e.Code[0].Op = "load"
		}
		deep := b.clone()
		if !reflect.DeepEqual(deep, b) {
			t.Errorf("%T: the copy differs: %+v, want %+v", b, deep, b)
		}
		writes := 0
		deep.visit(func(x *Buf, write bool) {
			*x = 1000
			if write {
				writes++
			}
		})
		var seen []int // in the body, after the copy was changed
		b.visit(func(x *Buf, _ bool) { seen = append(seen, int(*x)) })
		slices.Sort(seen)
		if len(seen) != n-1 || seen[0] != 1 || seen[n-2] != n-1 || len(slices.Compact(seen)) != n-1 {
			t.Errorf("%T: it has the buffers 1 to %d, but visits %v", b, n-1, seen)
		}
		if _, put := b.(*Put); writes != 1 && !put {
			t.Errorf("%T: %d buffers are written", b, writes)
		}
	}
}

// numbered gives every buffer inside v a number from n on, and every list one
// entry; it returns the next number.
func numbered(v reflect.Value, n int) int {
	switch {
	case v.Type() == reflect.TypeFor[Buf]():
		v.SetInt(int64(n))
		return n + 1
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			n = numbered(v.Field(i), n)
		}
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			n = numbered(v.Index(i), n)
		}
	case v.Kind() == reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		n = numbered(v.Index(0), n)
	}
	return n
}

// TestAllBodies: bodies holds each type of the package that is one.
func TestAllBodies(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "clone" && f.Recv != nil {
				named = append(named, f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
			}
		}
	}
	for _, b := range bodies {
		name := reflect.TypeOf(b).Elem().Name()
		if !slices.Contains(named, name) {
			t.Errorf("%s has no clone of its own", name)
		}
		named = slices.DeleteFunc(named, func(n string) bool { return n == name })
	}
	if len(named) > 0 {
		t.Errorf("not in the list: %v", named)
	}
}
