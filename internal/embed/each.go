package embed

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls f for every i below n, so many neighbours a turn, on as many threads
// as Go uses. Of several errors it returns that of the least i, as a loop
// would; what follows an error may not have been called.
func Each(n, atOnce int, f func(i int) error) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	first, failed := n, error(nil)
	work := func() {
		for {
			from := int(next.Add(int64(atOnce))) - atOnce
			for i := from; i < min(from+atOnce, n); i++ {
				if err := f(i); err != nil {
					mu.Lock()
					if i < first {
						first, failed = i, err
					}
					mu.Unlock()
					next.Store(int64(n))
					return
				}
			}
			if from >= n {
				return
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), (n+atOnce-1)/atOnce) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return failed
}
