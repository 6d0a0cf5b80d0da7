package spec

import "testing"

// TestSeries: a series marks its own numbers and no other name.
func TestSeries(t *testing.T) {
	tr := &tracer{used: map[string]bool{"a.7.w": true}}
	tr.useSeries("x.1.e.", ".w", 12)
	for name, want := range map[string]bool{
		"x.1.e.0.w": true, "x.1.e.11.w": true, "x.1.e.12.w": false, "x.1.e.011.w": false, "x.2.e.0.w": false, "x.1.e.0.b": false,
		"a.7.w": true, "a.8.w": false, "x.1.e..w": false, "": false, "x.1.e.99999999999999999999.w": false,
	} {
		if got := tr.isUsed(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
