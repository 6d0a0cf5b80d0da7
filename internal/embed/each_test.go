package embed

import (
	"fmt"
	"sync/atomic"
	"testing"
)

func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 1000} {
		seen := make([]atomic.Int32, n)
		if err := Each(n, 16, func(i int) error { seen[i].Add(1); return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range seen {
			if c := seen[i].Load(); c != 1 {
				t.Fatalf("of %d, %d was called %d times", n, i, c)
			}
		}
	}
	for range 50 {
		err := Each(1000, 16, func(i int) error {
			if i >= 333 {
				return fmt.Errorf("at %d", i)
			}
			return nil
		})
		if err == nil || err.Error() != "at 333" {
			t.Fatalf("the first error is %v", err)
		}
	}
}
