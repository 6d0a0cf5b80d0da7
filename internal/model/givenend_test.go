package model

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/spec"
)

// TestGivenEnds: what the user gives of generation goes before the files, as
// what is given of the computation does.
func TestGivenEnds(t *testing.T) {
	path := modeltest.Write(t, t.TempDir(), modeltest.Options{})
	set := map[string]any{"eos_token_id": []any{json.Number("5"), json.Number("6")}, "temperature": json.Number("0.25"), "no_repeat_ngram_size": json.Number("3")}
	m, err := Open(path, Options{NoTokenizer: true, Spec: spec.Options{Set: set}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	g := m.Generation
	if !slices.Equal(g.EndTokens, []int32{5, 6}) || g.Temperature == nil || *g.Temperature != 0.25 || g.TopP != nil || g.Decoding.NoRepeat != 3 {
		t.Errorf("%+v", g)
	}
	for _, v := range g.Sources {
		if v.Source != userSource {
			t.Errorf("%+v", v)
		}
	}
	for key, want := range map[string]bool{"eos_token_id": true, "num_beams": true, "task_specific_params.summarization": true, "no_such": false} {
		if ReadsBeside(key) != want {
			t.Errorf("%s: %v", key, !want)
		}
	}
}
