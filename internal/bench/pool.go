package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/kernel/vec"
)

// pool numbers the key/value blocks of the sequences under test and builds
// their batches; after the first step of a test it allocates nothing.
type pool struct {
	blocks int // given out
	seqs   []*sequence
	b      batch.Batch
	rng    *rand.Rand
	vocab  int
	states bool // the model keeps recurrent states, which cannot go back to where a sequence stood
}

// sequence is one request's tokens so far.
type sequence struct {
	id     int32
	filled int          // tokens of the prompt that stand in the cache
	spans  []batch.Span // whole blocks but for last, as many as were ever needed
	last   int          // the span that was cut short when they were handed out
	next   int32        // the token to decode next
}

// newPool makes a pool that draws token ids below vocab from a fixed generator.
func newPool(vocab int) *pool {
	return &pool{vocab: vocab, rng: rand.New(rand.NewPCG(0x1f83d9abfb41bd6b, 0x5be0cd19137e2179))}
}

func (p *pool) token() int32 { return int32(p.rng.IntN(p.vocab)) }

// sequence returns sequence i, which is made when first asked for.
func (p *pool) sequence(i int) *sequence {
	for len(p.seqs) <= i {
		p.seqs = append(p.seqs, &sequence{id: int32(len(p.seqs))})
	}
	return p.seqs[i]
}

// cover returns the spans of the first n tokens. They are valid until the
// sequence is covered again.
func (p *pool) cover(q *sequence, n int) []batch.Span {
	if len(q.spans) > 0 {
		q.spans[q.last].N = batch.BlockTokens
	}
	for len(q.spans) < blocksFor(n) {
		q.spans = append(q.spans, batch.Span{Block: int32(p.blocks), Pos: int32(len(q.spans) * batch.BlockTokens), N: batch.BlockTokens})
		p.blocks++
	}
	q.last = blocksFor(n) - 1
	q.spans[q.last].N = int32(n) - q.spans[q.last].Pos
	return q.spans[:q.last+1]
}

// fill runs random tokens until n stand in the cache, in chunks of rows; with
// logits, the last token's are computed.
func (p *pool) fill(ctx context.Context, f Forwarder, q *sequence, n, rows int, logits bool) error {
	for q.filled < n {
		if err := ctx.Err(); err != nil {
			return err
		}
		k := min(rows, n-q.filled)
		b := &p.b
		b.Reset()
		for i := range k {
			b.Tokens, b.Pos = append(b.Tokens, p.token()), append(b.Pos, int32(q.filled+i))
		}
		if logits && q.filled+k == n {
			b.Out = append(b.Out, int32(k-1))
		}
		b.Seqs = append(b.Seqs, batch.Seq{ID: q.id, N: int32(k), Start: int32(q.filled), State: q.id, Length: int32(n), Spans: p.cover(q, q.filled+k)})
		if err := f.Forward(b); err != nil {
			return err
		}
		q.filled += k
	}
	return nil
}

// start gives each sequence of a decode test its first token.
func (p *pool) start(t Test) {
	for i := range t.Sequences {
		p.sequence(i).next = p.token()
	}
}

// step builds the batch in which each sequence decodes its token at pos.
func (p *pool) step(t Test, pos int) *batch.Batch {
	b := &p.b
	b.Reset()
	for i := range t.Sequences {
		q := p.seqs[i]
		b.Tokens, b.Pos, b.Out = append(b.Tokens, q.next), append(b.Pos, int32(pos)), append(b.Out, int32(i))
		b.Seqs = append(b.Seqs, batch.Seq{ID: q.id, Row: int32(i), N: 1, Start: int32(pos), State: q.id, Length: int32(max(1, t.Depth)), Spans: p.cover(q, pos+1)})
	}
	return b
}

// choose takes the likeliest token of each sequence of the last step.
func (p *pool) choose(f Forwarder) error {
	for i := range p.b.Seqs {
		best, ok := vec.MaxIndex(f.Logits(i))
		if !ok {
			return fmt.Errorf("sequence %d: no logit is finite", i)
		}
		// A table of embeddings may have fewer rows than there are logits.
		p.seqs[i].next = int32(min(best, p.vocab-1))
	}
	return nil
}
