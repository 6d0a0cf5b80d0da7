// Package bench measures loaded models: prefill and decode at several lengths,
// depths and numbers of sequences, beside the machine's read bandwidth, and
// the time of steps and specification lines. It drives a model by batches of
// its own and must never import the engine, the scheduler or a server. Read
// Report first, then Measure.
package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/inferflow/inferflow/internal/batch"
)

// Config says what is measured.
type Config struct {
	Prefill   []int   // lengths of a prompt, one test each
	Decode    int     // tokens that each sequence decodes in a test; 0: no decode tests
	Depths    []int   // tokens already there before decoding
	Sequences []int   // sequences decoded at once
	Repeat    int     // runs of a test, of which the median counts; 0: 3
	Threads   int     // threads of the bandwidth measurement: those of the model
	Context   int     // tokens of a sequence at most; 0: the model's own limit
	Memory    int64   // bytes of keys and values at most; 0: what is free
	Bandwidth float64 // read bandwidth in bytes a second; 0: it is measured first
	Progress  func(string)
	texts     bool // the model reads whole texts: prompts are texts, and nothing is decoded
}

// Test names what a result measured.
type Test struct {
	Kind      string `json:"test"`      // "prefill" or "decode"; "text" where a model reads whole texts
	N         int    `json:"n"`         // tokens of the prompt, or decoded by each sequence
	Depth     int    `json:"depth"`     // tokens of each sequence before the test
	Sequences int    `json:"sequences"` // 1 in prefill
}

func (t Test) String() string {
	if t.Kind != kindDecode {
		return fmt.Sprintf("%s %d", t.Kind, t.N)
	}
	return fmt.Sprintf("decode %d at depth %d, sequences %d", t.N, t.Depth, t.Sequences)
}

const (
	kindPrefill = "prefill"
	kindDecode  = "decode"
	kindText    = "text"
)

// Result is the median of the runs of one test.
type Result struct {
	Test
	TokensPerSecond float64 `json:"tokens_per_second"`          // of all sequences together
	TextsPerSecond  float64 `json:"texts_per_second,omitempty"` // of tests "text"
	BytesPerToken   float64 `json:"bytes_per_token"`            // weights, keys and values read, by calculation
	BandwidthShare  float64 `json:"bandwidth_share"`            // bytes a second over the measured read bandwidth
	Seconds         float64 `json:"seconds"`                    // of one run
	Repeats         int     `json:"repeats"`                    // runs made
}

// Skipped is a test that was not made.
type Skipped struct {
	Test
	Reason string `json:"reason"`
}

// Forwarder is a loaded model as a measurement sees it.
type Forwarder interface {
	Forward(*batch.Batch) error
	Logits(i int) []float32 // row i of the last Forward's wanted rows
}

// enough is the time after which a test is not repeated again.
const enough = 8 * time.Second

// warmSteps are decoded before each test of it.
const warmSteps = 2

// tests lists what a configuration asks for, prefill first, then decode by
// depth: the order in which sequences only grow.
func (c *Config) tests() []Test {
	var out []Test
	kind := kindPrefill
	if c.texts {
		kind = kindText
	}
	for _, n := range c.Prefill {
		out = append(out, Test{kind, n, 0, 1})
	}
	if c.Decode == 0 || c.texts {
		return out
	}
	depths, sequences := sorted(c.Depths), sorted(c.Sequences)
	for _, d := range depths {
		for _, s := range sequences {
			out = append(out, Test{kindDecode, c.Decode, d, s})
		}
	}
	return out
}

// sorted is a sorted copy without repetitions.
func sorted(v []int) []int {
	v = slices.Clone(v)
	slices.Sort(v)
	return slices.Compact(v)
}

// blocksOf is the number of key/value blocks that a list of tests needs, and
// the longest sequence.
func blocksOf(tests []Test) (blocks, longest int) {
	var lengths []int // of each sequence at its longest
	for _, t := range tests {
		n := t.Depth + t.N
		if t.Kind == kindDecode {
			n = t.Depth + max(t.N, warmSteps)
		}
		longest = max(longest, n)
		for len(lengths) < t.Sequences {
			lengths = append(lengths, 0)
		}
		for i := range t.Sequences {
			lengths[i] = max(lengths[i], n)
		}
	}
	for _, n := range lengths {
		blocks += blocksFor(n)
	}
	return blocks, longest
}

func blocksFor(tokens int) int { return (tokens + batch.BlockTokens - 1) / batch.BlockTokens }

// runner makes tests on a loaded model.
type runner struct {
	f     Forwarder
	c     *Config
	rows  int // of a batch at most
	reads *reads
	pool  *pool
}

// all makes the tests in order and returns those that were finished, also
// when ctx ends or a test fails.
func (r *runner) all(ctx context.Context, tests []Test) ([]Result, error) {
	var out []Result
	if err := r.warm(ctx, tests); err != nil {
		return nil, err
	}
	for i, t := range tests {
		if r.c.Progress != nil {
			r.c.Progress(fmt.Sprintf("%d/%d %s", i+1, len(tests), t))
		}
		run := r.prefill
		if t.Kind == kindDecode {
			run = r.decode
		}
		res, err := r.test(ctx, t, run)
		if err != nil {
			return out, fmt.Errorf("bench: %s: %w", t, err)
		}
		out = append(out, res)
	}
	return out, nil
}

// warm touches the memory of the largest batch of one prompt in the tests.
func (r *runner) warm(ctx context.Context, tests []Test) error {
	n := 1
	for _, t := range tests {
		n = max(n, min(r.rows, t.Depth))
		if t.Kind != kindDecode {
			n = max(n, min(r.rows, t.N))
		}
	}
	q := r.pool.sequence(0)
	q.filled = 0
	if err := r.pool.fill(ctx, r.f, q, n, r.rows, true); err != nil {
		return fmt.Errorf("bench: warm-up: %w", err)
	}
	return nil
}

// test repeats one test and keeps the median.
func (r *runner) test(ctx context.Context, t Test, run func(context.Context, Test) (time.Duration, error)) (Result, error) {
	if t.Kind == kindDecode {
		if err := r.deepen(ctx, t); err != nil {
			return Result{}, err
		}
		if _, err := run(ctx, Test{t.Kind, warmSteps, t.Depth, t.Sequences}); err != nil {
			return Result{}, err
		}
	}
	var times []time.Duration
	var spent time.Duration
	for len(times) < max(1, r.c.Repeat) && (len(times) == 0 || spent < enough) {
		d, err := run(ctx, t)
		if err != nil {
			return Result{}, err
		}
		times = append(times, d)
		spent += d
	}
	return r.result(t, times), nil
}

func (r *runner) result(t Test, times []time.Duration) Result {
	slices.Sort(times)
	mid := times[len(times)/2]
	if len(times)%2 == 0 {
		mid = (mid + times[len(times)/2-1]) / 2
	}
	tokens := float64(t.N * t.Sequences)
	res := Result{Test: t, Seconds: mid.Seconds(), Repeats: len(times)}
	res.TokensPerSecond = tokens / max(mid.Seconds(), 1e-9)
	if t.Kind == kindText {
		res.TextsPerSecond = 1 / max(mid.Seconds(), 1e-9)
	}
	if r.reads != nil {
		res.BytesPerToken = float64(r.reads.test(t, r.rows)) / tokens
	}
	if r.c.Bandwidth > 0 {
		res.BandwidthShare = res.BytesPerToken * res.TokensPerSecond / r.c.Bandwidth
	}
	return res
}

// prefill runs a prompt of t.N tokens in chunks, with logits of its last.
func (r *runner) prefill(ctx context.Context, t Test) (time.Duration, error) {
	q := r.pool.sequence(0)
	q.filled = 0
	start := time.Now()
	err := r.pool.fill(ctx, r.f, q, t.N, r.rows, true)
	return time.Since(start), err
}

// deepen fills the sequences of a decode test up to its depth, unless earlier
// tests left more in the cache. Recurrent states stand where the last test left
// them: decode computes those from the beginning.
func (r *runner) deepen(ctx context.Context, t Test) error {
	if r.pool.states {
		return nil
	}
	for i := range t.Sequences {
		if r.c.Progress != nil && t.Depth > 0 {
			r.c.Progress(fmt.Sprintf("filling sequence %d of %d to %d tokens", i+1, t.Sequences, t.Depth))
		}
		if err := r.pool.fill(ctx, r.f, r.pool.sequence(i), t.Depth, r.rows, false); err != nil {
			return err
		}
	}
	return nil
}

// decode lets each sequence decode t.N tokens greedily from its depth on. What
// it writes lies beyond the depth, so the next run overwrites it; recurrent
// states are computed again from the beginning, outside the time.
func (r *runner) decode(ctx context.Context, t Test) (time.Duration, error) {
	p := r.pool
	for i := 0; i < t.Sequences && p.states && t.Depth > 0; i++ {
		q := p.sequence(i)
		q.filled = 0
		if err := p.fill(ctx, r.f, q, t.Depth, r.rows, false); err != nil {
			return 0, err
		}
	}
	p.start(t)
	start := time.Now()
	for step := range t.N {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := r.f.Forward(p.step(t, t.Depth+step)); err != nil {
			return 0, err
		}
		if err := p.choose(r.f); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}
