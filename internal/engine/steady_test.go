package engine

import (
	"context"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/kv"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
)

// flat is a model that always says the same and allocates nothing.
type flat struct{ logits []float32 }

func (m *flat) Forward(*batch.Batch) error   { return nil }
func (m *flat) Logits(int) []float32         { return m.logits }
func (m *flat) Vocab() int                   { return len(m.logits) }
func (m *flat) Diagnose(*batch.Batch) string { return "" }

// newEngine is an engine whose loop is not started: the test takes its part.
func newEngine(m Model, o Options) *Engine {
	return &Engine{m: m, o: o, wake: make(chan struct{}, 1), done: make(chan struct{}), live: map[*sched.Task]*choice{},
		sched: sched.New(o.Limits, kv.NewPool(o.Blocks)), scratch: &sample.Scratch{}}
}

// TestSteadyStep: once lists have grown, a step of answers whose events are
// read allocates nothing.
func TestSteadyStep(t *testing.T) {
	m := &flat{make([]float32, 60)}
	o := Options{Limits: sched.Limits{Rows: 64, Seqs: 16, Tokens: 20000}, Blocks: 20000, Queue: 8}
	e := newEngine(m, o)
	p := sample.Defaults()
	p.TopP = 0.9
	var streams []*Stream
	for range 8 {
		s, err := e.Submit(context.Background(), Request{Prompt: []int32{1, 2, 3}, Params: p})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	step := func() {
		e.receive()
		e.tasks = e.sched.Next(&e.b, e.tasks)
		e.publish()
		e.step()
		for _, s := range streams {
			if ev, err := s.Next(context.Background()); err != nil || ev.Err != nil {
				t.Fatal(err, ev.Err)
			}
		}
	}
	for range 1500 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n > 1 {
		t.Errorf("a step allocates %.1f times", n)
	}
}
