package spec

import (
	"strings"
	"testing"
)

// TestBareNames opens a folder whose tensors lack the prefix of the model, as
// folders of embeddings do, with a specification that names it.
func TestBareNames(t *testing.T) {
	f := loadShapes(t, "qwen3.hf")
	for name, v := range f.tensors {
		if rest, ok := strings.CutPrefix(name, "model."); ok {
			delete(f.tensors, name)
			v.Name = rest
			f.tensors[rest] = v
		}
	}
	tr, err := resolveAndTrace(f, Options{Output: OutputEmbedding})
	if err != nil {
		t.Fatal(err)
	}
	if o := tr.Graph.Outputs; len(o) != 1 || o[0].Name != OutputEmbedding {
		t.Errorf("outputs %v", o)
	}
}
