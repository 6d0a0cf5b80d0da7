package demo_test

import (
	"context"
	"flag"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/demo"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/tokenizer"
)

var update = flag.Bool("update", false, "write the golden story anew")

const (
	opening = "Once upon a time"
	golden  = "testdata/greedy.txt"
	limit   = 3_000_000 // bytes of the program that the demo may take
)

func open(t *testing.T) *model.Model {
	t.Helper()
	m, err := model.OpenBytes(demo.Name, demo.Data(), model.Options{Threads: 1, Context: 256})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSize(t *testing.T) {
	if n := len(demo.Data()); n > limit {
		t.Errorf("the demo takes %d bytes, more than %d", n, limit)
	}
}

// TestStory holds the likeliest story against the golden text.
func TestStory(t *testing.T) {
	m := open(t)
	if err := m.Load(); err != nil {
		t.Fatal(err)
	}
	s, err := complete.New(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := sample.Defaults()
	p.Temperature = 0
	var texts [2]string
	for i := range texts {
		ids, err := s.Text(opening, false)
		if err != nil {
			t.Fatal(err)
		}
		run, err := s.Start(context.Background(), ids, complete.Params{Sample: p, Max: 40})
		if err != nil {
			t.Fatal(err)
		}
		a, err := run.Collect(nil)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = opening + a.Text
	}
	if texts[0] != texts[1] {
		t.Errorf("two runs differ:\n%q\n%q", texts[0], texts[1])
	}
	if *update {
		if err := os.WriteFile(golden, []byte(texts[0]+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if texts[0]+"\n" != string(want) {
		t.Errorf("the likeliest story is\n%q, want\n%q\n(-update after a new training)", texts[0], want)
	}
}

// TestExact holds the compiled program against the graph as it stands, on the
// golden story.
func TestExact(t *testing.T) {
	m := open(t)
	defer m.Close()
	if err := m.Load(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	ids := append(m.Tokenizer.Prefix(), m.Tokenizer.Encode(strings.TrimSpace(string(text)), tokenizer.Options{})...)
	b := whole(ids)
	exact, err := m.Exact().Run(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Forward(b); err != nil {
		t.Fatal(err)
	}
	for i, want := range exact {
		if d := divergence(want, m.Logits(i)); !(d < 0.02) {
			t.Errorf("position %d: the fast program diverges by %.4f nats", i, d)
		}
	}
}

// whole is a batch of one sequence from its beginning, with logits of every row.
func whole(ids []int32) *batch.Batch {
	b := &batch.Batch{Tokens: ids}
	q := batch.Seq{N: int32(len(ids)), Length: int32(len(ids))}
	for i := range ids {
		b.Pos, b.Out = append(b.Pos, int32(i)), append(b.Out, int32(i))
		if i%batch.BlockTokens == 0 {
			q.Spans = append(q.Spans, batch.Span{Block: int32(i / batch.BlockTokens), Pos: int32(i), N: int32(min(batch.BlockTokens, len(ids)-i))})
		}
	}
	b.Seqs = []batch.Seq{q}
	return b
}

// divergence of the softmax of y from that of x, in nats.
func divergence(x, y []float32) (sum float64) {
	lx, ly := normaliser(x), normaliser(y)
	for i := range x {
		sum += math.Exp(float64(x[i])-lx) * (float64(x[i]) - lx - float64(y[i]) + ly)
	}
	return sum
}

func normaliser(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v))
	}
	return math.Log(sum)
}

func TestTokenizer(t *testing.T) {
	m := open(t)
	defer m.Close()
	tok := m.Tokenizer
	for _, text := range []string{
		"Once upon a time, there was a little girl named Lily.", "\"Hello!\" said the fox.\n\nThe end.", "It's 3 o'clock, isn't it?",
		"Zürich, naïve, 東京, 🦊", "  two  spaces\tand a tab", "\xff\x00\x7f", "",
	} {
		d := tok.ContinueDecoder(true)
		var got strings.Builder
		for _, id := range tok.Encode(text, tokenizer.Options{}) {
			got.WriteString(d.Next(id))
		}
		got.WriteString(d.Flush())
		if want := strings.ToValidUTF8(text, "\uFFFD"); got.String() != want {
			t.Errorf("%q comes back as %q", want, got.String())
		}
	}
	if !tok.AddsBOS() {
		t.Error("a text does not begin with the token that begins stories")
	}
	if n := len(tok.Encode(opening, tokenizer.Options{})); n != 4 {
		t.Errorf("%q has %d tokens, want 4", opening, n)
	}
	if end, ok := tok.Named("eos"); !ok || len(m.Generation.EndTokens) != 1 || m.Generation.EndTokens[0] != end {
		t.Errorf("stories end with %v, want the end token alone", m.Generation.EndTokens)
	}
}
