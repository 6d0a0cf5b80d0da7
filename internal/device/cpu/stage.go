// Package cpu runs programs on the processor's cores: weights in packed
// panels, a team of threads that walks all steps together. It must never
// import requests, schedulers or specs. Read Stage first.
package cpu

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/device"
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/attn"
	"github.com/inferflow/inferflow/internal/kernel/gemm"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/internal/weight"
)

// Options chooses how a stage runs.
type Options struct {
	Limits  device.Limits
	Team    *sys.Team // shared by the stages of a process; one runs at a time
	Keys    attn.Elem // storage of keys
	Values  attn.Elem // storage of values
	Profile bool
	Release func(tensor string) // called when a stored tensor has been packed
	// RefuseNaN makes Load fail with weight.ErrNaN, naming the tensor, where a
	// stored weight is no number.
	RefuseNaN bool
}

// Stage is a program loaded on the processor.
type Stage struct {
	p    *program.Program
	o    Options
	team *sys.Team
	exec []executor

	weights *sys.Arena // packed panels
	scratch *sys.Arena // row buffers
	kv      *sys.Arena
	states  states
	lay     layout
	bufs    [][]float32
	workers []*worker
	shared  [2]*gemm.Acts // by gemm.Kind, for batches too large to prepare privately
	normed  []float32
	qkv     []float32
	moe     *moeBuffers
	scores  []float32 // of the positions of few rows, for a program.Index
	ropes   []*rope
	encodes bool         // the program has steps that encode a source
	crosses bool         // the program has steps that read an encoded source
	mach    *ref.Machine // runs Op steps

	b        *batch.Batch
	rows     int // rows of the batch
	outs     int // wanted rows
	place    placement
	places   []*places
	counters []sys.Counter
	out      [][]float32
	failed   atomic.Pointer[error]
	stopAt   atomic.Int32 // the step after which all workers leave a batch that was stopped
	walk     func(int)    // bound once, so that Run allocates nothing

	checking bool
	found    string
	times    []device.StepTime
}

// executor runs one step; it is called by every worker of the team.
type executor interface {
	run(s *Stage, w *worker)
}

// worker is what one thread owns.
type worker struct {
	id      int
	mul     *gemm.Scratch
	acts    [2]*gemm.Acts // few rows, prepared privately
	view    [2]*gemm.Acts // rows that need no preparing
	heads   [2]*gemm.Acts // a block of rows of one head
	band    [2]*gemm.Acts // what is between two products
	between []float32     // a segment of it
	sums    []float32     // of the second product of a band
	norm    []float32
	tile    []float32
	att     *attention
	choose  *choosing
	rec     []float32 // one head of a recurrence
	passing []float32 // the state of a recurrence over a source
	regs    []float32 // registers of elementwise chains
	next    int       // next counter of this run
	step    int       // that is run
}

// privateRows is the number of rows up to which every worker prepares the
// activations for itself: cheaper than a barrier.
const privateRows = 2

// Load packs the weights of p and allocates all that Run needs.
func Load(p *program.Program, src weight.Source, o Options) (*Stage, error) {
	s := &Stage{p: p, o: o, team: o.Team, mach: ref.New(p.Graph, src)}
	s.walk, s.mach.Memory = s.work, s
	for i := range p.Steps {
		s.encodes = s.encodes || p.Steps[i].Rows == graph.RowsMemory
		x, ok := p.Steps[i].Body.(*program.Attention)
		s.crosses = s.crosses || ok && x.Attr.Cross
	}
	l := &loader{s: s, src: src, seen: map[*graph.Weight]*weight.Rows{}}
	if err := l.load(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close gives all memory back. The team stays.
func (s *Stage) Close() error {
	for _, a := range []*sys.Arena{s.weights, s.scratch, s.kv, s.states.arena} {
		if a != nil {
			if err := a.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// WeightBytes is the size of the packed weights.
func (s *Stage) WeightBytes() int { return s.weights.Used() }

// Run implements device.Stage.
func (s *Stage) Run(b *batch.Batch, in [][]float32) ([][]float32, error) {
	if err := s.states.copies(b.Copies); err != nil {
		return nil, err
	}
	if err := s.copyBlocks(b.Blocks); err != nil {
		return nil, err
	}
	if b.Rows() == 0 && len(b.Seqs) == 0 && len(b.Copies)+len(b.Blocks) > 0 {
		return s.nothing(), nil
	}
	if err := s.check(b, in); err != nil {
		return nil, err
	}
	s.b, s.rows, s.outs = b, b.Rows(), len(b.Out)
	for i, v := range in {
		if !s.idle(s.p.In[i], b) {
			copy(s.bufs[s.p.In[i]], v)
		}
	}
	if err := s.place.set(s, b); err != nil {
		return nil, err
	}
	for _, p := range s.places {
		b.Places(p.at, p.pad)
	}
	for i := range s.counters {
		s.counters[i].Reset()
	}
	s.states.begin(b)
	s.stopAt.Store(math.MaxInt32)
	s.team.Run(s.walk)
	e := s.failed.Swap(nil)
	if s.stopAt.Load() != math.MaxInt32 {
		return nil, batch.ErrStopped
	}
	if e != nil {
		return nil, *e
	}
	s.states.end(b)
	for i, v := range s.p.Out {
		s.out[i] = s.bufs[v][:0]
		if !s.idle(v, b) {
			s.out[i] = s.bufs[v][:s.rows*s.p.Buffers[v].Width]
		}
	}
	return s.out, nil
}

// nothing is what a batch without rows sends to the next stage.
func (s *Stage) nothing() [][]float32 {
	for i := range s.out {
		s.out[i] = s.out[i][:0]
	}
	return s.out
}

// Logits implements device.Stage.
func (s *Stage) Logits(i int) []float32 {
	w := s.p.Buffers[s.p.Logits].Width
	return s.bufs[s.p.Logits][i*w : (i+1)*w]
}

// work is one thread's walk over the program.
func (s *Stage) work(id int) {
	w := s.workers[id]
	w.next = 0
	s.angles(w)
	s.team.Barrier(id)
	for i, e := range s.exec {
		if e == nil || !s.p.Steps[i].Runs(s.b.Encode) {
			continue
		}
		var t0 time.Time
		if s.o.Profile && id == 0 {
			t0 = time.Now()
		}
		w.step = i
		e.run(s, w)
		if id == 0 {
			s.stopped(w)
		}
		s.team.Barrier(id)
		if s.stopAt.Load() <= int32(i) {
			return
		}
		if id == 0 && s.o.Profile {
			s.times[i].Seconds += time.Since(t0).Seconds()
		}
		if s.checking {
			if id == 0 && s.found == "" {
				s.found = s.notFinite(i)
			}
			s.team.Barrier(id)
		}
	}
}

// stopped says that nobody waits for the batch, so that the worker may leave its
// part of the step undone: all leave together after it, none at another step.
func (s *Stage) stopped(w *worker) bool {
	if !s.b.Stopped() {
		return false
	}
	s.stopAt.Store(int32(w.step))
	return true
}

// idle says that a value belongs to the other kind of batch.
func (s *Stage) idle(v program.Buf, b *batch.Batch) bool {
	f := &s.p.Buffers[v]
	return !f.Const && f.Memory != b.Encode
}

// fail records the first error of a run; workers go on, so that barriers hold.
func (s *Stage) fail(err error) { s.failed.CompareAndSwap(nil, &err) }

// claim returns the next chunk [from, to) of n units from a counter.
func claim(c *sys.Counter, n, chunk int) (from, to int, ok bool) {
	from = c.Next(chunk)
	return from, min(n, from+chunk), from < n
}

// counter gives the worker the run's next counter; all workers ask in the same order.
func (s *Stage) counter(w *worker) *sys.Counter {
	w.next++
	return &s.counters[w.next-1]
}

// buf is a row buffer of the program, with its width.
func (s *Stage) buf(b program.Buf) ([]float32, int) { return s.bufs[b], s.p.Buffers[b].Width }

// rowsOf is the number of rows that a buffer holds in this batch.
func (s *Stage) rowsOf(b program.Buf) int {
	switch f := s.p.Buffers[b]; {
	case f.Const:
		return 1
	case f.Out:
		return s.outs
	}
	return s.rows
}

// Profile implements device.Stage.
func (s *Stage) Profile() []device.StepTime {
	out := append([]device.StepTime{}, s.times...)
	for i := range s.times {
		s.times[i].Seconds = 0
	}
	return out
}
