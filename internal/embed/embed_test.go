package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/device"
)

// sums is a model whose row is [Σ ids of the sequence, its length, the row's own
// id], so that an answer tells which tokens made it.
type sums struct {
	mu      sync.Mutex
	out     [][]float32
	batches [][]int // lengths of the sequences of each batch
	fail    error
	asked   int // calls of Diagnose
}

func (m *sums) Forward(b *batch.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.out = m.out[:0]
	var lengths []int
	next := int32(0)
	for _, q := range b.Seqs {
		lengths = append(lengths, int(q.N))
		sum, held := int32(0), int32(0)
		for r := q.Row; r < q.Row+q.N; r++ {
			sum += b.Tokens[r]
		}
		for _, s := range q.Spans {
			if s.Block != next || s.Pos != held {
				return fmt.Errorf("span %v does not continue at block %d, position %d", s, next, held)
			}
			next, held = next+1, held+s.N
		}
		if held != q.N {
			return fmt.Errorf("the blocks hold %d of %d positions", held, q.N)
		}
		for _, r := range b.Out {
			if r >= q.Row && r < q.Row+q.N {
				row := []float32{float32(sum), float32(q.N), float32(b.Tokens[r])}
				if v, ok := bad[b.Tokens[r]]; ok {
					row[1] = float32(v)
				}
				m.out = append(m.out, row)
			}
		}
	}
	m.batches = append(m.batches, lengths)
	return nil
}

func (m *sums) Logits(i int) []float32 { return m.out[i] }
func (m *sums) Vocab() int             { return 3 }
func (m *sums) Embeds() int            { return 1000 }

func (m *sums) Diagnose(*batch.Batch) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	return "layer 3, step sum"
}

// bad are tokens whose rows are not finite.
var bad = map[int32]float64{997: math.Inf(-1), 998: math.Inf(1), 999: math.NaN()}

// TestNotFinite: a row that is not finite is an error that names its place, asked
// for once a batch, for its text alone; -Inf is a forbidden token among logits.
func TestNotFinite(t *testing.T) {
	m := &sums{}
	s := start(m, 100, 5, 12)
	defer s.Close()
	for id := range bad {
		_, err := s.Rows(context.Background(), []Text{{IDs: []int32{1}}, {IDs: []int32{id}}})
		if !errors.Is(err, device.ErrNonFinite) || !strings.Contains(err.Error(), "not finite") || !strings.Contains(err.Error(), "first in layer 3") {
			t.Errorf("token %d: %v", id, err)
		}
		s.Output = OutputLogits
		if _, err := s.Rows(context.Background(), []Text{{IDs: []int32{id}}}); (err == nil) != (id == 997) {
			t.Errorf("token %d among logits: %v", id, err)
		}
		s.Output = ""
	}
	var left sync.WaitGroup
	items := []*item{{rows: [][]float32{{1}}, left: &left}, {rows: [][]float32{{float32(math.NaN())}}}, {rows: [][]float32{{float32(math.Inf(1))}}}}
	asked := m.asked
	if s.judge(items); items[0].err != nil || items[1].err == nil || items[2].err == nil || m.asked != asked+1 {
		t.Errorf("%v, %v, %v, asked %d times", items[0].err, items[1].err, items[2].err, m.asked-asked)
	}
}

func ids(n, from int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32((from + i) % 1000)
	}
	return out
}

// TestRows checks that each of many callers gets what its own texts make, however
// they share batches, and that no batch is larger than it may be.
func TestRows(t *testing.T) {
	m := &sums{}
	s := start(m, 100, 5, 12)
	defer s.Close()
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var texts []Text
			for i := range 20 {
				texts = append(texts, Text{IDs: ids(1+(7*c+13*i)%100, 31*c+i)})
			}
			rows, err := s.Rows(context.Background(), texts)
			if err != nil {
				t.Error(err)
				return
			}
			for i, x := range texts {
				sum := float32(0)
				for _, id := range x.IDs {
					sum += float32(id)
				}
				if len(rows[i]) != 1 || rows[i][0][0] != sum || rows[i][0][1] != float32(len(x.IDs)) || rows[i][0][2] != float32(x.IDs[len(x.IDs)-1]) {
					t.Errorf("caller %d, text %d: %v, want the sum %g of %d tokens", c, i, rows[i], sum, len(x.IDs))
				}
			}
		}()
	}
	wg.Wait()
	for _, b := range m.batches {
		rows, blocks := 0, 0
		for _, n := range b {
			rows, blocks = rows+n, blocks+blocksOf(n)
		}
		if rows > 100 || len(b) > 5 || blocks > 12 {
			t.Errorf("a batch of %v: %d rows, %d blocks", b, rows, blocks)
		}
	}
	if st := s.Stats(); st.Texts != 160 || st.Waiting != 0 {
		t.Errorf("%+v", st)
	}
}

func TestRowsWanted(t *testing.T) {
	s := start(&sums{}, 100, 5, 12)
	defer s.Close()
	rows, err := s.Rows(context.Background(), []Text{{IDs: []int32{4, 5, 6}, Out: []int32{0, 2}}, {IDs: []int32{7}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows[0]) != 2 || rows[0][0][2] != 4 || rows[0][1][2] != 6 || rows[1][0][2] != 7 {
		t.Errorf("%v", rows)
	}
}

func TestRefused(t *testing.T) {
	s := start(&sums{}, 100, 5, 12)
	defer s.Close()
	for what, x := range map[string]struct {
		text Text
		want error
	}{
		"nothing":       {Text{}, ErrRequest},
		"too long":      {Text{IDs: ids(101, 0)}, ErrTooLong},
		"no such id":    {Text{IDs: []int32{1000}}, ErrRequest},
		"negative id":   {Text{IDs: []int32{-1}}, ErrRequest},
		"types":         {Text{IDs: []int32{1, 2}, Types: []int32{0}}, ErrRequest},
		"all prompt":    {Text{IDs: []int32{1, 2}, Skip: 2}, ErrRequest},
		"row too far":   {Text{IDs: []int32{1, 2}, Out: []int32{2}}, ErrRequest},
		"row twice":     {Text{IDs: []int32{1, 2}, Out: []int32{1, 1}}, ErrRequest},
		"negative rows": {Text{IDs: []int32{1, 2}, Out: []int32{-1}}, ErrRequest},
	} {
		if _, err := s.Rows(context.Background(), []Text{x.text}); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", what, err, x.want)
		}
	}
}

func TestFailures(t *testing.T) {
	broken := errors.New("broken")
	s := start(&sums{fail: broken}, 100, 5, 12)
	if _, err := s.Rows(context.Background(), []Text{{IDs: []int32{1}}, {IDs: []int32{2}}}); !errors.Is(err, broken) {
		t.Errorf("a failing model: %v", err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Rows(gone, []Text{{IDs: []int32{1}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that is gone: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Rows(context.Background(), []Text{{IDs: []int32{1}}}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestCosine(t *testing.T) {
	for _, x := range []struct {
		a, b []float32
		want float64
	}{{[]float32{1, 0}, []float32{3, 0}, 1}, {[]float32{1, 0}, []float32{0, 2}, 0}, {[]float32{1, 1}, []float32{-1, -1}, -1}, {[]float32{0, 0}, []float32{1, 1}, 0}} {
		if got := Cosine(x.a, x.b); math.Abs(got-x.want) > 1e-12 {
			t.Errorf("cosine of %v and %v is %g, want %g", x.a, x.b, got, x.want)
		}
	}
	v := []float32{3, 4}
	if scale(v); v[0] != 0.6 || v[1] != 0.8 {
		t.Errorf("scaled to %v", v)
	}
}
