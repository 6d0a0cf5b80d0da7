package main

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/device"
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
