package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
)

// checker is a model that checks the batches it is given as a device would:
// each sequence goes on where its cache ends, and blocks are nobody else's.
type checker struct {
	t      *testing.T
	rows   int
	vocab  int
	owner  map[int32]int32 // block → sequence
	filled map[int32]int32 // tokens in each sequence's cache
	outs   int
	total  int // rows so far
	nan    bool
	states bool // a sequence goes on where it stands, or begins anew
	fail   error
	after  func()
}

func newChecker(t *testing.T, rows int) *checker {
	return &checker{t: t, rows: rows, vocab: 11, owner: map[int32]int32{}, filled: map[int32]int32{}}
}

func (c *checker) Forward(b *batch.Batch) error {
	c.t.Helper()
	if b.Rows() == 0 || b.Rows() > c.rows || len(b.Pos) != b.Rows() {
		c.t.Fatalf("batch of %d rows, %d positions", b.Rows(), len(b.Pos))
	}
	row := int32(0)
	for _, q := range b.Seqs {
		if q.Row != row || q.N < 1 || q.Start > c.filled[q.ID] || c.states && q.Start != 0 && q.Start != c.filled[q.ID] {
			c.t.Fatalf("sequence %+v: row %d, %d tokens in the cache", q, row, c.filled[q.ID])
		}
		pos := int32(0)
		for i, s := range q.Spans {
			if owner, ok := c.owner[s.Block]; ok && owner != q.ID {
				c.t.Fatalf("block %d is sequence %d's and %d's", s.Block, owner, q.ID)
			}
			c.owner[s.Block] = q.ID
			if s.Pos != pos || s.N < 1 || s.N > batch.BlockTokens || s.N < batch.BlockTokens && i+1 < len(q.Spans) {
				c.t.Fatalf("sequence %d: span %d is %+v at position %d", q.ID, i, s, pos)
			}
			pos += s.N
		}
		if pos != q.Start+q.N {
			c.t.Fatalf("sequence %d: spans hold %d of %d tokens", q.ID, pos, q.Start+q.N)
		}
		for i := range q.N {
			if b.Pos[row] != q.Start+i || b.Tokens[row] < 0 || int(b.Tokens[row]) >= c.vocab {
				c.t.Fatalf("sequence %d, row %d: position %d, token %d", q.ID, row, b.Pos[row], b.Tokens[row])
			}
			row++
		}
		c.filled[q.ID] = pos
	}
	if int(row) != b.Rows() {
		c.t.Fatalf("sequences hold %d of %d rows", row, b.Rows())
	}
	c.outs, c.total = len(b.Out), c.total+b.Rows()
	if c.after != nil {
		c.after()
	}
	return c.fail
}

func (c *checker) Logits(i int) []float32 {
	if i >= c.outs {
		c.t.Fatalf("logits of row %d of %d", i, c.outs)
	}
	v := make([]float32, c.vocab)
	v[7] = 1
	if c.nan {
		clear(v)
		for i := range v {
			v[i] = float32(nan)
		}
	}
	return v
}

var nan = func() float64 { z := 0.0; return z / z }()

func runChecked(t *testing.T, f *checker, c Config) ([]Result, error) {
	tests := c.tests()
	r := &runner{f: f, c: &c, rows: f.rows, pool: newPool(f.vocab)}
	r.pool.states = f.states
	out, err := r.all(context.Background(), tests)
	blocks, _ := blocksOf(tests)
	if err == nil && r.pool.blocks > blocks {
		t.Errorf("%d blocks taken, %d reserved", r.pool.blocks, blocks)
	}
	return out, err
}

func TestTests(t *testing.T) {
	c := Config{Prefill: []int{5, 40, 100}, Decode: 19, Depths: []int{33, 0, 16, 16}, Sequences: []int{3, 1}, Repeat: 2}
	f := newChecker(t, 32)
	out, err := runChecked(t, f, c)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range out {
		got = append(got, r.Test.String())
		if r.Repeats != 2 || r.Seconds <= 0 || r.TokensPerSecond <= 0 {
			t.Errorf("%s: %+v", r.Test, r)
		}
	}
	want := `prefill 5
prefill 40
prefill 100
decode 19 at depth 0, sequences 1
decode 19 at depth 0, sequences 3
decode 19 at depth 16, sequences 1
decode 19 at depth 16, sequences 3
decode 19 at depth 33, sequences 1
decode 19 at depth 33, sequences 3`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("tests:\n%s\nwant:\n%s", s, want)
	}
	// Sequence 0 has the last prompt in its cache, the others are filled.
	rows := 32 + 2*(5+40+100) + 3*4*(2*19+warmSteps) + 2*33
	if f.total != rows {
		t.Errorf("%d rows were run, want %d", f.total, rows)
	}
}

// TestStates begins sequences anew where a model keeps states, at any order of depths.
func TestStates(t *testing.T) {
	f := newChecker(t, 32)
	f.states = true
	c := Config{Prefill: []int{5, 70}, Decode: 19, Depths: []int{0, 40, 100}, Sequences: []int{1, 3}, Repeat: 2}
	if out, err := runChecked(t, f, c); err != nil || len(out) != 8 {
		t.Fatalf("%d results, %v", len(out), err)
	}
}

func TestSequencesInOneBatch(t *testing.T) {
	f := newChecker(t, 64)
	if _, err := runChecked(t, f, Config{Decode: 1, Depths: []int{0}, Sequences: []int{64}, Repeat: 1}); err != nil {
		t.Fatal(err)
	}
}

func TestErrors(t *testing.T) {
	c := Config{Prefill: []int{4}, Decode: 2, Depths: []int{0}, Sequences: []int{1}, Repeat: 1}
	f := newChecker(t, 8)
	f.nan = true
	if out, err := runChecked(t, f, c); err == nil || !strings.Contains(err.Error(), "no logit is finite") || len(out) != 1 {
		t.Errorf("not finite: %d results, %v", len(out), err)
	}
	f = newChecker(t, 8)
	f.fail = errors.New("broken")
	if _, err := runChecked(t, f, c); !errors.Is(err, f.fail) {
		t.Errorf("got %v", err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	c := Config{Prefill: []int{4}, Decode: 50, Depths: []int{0}, Sequences: []int{1}, Repeat: 1}
	f := newChecker(t, 8)
	f.after = func() {
		if f.total > 20 {
			cancel()
		}
	}
	r := &runner{f: f, c: &c, rows: f.rows, pool: newPool(f.vocab)}
	out, err := r.all(ctx, c.tests())
	if !errors.Is(err, context.Canceled) || len(out) != 1 {
		t.Errorf("%d results, %v", len(out), err)
	}
}

// TestDecodeAllocatesNothing holds the loop around Forward to no garbage, so
// that it measures the model and not itself.
func TestDecodeAllocatesNothing(t *testing.T) {
	p := newPool(11)
	q := Test{kindDecode, 16, 16, 4}
	f := &quiet{logits: make([]float32, 11)}
	p.start(q)
	pos := 0
	step := func() {
		_ = f.Forward(p.step(q, q.Depth+pos%q.N))
		_ = p.choose(f)
		pos++
	}
	for range q.N {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

type quiet struct{ logits []float32 }

func (q *quiet) Forward(*batch.Batch) error { return nil }
func (q *quiet) Logits(int) []float32       { return q.logits }

func TestMedian(t *testing.T) {
	r := &runner{c: &Config{}}
	for _, x := range []struct {
		times []time.Duration
		want  float64
	}{{[]time.Duration{4e9}, 4}, {[]time.Duration{5e9, 1e9, 2e9}, 2}, {[]time.Duration{1e9, 3e9}, 2}} {
		if got := r.result(Test{kindDecode, 6, 0, 2}, x.times); got.Seconds != x.want || got.TokensPerSecond != 12/x.want {
			t.Errorf("%v: %+v, want %v s", x.times, got, x.want)
		}
	}
}

func TestReads(t *testing.T) {
	r := &reads{keys: 2, value: 4,
		caches: []graph.Cache{{Kind: graph.CacheKV, Heads: 3, KeyDim: 10, ValueDim: 5}},
		steps: []stepReads{
			{row: 7},
			{once: 1000},
			{att: &graph.AttentionAttr{Window: 4}},
			{once: 10, experts: 8, topK: 2, expert: 100},
			{once: 500, outOnly: true},
		}}
	for _, x := range []struct {
		rows, outs int
		want       int64
	}{{1, 1, 7 + 1000 + 10 + 200 + 500}, {2, 0, 14 + 1000 + 10 + 350}, {1000, 1, 7000 + 1000 + 10 + 800 + 500}} {
		if got := r.weights(x.rows, x.outs); got != x.want {
			t.Errorf("weights(%d, %d) = %d, want %d", x.rows, x.outs, got, x.want)
		}
	}
	for _, x := range []struct {
		from, rows int
		want       int64
	}{{0, 1, 120}, {2, 1, 360}, {100, 1, 480}, {100, 3, 720}} {
		if got := r.cached(x.from, x.rows); got != x.want {
			t.Errorf("cached(%d, %d) = %d, want %d", x.from, x.rows, got, x.want)
		}
	}
	// Prefill of 5 in chunks of 4: two passes over the layers, one over the head.
	want := r.weights(4, 0) + r.cached(0, 4) + r.weights(1, 1) + r.cached(4, 1)
	if got := r.test(Test{kindPrefill, 5, 0, 1}, 4); got != want {
		t.Errorf("prefill reads %d, want %d", got, want)
	}
	want = 2*r.weights(3, 3) + 3*(r.cached(9, 1)+r.cached(10, 1))
	if got := r.test(Test{kindDecode, 2, 9, 3}, 4); got != want {
		t.Errorf("decode reads %d, want %d", got, want)
	}
}

func TestBlocksOf(t *testing.T) {
	tests := []Test{{kindPrefill, 100, 0, 1}, {kindDecode, 16, 0, 4}, {kindDecode, 16, 17, 2}}
	blocks, longest := blocksOf(tests) // 100, 33, 16, 16 tokens
	if blocks != 7+3+1+1 || longest != 100 {
		t.Errorf("%d blocks, %d tokens", blocks, longest)
	}
}

func TestSumWords(t *testing.T) {
	b := make([]byte, 192)
	var want uint64
	for i := range b {
		b[i] = 1
		if i%8 == 0 {
			want += 0x0101010101010101
		}
	}
	if got := sumWords(b); got != want {
		t.Errorf("%x, want %x", got, want)
	}
}
