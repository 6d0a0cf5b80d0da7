package main

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/device"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
)

// TestSoundRow: a row that JSON cannot say is an error that names the value.
func TestSoundRow(t *testing.T) {
	if err := soundRow(0, []float32{1, -2, math.MaxFloat32}); err != nil {
		t.Error(err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		err := soundRow(4, []float32{1, float32(bad)})
		if !errors.Is(err, device.ErrNonFinite) || !strings.Contains(err.Error(), "row 4, column 1") {
			t.Errorf("%v gives %v", bad, err)
		}
	}
}

// Ids that are more than the model was made for have their rows, as with
// --exact, unless a context was asked for.
func TestLogitsBeyondContext(t *testing.T) {
	path := modeltest.Write(t, t.TempDir(), modeltest.Options{Context: 16})
	in := givenIDs{Input: make([]int32, 24)}
	for _, context := range []int{0, 16} {
		m, err := model.Open(path, model.Options{Context: context, NoTokenizer: true})
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		err = fastLogits(m, in, 0, context, func([]float32) { rows++ })
		m.Close()
		if context == 0 && (err != nil || rows != 24) {
			t.Errorf("%d rows, %v", rows, err)
		}
		if context == 16 && (err == nil || !strings.Contains(err.Error(), "--context")) {
			t.Errorf("a context of 16 was asked for: %v", err)
		}
	}
}

// TestReadIDs: what stands beside the ids is passed over; where there are none,
// what there is instead is told.
func TestReadIDs(t *testing.T) {
	for text, say := range map[string]string{
		`{"input_ids": [1, 2]}`: "", `{"input_ids": [1], "attention_mask": [1], "token_type_ids": [[0]]}`: "", `{"input_ids": [1], "decoder_input_ids": [2]}`: "",
		`{"input": [1], "mask": [1]}`: `has no input_ids, only ["input" "mask"]; want {"input_ids"`, `{}`: "has no input_ids", `null`: "has no input_ids",
		`{"input_ids": []}`: "input_ids is empty", ``: "is empty; want", `{"input_ids": "a"}`: "is not {", `{"input_ids": [1]} 2`: "goes on",
	} {
		if _, err := readIDs(strings.NewReader(text)); (err == nil) != (say == "") || err != nil && !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %q", text, err, say)
		}
	}
}
