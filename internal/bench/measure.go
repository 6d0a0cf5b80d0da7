package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sys"
)

// Report is what a measurement found.
type Report struct {
	Model       ModelInfo `json:"model"`
	Threads     int       `json:"threads"`
	Tier        string    `json:"tier"`           // instructions of the kernels
	Bandwidth   float64   `json:"bandwidth_gb_s"` // read bandwidth of all threads, 10⁹ bytes a second
	WeightBytes int64     `json:"weight_bytes"`   // packed
	Results     []Result  `json:"results"`
	Skipped     []Skipped `json:"skipped,omitempty"`
}

// ModelInfo says what was measured.
type ModelInfo struct {
	Name       string `json:"name"`
	Path       string `json:"path"`
	Spec       string `json:"spec"`
	Types      string `json:"types"` // storage types by bytes, the largest first
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"` // stored
	Layers     int    `json:"layers"`
	Keys       string `json:"keys"`
	Values     string `json:"values"`
}

// Measure loads an opened model with room for the tests and makes them. Tests
// that the memory or the model's context does not hold are skipped with the
// reason. When ctx ends or a test fails, the report holds what was finished
// before; nothing is loaded if no test fits.
func Measure(ctx context.Context, m *model.Model, c Config) (*Report, error) {
	if m.Encodes() {
		return nil, ErrEncodes
	}
	if c.texts = m.Whole(); c.texts && len(c.Prefill) == 0 {
		return nil, ErrReads
	}
	if c.Threads <= 0 {
		c.Threads = sys.UsableCPUs()
	}
	if c.Repeat <= 0 {
		c.Repeat = 3
	}
	keys, values, err := m.KVTypes()
	if err != nil {
		return nil, err
	}
	r := &Report{Model: Info(m), Threads: c.Threads, Tier: sys.CPUTier().String()}
	r.Model.Keys, r.Model.Values = keys.String(), values.String()
	tests, err := r.fitting(m, &c)
	if err != nil {
		return r, err
	}
	if c.Bandwidth == 0 {
		if c.Progress != nil {
			c.Progress("measuring the read bandwidth")
		}
		if c.Bandwidth, err = Bandwidth(c.Threads); err != nil {
			return r, err
		}
	}
	r.Bandwidth = c.Bandwidth / 1e9
	if c.Progress != nil {
		c.Progress("loading the weights")
	}
	if err := m.Load(); err != nil {
		return r, err
	}
	r.WeightBytes = m.WeightBytes()
	run := &runner{f: m, c: &c, rows: m.Limits.Rows, pool: newPool(vocabulary(m)),
		reads: readsOf(m.Program, m, keys.Size(), values.Size())}
	run.pool.states = m.Limits.States > 0
	r.Results, err = run.all(ctx, tests)
	return r, err
}

// ErrEncodes marks an encoder-decoder, which is not measured: its steps need a source.
var ErrEncodes = errors.New("bench: encoder-decoders are not measured; run --stats shows the speed of one request")

// ErrReads marks an encoder of which only decoding was to be measured.
var ErrReads = errors.New("bench: the model reads whole texts and decodes none; --prefill measures texts of a length")

// vocabulary is the number of token ids that may be fed.
func vocabulary(m *model.Model) int {
	if n := m.Traced.Graph.Vocab; n > 0 {
		return n
	}
	if n := m.Embeds(); n > 0 {
		return n
	}
	return max(1, m.Vocab())
}

// fitting chooses the tests that memory and context hold, and reserves what
// they need.
func (r *Report) fitting(m *model.Model, c *Config) ([]Test, error) {
	size, err := m.BlockSize()
	if err != nil {
		return nil, err
	}
	free, source := sys.MemoryLimit()
	left := free - m.TensorBytes() - m.TensorBytes()/8 - bandwidthBuffer/4
	var tests []Test
	skip := func(t Test, format string, a ...any) {
		r.Skipped = append(r.Skipped, Skipped{t, fmt.Sprintf(format, a...)})
	}
	for _, t := range c.tests() {
		blocks, _ := blocksOf(append(tests[:len(tests):len(tests)], t))
		need := int64(blocks) * int64(size)
		switch {
		case m.MaxContext > 0 && t.Depth+t.N > m.MaxContext:
			skip(t, "the model was made for %d tokens", m.MaxContext)
		case t.Sequences > maxSequences:
			skip(t, "at most %d sequences are measured at once", maxSequences)
		case c.Context > 0 && t.Depth+t.N > c.Context:
			skip(t, "the context was limited to %d tokens", c.Context)
		case free > 0 && need > left:
			skip(t, "keys and values of %s; %s are free (%s)", model.Bytes(need), model.Bytes(max(0, left)), source)
		case c.Memory > 0 && need > c.Memory:
			skip(t, "keys and values of %s; %s were granted", model.Bytes(need), model.Bytes(c.Memory))
		default:
			tests = append(tests, t)
		}
	}
	if len(tests) == 0 {
		if len(r.Skipped) > 0 {
			return nil, fmt.Errorf("bench: no test can be made: %s: %s", r.Skipped[0].Test, r.Skipped[0].Reason)
		}
		return nil, fmt.Errorf("bench: no test was asked for")
	}
	blocks, longest := blocksOf(tests)
	if size == 0 { // nothing is kept a token: blocks cost nothing, the context brings them
		longest = max(longest, blocks*batch.BlockTokens)
	}
	return tests, m.Reserve(max(longest, 1), max(blocks, 2))
}

// maxSequences is the number of sequences that a stage is loaded for.
const maxSequences = 64
