package embed

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/inferflow/inferflow/internal/batch"
)

// endless is a model whose batches end only where they are stopped, while it hangs.
type endless struct {
	sums
	hangs   bool
	entered chan struct{}
}

func (m *endless) Forward(b *batch.Batch) error {
	if !m.hangs {
		return m.sums.Forward(b)
	}
	m.entered <- struct{}{}
	for t0 := time.Now(); !b.Stopped(); time.Sleep(time.Millisecond) {
		if time.Since(t0) > 20*time.Second {
			return errors.New("nobody waits for the batch, and it is not stopped")
		}
	}
	m.hangs = false
	return batch.ErrStopped
}

// TestGiveUp: a batch that nobody waits for is stopped; its callers are told why.
func TestGiveUp(t *testing.T) {
	m := &endless{hangs: true, entered: make(chan struct{}, 1)}
	s := start(m, 100, 5, 12)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-m.entered; cancel() }()
	if _, err := s.Rows(ctx, []Text{{IDs: []int32{1, 2}}, {IDs: []int32{3}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that is gone: %v", err)
	}
	got, err := s.Rows(context.Background(), []Text{{IDs: []int32{1, 2}}})
	if err != nil || got[0][0][0] != 3 {
		t.Errorf("the next caller gets %v: %v", got, err)
	}
	m.hangs = true
	go func() { <-m.entered; s.Close() }()
	if _, err := s.Rows(context.Background(), []Text{{IDs: []int32{1}}}); !errors.Is(err, ErrClosed) {
		t.Errorf("a service that is closed: %v", err)
	}
}
