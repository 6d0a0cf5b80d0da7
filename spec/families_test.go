package spec

import (
	"os"
	"strings"
	"testing"
)

// TestFamiliesTable: docs/families.md tells of every shipped specification.
func TestFamiliesTable(t *testing.T) {
	table, err := os.ReadFile("../docs/families.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Library() {
		if !strings.Contains(string(table), "["+name+"](../spec/library/"+name+".star)") {
			t.Errorf("docs/families.md lacks %s; run scripts/reference/families.py BINARY ZOO internal/model/testdata/predefined OUT_OF_VARIANTS > docs/families.md", name)
		}
	}
}

// TestDescribe reads what a specification says of itself.
func TestDescribe(t *testing.T) {
	for _, name := range Library() {
		i, err := Describe(name)
		if err != nil {
			t.Fatal(err)
		}
		if i.Title == "" || i.Lines < 5 || len(i.ModelTypes)+len(i.Classes)+len(i.GGUF) == 0 {
			t.Errorf("%s: its first line is a comment that says what it is, and it says what it serves: got %+v", name, i)
		}
	}
}
