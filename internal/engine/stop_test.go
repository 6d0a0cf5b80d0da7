package engine

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/sample"
)

// endless is a model whose steps with a token of the given id end only where they
// are stopped.
type endless struct {
	*fake
	id      int32
	entered chan struct{}
	stopped chan struct{}
}

func newEndless(t *testing.T) *endless {
	return &endless{fake: newFake(t), id: 39, entered: make(chan struct{}, 100), stopped: make(chan struct{}, 100)}
}

func (m *endless) Forward(b *batch.Batch) error {
	for _, id := range b.Tokens {
		if id != m.id {
			continue
		}
		m.entered <- struct{}{}
		for t0 := time.Now(); !b.Stopped(); time.Sleep(time.Millisecond) {
			if time.Since(t0) > 20*time.Second {
				m.t.Error("nobody waits for the step any more, and it is not stopped")
				return m.fake.Forward(b)
			}
		}
		m.stopped <- struct{}{}
		return batch.ErrStopped
	}
	return m.fake.Forward(b)
}

// TestGiveUp: a step that nobody waits for is stopped, one that another waits for
// is not, and what is served afterwards is right.
func TestGiveUp(t *testing.T) {
	m := newEndless(t)
	e := New(m, Options{Limits: limits(64, 8, 128), Blocks: 60})
	t.Cleanup(e.Close)
	hang := Request{Prompt: slices.Repeat([]int32{1, 39, 2}, 30), Params: sample.Defaults(), Max: 3, N: 2}
	ctx, cancel := context.WithCancel(context.Background())
	one, err := e.Submit(ctx, hang)
	if err != nil {
		t.Fatal(err)
	}
	<-m.entered
	other := submit(t, e, Request{Prompt: ids(10, 2), Params: sample.Defaults(), Max: 5})
	cancel()
	<-m.stopped
	if _, err := drain(one); !errors.Is(err, io.EOF) {
		t.Errorf("the cancelled stream ends with %v", err)
	}
	if got, _, err := collect(t, other); err != nil || len(got[0]) != 5 {
		t.Errorf("the other request got %v: %v", got, err)
	}
	settled(t, e)
	if steps := e.Stats().Steps; len(m.entered) > 0 || steps > 1+5 {
		t.Errorf("%d steps: one was stopped, the other request takes 5", steps)
	}

	left, right := submit(t, e, hang), submit(t, e, hang)
	<-m.entered // the second shares the first's step or waits
	left.CancelChoice(0)
	left.CancelChoice(1)
	right.CancelChoice(0)
	right.Cancel()
	settled(t, e)
	if st := e.Stats(); st.Errors != 0 {
		t.Errorf("%+v", st)
	}
}

// TestKeepsOn: one of two readers of a step goes, and the step goes on.
func TestKeepsOn(t *testing.T) {
	m := gated(t)
	e := start(t, m, Options{Limits: limits(64, 8, 128), Blocks: 60})
	r := Request{Prompt: ids(5, 1), Params: sample.Defaults(), Max: 4}
	first := submit(t, e, r)
	<-m.enter
	second, third := submit(t, e, r), submit(t, e, r)
	m.gate <- struct{}{}
	<-m.enter // all three
	second.Cancel()
	if e.stop.Load() {
		t.Error("a step that two wait for is stopped")
	}
	first.Cancel()
	third.Cancel()
	if !e.stop.Load() {
		t.Error("a step that nobody waits for goes on")
	}
	m.open()
	settled(t, e)
}

// TestCloseWithinAStep: the engine ends although its step would not.
func TestCloseWithinAStep(t *testing.T) {
	m := newEndless(t)
	e := New(m, Options{Limits: limits(64, 8, 128), Blocks: 60})
	s := submit(t, e, Request{Prompt: []int32{39}, Params: sample.Defaults(), Max: 3})
	<-m.entered
	e.Close()
	if _, _, err := collect(t, s); !errors.Is(err, ErrClosed) {
		t.Errorf("the request ends with %v", err)
	}
}
