package sys

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// TestTeamSteps runs steps in which every worker reads what all wrote in the step
// before; under -race it also shows that Barrier orders memory.
func TestTeamSteps(t *testing.T) {
	for _, c := range []TeamConfig{{Size: 1}, {Size: 2}, {Size: 3}, {Size: 7}, {Size: 2, NoPin: true}, {}} {
		team, err := NewTeamWith(c)
		if err != nil {
			t.Fatal(err)
		}
		n := team.Size()
		cells := make([][64]int, n)
		bad := make([]int, n)
		f := func(w int) {
			for step := 1; step <= 50; step++ {
				cells[w][0] += step
				team.Barrier(w)
				sum := 0
				for i := range cells {
					sum += cells[i][0]
				}
				if sum%n != 0 {
					bad[w]++
				}
				team.Barrier(w)
			}
		}
		const runs = 20
		for range runs {
			team.Run(f)
		}
		for w := range n {
			if cells[w][0] != runs*50*51/2 || bad[w] != 0 {
				t.Errorf("%+v: worker %d: %d, %d bad sums", c, w, cells[w][0], bad[w])
			}
		}
		team.Close()
		team.Close()
	}
}

func TestTeamConcurrentRuns(t *testing.T) {
	team, err := NewTeam(3)
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	var calls atomic.Int64
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 50 {
				team.Run(func(w int) { calls.Add(1); team.Barrier(w) })
			}
		})
	}
	wait.Wait()
	if calls.Load() != 4*50*3 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestTeamAllocs(t *testing.T) {
	team, err := NewTeam(2)
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	f := func(w int) { team.Barrier(w); team.Barrier(w) }
	if n := testing.AllocsPerRun(100, func() { team.Run(f) }); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func TestTeamErrors(t *testing.T) {
	for _, c := range []TeamConfig{{Size: -1}, {Size: maxTeam + 1}, {Size: 1, CPUs: []int{1 << 20}}} {
		if team, err := NewTeamWith(c); err == nil {
			team.Close()
			t.Errorf("%+v: want an error", c)
		}
	}
	team, err := NewTeam(1)
	if err != nil {
		t.Fatal(err)
	}
	team.Close()
	defer func() {
		if recover() == nil {
			t.Error("Run after Close: want a panic")
		}
	}()
	team.Run(func(int) {})
}

func TestCounter(t *testing.T) {
	team, err := NewTeam(4)
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	var c Counter
	var seen [1000]atomic.Int32
	team.Run(func(int) {
		for {
			i := c.Next(3)
			if i >= len(seen) {
				return
			}
			for j := i; j < min(i+3, len(seen)); j++ {
				seen[j].Add(1)
			}
		}
	})
	for i := range seen {
		if seen[i].Load() != 1 {
			t.Fatalf("part %d claimed %d times", i, seen[i].Load())
		}
	}
	c.Reset()
	if c.Next(1) != 0 {
		t.Error("reset")
	}
}

func BenchmarkTeamRun(b *testing.B) {
	team, err := NewTeam(0)
	if err != nil {
		b.Fatal(err)
	}
	defer team.Close()
	f := func(int) {}
	for b.Loop() {
		team.Run(f)
	}
}

func BenchmarkTeamBarrier(b *testing.B) {
	team, err := NewTeam(0)
	if err != nil {
		b.Fatal(err)
	}
	defer team.Close()
	f := func(w int) {
		for range 100 {
			team.Barrier(w)
		}
	}
	for b.Loop() {
		team.Run(f)
	}
}

// A team's pinned threads end with it; the main thread, whose CPUs are the
// process's, is never one of them.
func TestTeamLeavesMainThread(t *testing.T) {
	want := affinityMask()
	for i := range 300 {
		team, err := NewTeam(UsableCPUs())
		if err != nil {
			t.Fatal(err)
		}
		team.Run(func(int) {})
		team.Close()
		if got := affinityMask(); !slices.Equal(got, want) {
			t.Fatalf("after %d teams the process may use CPUs %v, before %v", i+1, got, want)
		}
	}
}
