package weight

import "testing"

// TestTwoBits reads the four numbers of the byte 0b10_01_00_10.
func TestTwoBits(t *testing.T) {
	for f, want := range map[string]float32{"bits_0": 1, "bits_2": -1, "bits_4": 0, "bits_6": 1} {
		if got := Maps[f](0b10_01_00_10); got != want {
			t.Errorf("%s is %g, want %g", f, got, want)
		}
	}
}
