package devicetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// testStop stops batches before and while they run: each ends with ErrStopped or
// as if nothing had been, and the batch that is run again has its bits.
func (d Device) testStop(t *testing.T) {
	for name, n := range map[string]*net{"states": hybrid(t), "loops": looped(t)} {
		t.Run(name, func(t *testing.T) {
			m, s, stopped := d.open(t, n, compile.Options{}), newTable(), 0
			m.doesNotGoOn(t)
			for i, parts := range mixed {
				b, _, err := s.batch(parts)
				if err != nil {
					t.Fatal(err)
				}
				want := m.run(t, b)
				for k := range 12 {
					if m.stops(t, b, want, time.Duration(k-1)*50*time.Microsecond) {
						stopped++
					}
					for j, row := range m.run(t, b) {
						if err := equal(fmt.Sprintf("batch %d after it was stopped", i), row, want[j]); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if stopped < len(mixed) {
				t.Errorf("%d runs were stopped", stopped)
			}
		})
	}
	d.stopsWithin(t)
}

// doesNotGoOn stops the beginning of a sequence: what follows it is refused, for its
// states are nowhere.
func (m *machine) doesNotGoOn(t *testing.T) {
	t.Helper()
	s := newTable()
	for i, p := range []part{{0, 18, 1}, {0, 2, 1}} {
		b, _, err := s.batch([]part{p})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			m.stops(t, b, nil, -1)
		} else if _, err := m.try(b); err == nil {
			t.Error("a sequence goes on after a batch that was stopped")
		}
	}
}

// gaveUp stops the case's batches of each kind of step, before they run and amidst:
// what is run again has the bits that it has where nothing was stopped.
func (m *machine) gaveUp(t *testing.T, n *net, want rows) {
	t.Helper()
	steps, s := mixed, newTable()
	if graph.Whole(n.G) {
		steps = atOnce
	}
	for i, parts := range steps {
		b, at, err := s.batch(parts)
		if err != nil {
			t.Fatal(err)
		}
		if e := m.encode(t, s, parts, b); e != nil {
			m.stops(t, e, nil, 0)
			m.run(t, e)
		}
		same := make([][]float32, len(at))
		for k, a := range at {
			same[k] = want[a]
		}
		m.stops(t, b, same, -1)
		m.stops(t, b, same, time.Duration(i)*10*time.Microsecond)
		for k, row := range m.run(t, b) {
			if err := equal(fmt.Sprintf("batch %d after it was stopped", i), row, same[k]); err != nil {
				t.Fatalf("%v\n%s", err, program.Text(m.p))
			}
		}
	}
}

// looped is a net of recurrences of any step and of balanced matrices.
func looped(t *testing.T) *net {
	n := newNet(t, 9)
	x := n.embed()
	for n.Layer = 0; n.Layer < 2; n.Layer++ {
		x = n.add(x, n.linear(n.memoryCell(n.rms(x), 24), width))
		x = n.attend(x, heads{q: 4, kv: 2, dim: 16}, graph.AttentionAttr{}, nil)
		y := n.must(n.Add(graph.OpBalance, &graph.BalanceAttr{Rounds: 7, Eps: 1e-3}, nil, n.reshape(x, 4, 4, 4)))
		x = n.add(x, n.flat(y))
	}
	n.Layer--
	n.finish(n.head(x))
	return n
}

// stops runs a batch that nobody waits for from a time on; below 0: from the beginning.
func (m *machine) stops(t *testing.T, b *batch.Batch, want [][]float32, after time.Duration) (stopped bool) {
	t.Helper()
	again := *b
	again.Stop = &atomic.Bool{}
	if after < 0 {
		again.Stop.Store(true)
	} else {
		defer time.AfterFunc(after, func() { again.Stop.Store(true) }).Stop()
	}
	got, err := m.try(&again)
	if errors.Is(err, batch.ErrStopped) {
		return true
	}
	if err != nil || after < 0 {
		t.Fatalf("stopped after %s: %v", after, err)
	}
	for k, row := range got {
		if err := equal("a batch that was stopped too late", row, want[k]); err != nil {
			t.Fatal(err)
		}
	}
	return false
}

// stopsWithin stops steps that would take half an hour or more: within a position of a
// recurrence, and within the rounds of one matrix.
func (d Device) stopsWithin(t *testing.T) {
	const side = 512
	slow := &graph.BalanceAttr{Rounds: 1000, Eps: 1e-3}
	for name, build := range map[string]func(n *net, x *graph.Node) *graph.Node{
		"within a position": func(n *net, x *graph.Node) *graph.Node {
			return n.loop([]*graph.Node{n.zeros(side, side)}, func(in stepNet, s []*graph.Node) []*graph.Node {
				y := s[0]
				for range 100 {
					y = in.must(in.b.Add(graph.OpDot, &graph.DotAttr{}, nil, y, s[0]))
				}
				return []*graph.Node{y, in.must(in.b.Slice(in.must(in.b.Reshape(y, []int{side * side})), 0, 0, width, 1))}
			})
		},
		"within rounds": func(n *net, x *graph.Node) *graph.Node {
			y := n.reshape(n.linear(x, side*side), side, side)
			for range 30 {
				y = n.must(n.Add(graph.OpBalance, slow, nil, y))
			}
			return n.must(n.Slice(n.flat(y), 0, 0, width, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNet(t, 9)
			n.Layer = 0
			x := n.embed()
			n.finish(n.head(n.add(x, build(n, x))))
			m := d.open(t, n, compile.Options{})
			b, _, err := newTable().batch([]part{{0, 40, 1}, {1, 30, 1}})
			if err != nil {
				t.Fatal(err)
			}
			t0 := time.Now()
			if !m.stops(t, b, nil, 50*time.Millisecond) {
				t.Error("the step was not stopped")
			}
			if took := time.Since(t0); took > time.Minute {
				t.Errorf("the step went on for %s", took)
			}
		})
	}
}
