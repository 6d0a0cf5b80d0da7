package bench

import "testing"

func TestBandwidth(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a large buffer")
	}
	for _, threads := range []int{1, 3} {
		if b, err := Bandwidth(threads); err != nil || b < 1e6 {
			t.Errorf("%d threads: %g bytes a second, %v", threads, b, err)
		}
	}
	if _, err := Bandwidth(-1); err == nil {
		t.Error("-1 threads: no error")
	}
}
