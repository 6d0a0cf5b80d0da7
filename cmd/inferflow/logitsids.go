package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/device"
	"github.com/inferflow/inferflow/internal/model"
)

// givenIDs are the ids on standard input.
type givenIDs struct {
	Input   []int32 `json:"input_ids"`
	Decoder []int32 `json:"decoder_input_ids"`
}

func readIDs(r io.Reader) (in givenIDs, err error) {
	d, raw := json.NewDecoder(io.LimitReader(r, maxInput)), json.RawMessage{}
	if err = d.Decode(&raw); err == nil {
		err = json.Unmarshal(raw, &in)
	}
	switch {
	case errors.Is(err, io.EOF):
		return in, usagef("standard input is empty; want {\"input_ids\": [1, 2, 3]}")
	case err != nil:
		return in, usagef("standard input is not {\"input_ids\": [1, 2, 3]}")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return in, usagef("standard input goes on after its JSON value")
	}
	var fields map[string]json.RawMessage
	switch _ = json.Unmarshal(raw, &fields); {
	case in.Input == nil:
		return in, usagef("standard input has no input_ids, only %q; want {\"input_ids\": [1, 2, 3]}", slices.Sorted(maps.Keys(fields)))
	case len(in.Input) == 0:
		return in, usagef("standard input: input_ids is empty")
	}
	return in, nil
}

// fits refuses ids of another kind of model.
func (in givenIDs) fits(m *model.Model) error {
	switch {
	case m.Encodes() && len(in.Decoder) == 0:
		return usagef("%s is an encoder-decoder: standard input needs decoder_input_ids beside input_ids, such as [%d]", m.Name, m.Generation.Decoding.Start)
	case !m.Encodes() && in.Decoder != nil:
		return usagef("%s has no encoder: decoder_input_ids mean nothing to it", m.Name)
	}
	return nil
}

// sequence is what the logits are of: the decoder's ids where there is an encoder.
func (in givenIDs) sequence(m *model.Model) []int32 {
	if m.Encodes() {
		return in.Decoder
	}
	return in.Input
}

func exactLogits(m *model.Model, in givenIDs, row func([]float32)) error {
	if err := m.Fits(); err != nil {
		return err
	}
	x := m.Exact()
	if m.Encodes() {
		if _, err := x.Run(sourceBatch(in.Input, 0)); err != nil {
			return err
		}
	}
	lead := m.Lead()
	ids := slices.Concat(lead, in.sequence(m))
	out, err := x.Run(wholeBatch(ids, 0, len(ids), len(ids)))
	if err != nil {
		return err
	}
	for i, r := range out[len(lead):] {
		if err := soundRow(i, r); err != nil {
			return fmt.Errorf("%w; without --exact the first step that makes such a value is named", err)
		}
		row(r)
	}
	return nil
}

// soundRow refuses a row that JSON cannot say and that means nothing.
func soundRow(at int, row []float32) error {
	for c, v := range row {
		if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%w: row %d, column %d is %v", device.ErrNonFinite, at, c, v)
		}
	}
	return nil
}

// fastLogits runs the compiled program in chunks and hands out every row.
func fastLogits(m *model.Model, in givenIDs, chunk, context int, row func([]float32)) error {
	if n := max(len(in.sequence(m)), len(in.Input)) + len(m.Lead()); context == 0 && m.MaxContext > 0 && n > m.MaxContext {
		m.SetContext(n) // with a notice: whoever gives ids knows how many
	}
	if err := m.Load(); err != nil {
		return err
	}
	if chunk <= 0 {
		chunk = m.Limits.Rows
	}
	lead := m.Lead()
	ids := slices.Concat(lead, in.sequence(m))
	if m.Whole() && chunk < len(ids) {
		return usagef("this model sees the whole text at once, and %d tokens are more than --batch takes", len(ids))
	}
	if len(ids) > m.Limits.Tokens {
		return fmt.Errorf("%d tokens do not fit the context of %d; raise it with --context", len(ids), m.Limits.Tokens)
	}
	var memory []batch.Span
	if m.Encodes() {
		if len(in.Input) > m.Limits.Source {
			return fmt.Errorf("%d tokens of the source do not fit %d; raise it with --context", len(in.Input), m.Limits.Source)
		}
		b := sourceBatch(in.Input, (m.Limits.Tokens+batch.BlockTokens-1)/batch.BlockTokens)
		if err := m.Forward(b); err != nil {
			return err
		}
		memory = b.Seqs[0].Spans
	}
	for at := 0; at < len(ids); at += chunk {
		n := min(chunk, len(ids)-at)
		b := wholeBatch(ids, at, n, len(ids))
		b.Seqs[0].Memory = memory
		if err := m.Forward(b); err != nil {
			return err
		}
		for i := max(0, len(lead)-at); i < n; i++ {
			if err := soundRow(at+i-len(lead), m.Logits(i)); err != nil {
				return fmt.Errorf("%w: first in %s", err, cmp.Or(m.Diagnose(b), "the output"))
			}
			row(m.Logits(i))
		}
	}
	return nil
}

// wholeBatch is a batch of n tokens from position at on of a single sequence
// whose blocks are numbered from 0.
func wholeBatch(ids []int32, at, n, total int) *batch.Batch {
	b := &batch.Batch{}
	for i := at; i < at+n; i++ {
		b.Tokens, b.Pos, b.Out = append(b.Tokens, ids[i]), append(b.Pos, int32(i)), append(b.Out, int32(i-at))
	}
	b.Seqs = []batch.Seq{{N: int32(n), Start: int32(at), Counted: int32(at), Length: int32(total), Spans: blocks(0, at+n)}}
	return b
}

// sourceBatch encodes ids in blocks from the given one on.
func sourceBatch(ids []int32, block int) *batch.Batch {
	b := wholeBatch(ids, 0, len(ids), len(ids))
	b.Out, b.Encode, b.Seqs[0].Spans = nil, true, blocks(block, len(ids))
	return b
}

// blocks are the spans of n positions in blocks from the given one on.
func blocks(from, n int) (spans []batch.Span) {
	for p := 0; p < n; p += batch.BlockTokens {
		spans = append(spans, batch.Span{Block: int32(from + p/batch.BlockTokens), Pos: int32(p), N: int32(min(batch.BlockTokens, n-p))})
	}
	return spans
}
