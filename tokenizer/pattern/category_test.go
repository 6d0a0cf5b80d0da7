package pattern

import (
	"compress/gzip"
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

// TestClasses holds the characters of classes against Oniguruma's (testdata/classes.py). Tables of the Unicode 15 that this program knows lack letters of
// Unicode 16 only where a property is no category.
func TestClasses(t *testing.T) {
	f, err := os.Open("testdata/classes.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]int
	if err := json.NewDecoder(z).Decode(&want); err != nil {
		t.Fatal(err)
	}
	for name, steps := range want {
		p := &parser{src: name}
		n, err := p.alternation()
		if err != nil || n.kind != nodeSet {
			t.Errorf("%s: %v, %v", name, n, err)
			continue
		}
		end, in, wrong := 0, false, 0
		for c := rune(1); c <= unicode.MaxRune; c++ {
			if c >= 0xd800 && c < 0xe000 {
				continue
			}
			for len(steps) > 0 && int(c) >= end+steps[0] {
				end, steps, in = end+steps[0], steps[1:], !in
			}
			if n.set.has(c) != in {
				if wrong++; wrong < 4 {
					t.Errorf("%s: U+%04X: in it is %v", name, c, !in)
				}
			}
		}
		if wrong > 3 {
			t.Errorf("%s: %d characters differ", name, wrong)
		}
	}
}
