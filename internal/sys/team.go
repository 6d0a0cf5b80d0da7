package sys

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// maxTeam bounds a team's size; no machine we know has more hardware threads.
const maxTeam = 4096

// spinTime is how long a thread that waits at a barrier spins before it parks. It
// has to outlast the waking of a parked thread (50 µs to 100 µs in a virtual
// machine): else the thread that wakes another parks at the next barrier, before
// the other is there, and so on in turns for the rest of the run.
const spinTime = 250 * time.Microsecond

// TeamConfig says how a team is made. The zero value is a team of UsableCPUs
// threads on CPUs of its own choice.
type TeamConfig struct {
	Size int   // number of workers; 0 means UsableCPUs()
	CPUs []int // worker i runs on CPUs[i%len]; nil leaves the choice to the team
	// NoPin leaves threads to the operating system's scheduler. Without it, and
	// without CPUs, threads are pinned only if the process may use all CPUs of its
	// mask in full (no quota) and the team takes every core of it, one or two
	// threads a core. A smaller team cannot know which CPUs its neighbours chose:
	// pinning could put two busy threads on one CPU while another idles.
	NoPin bool
}

// Team is a fixed set of worker goroutines, each locked to an operating system
// thread, that run one function together. It is woken once for a whole batch of
// steps and keeps in step by Barrier; a Run allocates nothing.
//
// Set GOMAXPROCS to the team's size + 2 before the team is made: workers keep their processors while they
// spin, and the server's goroutines and the collector need some too. A team larger
// than GOMAXPROCS or UsableCPUs works, parking at once instead of spinning.
type Team struct {
	size    int
	pinned  int
	spin    time.Duration
	workers []worker

	run  sync.Mutex // held by the caller of Run
	f    func(worker int)
	quit bool
	done chan struct{} // one token when the last worker has returned from f

	_      [64]byte
	epoch  atomic.Uint32 // runs started
	_      [60]byte
	phase  atomic.Uint32 // barriers passed
	_      [60]byte
	inside atomic.Int32 // workers still to arrive at the barrier
	_      [60]byte
	active atomic.Int32 // workers still inside f
	_      [60]byte
}

// worker is what one thread waits on; padded, for each parks on its own line.
type worker struct {
	parked atomic.Uint32
	wake   chan struct{}
	_      [48]byte
}

// NewTeam starts a team of n workers, or of UsableCPUs() if n is 0.
func NewTeam(n int) (*Team, error) { return NewTeamWith(TeamConfig{Size: n}) }

// NewTeamWith starts a team as c says. It fails if the size is out of range or a CPU
// of c.CPUs cannot be used.
func NewTeamWith(c TeamConfig) (*Team, error) {
	usable := UsableCPUs()
	if c.Size == 0 {
		c.Size = usable
	}
	if c.Size < 0 || c.Size > maxTeam {
		return nil, fmt.Errorf("sys: team: size %d is not within 1 to %d", c.Size, maxTeam)
	}
	t := &Team{size: c.Size, workers: make([]worker, c.Size), done: make(chan struct{}, 1)}
	if c.Size > 1 && c.Size <= usable && c.Size <= runtime.GOMAXPROCS(0) {
		t.spin = spinTime
	}
	t.inside.Store(int32(c.Size))
	cpus, must := c.CPUs, len(c.CPUs) > 0 && !c.NoPin
	if !must {
		cpus = ownChoice(c, usable)
	}
	errs := make(chan error, c.Size)
	for i := range t.workers {
		t.workers[i].wake = make(chan struct{}, 1)
		cpu := -1
		if len(cpus) > 0 {
			cpu = cpus[i%len(cpus)]
		}
		go t.serve(i, cpu, errs)
	}
	var first error
	for range t.workers {
		if err := <-errs; err == nil && len(cpus) > 0 {
			t.pinned++
		} else if err != nil && first == nil {
			first = err
		}
	}
	if must && first != nil {
		t.Close()
		return nil, fmt.Errorf("sys: team: pinning threads to CPUs %v: %w", c.CPUs, first)
	}
	return t, nil
}

// ownChoice is the CPUs a team pins itself to, nil for none.
func ownChoice(c TeamConfig, usable int) []int {
	mask := affinityMask()
	if c.NoPin || usable != len(mask) || c.Size > len(mask) {
		return nil
	}
	order, cores := pinOrder(mask, siblingList)
	if c.Size < cores {
		return nil
	}
	return order[:c.Size]
}

// Size is the number of workers; they are numbered from 0.
func (t *Team) Size() int { return t.size }

// Pinned is the number of workers that are bound to one CPU each.
func (t *Team) Pinned() int { return t.pinned }

// Run wakes all workers, has each call f with its number, and returns when all have
// returned. Concurrent calls take turns. f must not call Run of the same team; a
// panic in f ends the process, as in any goroutine. Keep f in a variable made once:
// a closure made for the call would allocate.
func (t *Team) Run(f func(worker int)) {
	t.run.Lock()
	if t.quit {
		t.run.Unlock()
		panic("sys: Team.Run after Close")
	}
	t.start(f)
	<-t.done
	t.f = nil
	t.run.Unlock()
}

func (t *Team) start(f func(int)) {
	t.f = f
	t.active.Store(int32(t.size))
	t.epoch.Add(1)
	for i := range t.workers {
		t.workers[i].unpark()
	}
}

// Close ends the team's threads after a Run in progress. Further calls do nothing.
func (t *Team) Close() {
	t.run.Lock()
	defer t.run.Unlock()
	if t.quit {
		return
	}
	t.quit = true
	t.start(nil)
	<-t.done
}

// serve is the life of one worker. Its thread ends with it, for it stays locked:
// a pinned thread must not return to the runtime's pool.
func (t *Team) serve(i, cpu int, ready chan<- error) {
	runtime.LockOSThread()
	var err error
	if cpu >= 0 {
		if onMainThread() {
			t.elsewhere(i, cpu, ready)
			return
		}
		err = pinThread(cpu)
	}
	ready <- err
	for seen := uint32(0); ; {
		t.workers[i].park(&t.epoch, seen)
		seen++
		f := t.f
		if f != nil {
			f(i)
		}
		if t.active.Add(-1) == 0 {
			t.done <- struct{}{}
		}
		if f == nil {
			return
		}
	}
}

// elsewhere starts a worker on another thread than the calling one, which is the
// main thread: it does not end with its goroutine, and what CPUs it may run on
// is what the process may use.
func (t *Team) elsewhere(i, cpu int, ready chan<- error) {
	started := make(chan error)
	go t.serve(i, cpu, started) // not here, for the caller holds this thread until it runs
	ready <- <-started
	runtime.UnlockOSThread()
}

// Barrier returns once every worker of the team has called it. It may be called
// only inside Run, by each worker the same number of times. Everything written
// before it by any worker is visible to all after it.
func (t *Team) Barrier(worker int) {
	phase := t.phase.Load()
	if t.inside.Add(-1) == 0 {
		t.inside.Store(int32(t.size))
		t.phase.Add(1)
		for i := range t.workers {
			t.workers[i].unpark()
		}
		return
	}
	if t.spin > 0 && spinUntil(&t.phase, phase, t.spin) {
		return
	}
	t.workers[worker].park(&t.phase, phase)
}

// spinUntil waits at most limit for v to leave old and tells whether it did.
func spinUntil(v *atomic.Uint32, old uint32, limit time.Duration) bool {
	begin := time.Now()
	for {
		for range 16 {
			if v.Load() != old {
				return true
			}
			procyield(4)
		}
		if time.Since(begin) > limit {
			return false
		}
	}
}

// park blocks the worker while v is old. A waker that was slow to unpark an earlier
// phase may wake it too soon, hence the loop.
func (w *worker) park(v *atomic.Uint32, old uint32) {
	for v.Load() == old {
		w.parked.Store(1)
		if v.Load() != old && w.parked.CompareAndSwap(1, 0) {
			return
		}
		<-w.wake
	}
}

// unpark wakes the worker if it is parked: whoever takes the mark away sends exactly
// one token, so the channel never blocks.
func (w *worker) unpark() {
	if w.parked.Load() == 1 && w.parked.CompareAndSwap(1, 0) {
		w.wake <- struct{}{}
	}
}

// Counter hands out the parts of a step to the workers of a team, in order and each
// once. It fills cache lines of its own.
type Counter struct {
	_ [64]byte
	n atomic.Int64
	_ [56]byte
}

// Next claims the next n parts and returns the number of the first.
func (c *Counter) Next(n int) int { return int(c.n.Add(int64(n))) - n }

// Reset starts again from 0. It must happen between two barriers at which no worker
// claims: two steps in a row use two counters.
func (c *Counter) Reset() { c.n.Store(0) }
