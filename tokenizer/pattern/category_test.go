package pattern

import (
	"encoding/json"
	"math/bits"
	"os"
	"testing"
	"unicode"
)

// TestCategories holds every character's category against Oniguruma's (testdata/categories.py).
func TestCategories(t *testing.T) {
	data, err := os.ReadFile("testdata/categories.json")
	if err != nil {
		t.Fatal(err)
	}
	var ranges [][3]any
	if err := json.Unmarshal(data, &ranges); err != nil {
		t.Fatal(err)
	}
	want := make([]uint32, unicode.MaxRune+1)
	for _, r := range ranges {
		for c := int(r[0].(float64)); c <= int(r[1].(float64)); c++ {
			want[c] = categoryMasks[r[2].(string)]
		}
	}
	for c := rune(1); c <= unicode.MaxRune; c++ {
		if c >= 0xd800 && c < 0xe000 {
			continue
		}
		got := categories().bit(c)
		if want[c] == 0 && got != 1<<catCn || want[c] != 0 && got&want[c] == 0 {
			t.Errorf("U+%04X is %d, want %b", c, bits.TrailingZeros32(got), want[c])
		}
	}
}
