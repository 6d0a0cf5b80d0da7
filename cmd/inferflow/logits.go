package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/model"
)

func logitsCommand() *cobra.Command {
	var f modelFlags
	var exact, asJSON bool
	var chunk int
	c := &cobra.Command{
		Use:   "logits MODEL",
		Short: "Logits of given token ids, a row a position",
		Long: `Reads {"input_ids": [1, 2, 3]} on standard input and prints the logits of
every position: {"logits": [[…], …]} with --json, else the five likeliest
tokens of each.`,
		Example: `  echo '{"input_ids": [1, 2, 3]}' | inferflow logits ./model.gguf --exact --json`,
		Args:    argsBetween(1, 1, "one model"),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			if chunk < 0 {
				return usagef("--chunk must not be negative")
			}
			o.NoTokenizer = true
			ids, err := readIDs(os.Stdin)
			if err != nil {
				return err
			}
			m, err := openModel(c.Context(), args[0], o)
			if err != nil {
				return err
			}
			defer m.Close()
			w := bufio.NewWriter(os.Stdout)
			p := rowPrinter{w: w, json: asJSON}
			if exact {
				err = exactLogits(m, ids, p.row)
			} else {
				err = fastLogits(m, ids, chunk, p.row)
			}
			if err != nil {
				return err
			}
			p.end()
			return w.Flush()
		},
	}
	f.add(c.Flags())
	c.Flags().BoolVar(&exact, "exact", false, "run the graph as it stands, in float32, without quantised arithmetic")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().IntVar(&chunk, "chunk", 0, "prefill in chunks of this many tokens (default: 512)")
	return c
}

func readIDs(r io.Reader) ([]int32, error) {
	var in struct {
		InputIDs        []int32 `json:"input_ids"`
		DecoderInputIDs []int32 `json:"decoder_input_ids"`
	}
	d := json.NewDecoder(io.LimitReader(r, maxInput))
	switch err := d.Decode(&in); {
	case errors.Is(err, io.EOF):
		return nil, usagef("standard input is empty; want {\"input_ids\": [1, 2, 3]}")
	case err != nil:
		return nil, usagef("standard input is not {\"input_ids\": [1, 2, 3]}")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, usagef("standard input goes on after its JSON value")
	}
	if len(in.InputIDs) == 0 {
		return nil, usagef("standard input: input_ids is empty")
	}
	if in.DecoderInputIDs != nil {
		return nil, fmt.Errorf("decoder_input_ids: encoder-decoder models are not served yet")
	}
	return in.InputIDs, nil
}

func exactLogits(m *model.Model, ids []int32, row func([]float32)) error {
	b := wholeBatch(ids, 0, len(ids), len(ids))
	out, err := m.Exact().Run(b)
	if err != nil {
		return err
	}
	for _, r := range out {
		row(r)
	}
	return nil
}

// fastLogits runs the compiled program in chunks and hands out every row.
func fastLogits(m *model.Model, ids []int32, chunk int, row func([]float32)) error {
	if err := m.Load(); err != nil {
		return err
	}
	if chunk <= 0 {
		chunk = m.Limits.Rows
	}
	if m.Whole() && chunk < len(ids) {
		return usagef("this model sees the whole text at once: it cannot be computed in chunks of %d tokens", chunk)
	}
	if len(ids) > m.Limits.Tokens {
		return fmt.Errorf("%d tokens do not fit the context of %d; raise it with --context", len(ids), m.Limits.Tokens)
	}
	for at := 0; at < len(ids); at += chunk {
		n := min(chunk, len(ids)-at)
		if err := m.Forward(wholeBatch(ids, at, n, len(ids))); err != nil {
			return err
		}
		for i := 0; i < n; i++ {
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
	q := batch.Seq{N: int32(n), Start: int32(at), Length: int32(total)}
	for p := 0; p < at+n; p += batch.BlockTokens {
		q.Spans = append(q.Spans, batch.Span{Block: int32(p / batch.BlockTokens), Pos: int32(p), N: int32(min(batch.BlockTokens, at+n-p))})
	}
	b.Seqs = []batch.Seq{q}
	return b
}

// rowPrinter writes rows of logits as they come.
type rowPrinter struct {
	w    *bufio.Writer
	json bool
	n    int
}

func (p *rowPrinter) row(v []float32) {
	if !p.json {
		p.likeliest(v)
		return
	}
	sep := ", ["
	if p.n == 0 {
		sep = `{"logits": [[`
	}
	p.w.WriteString(sep)
	var buf [32]byte
	for i, x := range v {
		if i > 0 {
			p.w.WriteString(", ")
		}
		p.w.Write(strconv.AppendFloat(buf[:0], float64(x), 'g', -1, 32))
	}
	p.w.WriteString("]")
	p.n++
}

func (p *rowPrinter) likeliest(v []float32) {
	if p.n == 0 {
		fmt.Fprintln(p.w, "  row      id    logit      id    logit      id    logit      id    logit      id    logit")
	}
	fmt.Fprintf(p.w, "%5d ", p.n)
	p.n++
	used := map[int]bool{}
	for k := 0; k < 5 && k < len(v); k++ {
		best := -1
		for i, x := range v {
			if !used[i] && (best < 0 || x > v[best]) {
				best = i
			}
		}
		used[best] = true
		fmt.Fprintf(p.w, " %7d %8.3f", best, v[best])
	}
	fmt.Fprintln(p.w)
}

func (p *rowPrinter) end() {
	if p.json {
		p.w.WriteString("]}\n")
	}
}
