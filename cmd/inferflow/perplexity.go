package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/tokenizer"
)

func perplexityCommand() *cobra.Command {
	var f modelFlags
	var file string
	var ctx, chunks int
	var asJSON bool
	c := &cobra.Command{
		Use:   "perplexity MODEL",
		Short: "Perplexity of a text",
		Long: `Perplexity of a text by llama.cpp's convention: the whole text is tokenised at
once, cut into windows of --ctx tokens that do not overlap, the first token of
each window is replaced by the beginning-of-text token where the model's
tokenizer adds one, and only the second half of each window is scored.`,
		Example: `  inferflow perplexity smollm2 -f wiki.txt --ctx 512 --json`,
		Args:    argsBetween(1, 1, "one model"),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case file == "":
				return usagef("perplexity needs a text: -f FILE")
			case ctx < 4 || ctx > maxContext:
				return usagef("--ctx %d: a window takes 4 tokens at least", ctx)
			case chunks < 0:
				return usagef("--chunks must not be negative")
			}
			t, err := os.Open(file)
			if err != nil {
				return err
			}
			defer t.Close()
			text, err := readAll(t, file)
			if err != nil {
				return err
			}
			o, err := f.options()
			if err != nil {
				return err
			}
			o.Rows = 512
			m, err := openModel(c.Context(), args[0], o)
			if err != nil {
				return err
			}
			defer m.Close()
			if err := onlyReads(m, "perplexity"); err != nil {
				return err
			}
			if ctx, err = windowFor(m, ctx, c.Flags().Changed("ctx")); err != nil {
				return err
			}
			m.SetContext(max(f.context, ctx))
			p, err := measurePerplexity(m, strings.ToValidUTF8(text, "\uFFFD"), ctx, chunks)
			if err != nil {
				return err
			}
			return p.print(asJSON)
		},
	}
	f.add(c.Flags())
	c.Flags().StringVarP(&file, "file", "f", "", "text file")
	c.Flags().IntVar(&ctx, "ctx", 512, "tokens of a window")
	c.Flags().IntVar(&chunks, "chunks", 0, "windows at most; 0: all")
	c.Flags().BoolVar(&asJSON, "json", false, "print {ppl, stderr, nll, tokens}")
	return c
}

// windowFor is the length of a window: the default is no longer than the
// model's positions, and one that was asked for is taken as it is.
func windowFor(m *model.Model, ctx int, asked bool) (int, error) {
	most := m.MaxContext
	switch {
	case most <= 0 || ctx <= most:
		return ctx, nil
	case most < 4:
		return 0, fmt.Errorf("%s was made for %d tokens; a window takes 4 at least", m.Name, most)
	case asked: // Load tells it
		return ctx, nil
	}
	notice(fmt.Sprintf("windows are of %d tokens, for which the model was made, not of the usual %d; compare only with others of this length (--ctx)", most, ctx))
	return most, nil
}

type perplexity struct {
	PPL    float64 `json:"ppl"`
	Stderr float64 `json:"stderr"`
	NLL    float64 `json:"nll"`
	Tokens int     `json:"tokens"`
}

func (p perplexity) print(asJSON bool) error {
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(p)
	}
	_, err := fmt.Printf("perplexity %.4f ± %.4f over %d tokens\n", p.PPL, p.Stderr, p.Tokens)
	return err
}

func measurePerplexity(m *model.Model, text string, ctx, chunks int) (perplexity, error) {
	if m.Tokenizer == nil {
		return perplexity{}, fmt.Errorf("%s: %w", m.Path, complete.ErrNoTokenizer)
	}
	ids, err := m.Tokenizer.TryEncode(text, tokenizer.Options{AddSpecial: true})
	if err != nil {
		return perplexity{}, err
	}
	windows := len(ids) / ctx
	if windows == 0 {
		return perplexity{}, fmt.Errorf("the text has %d tokens; a window takes %d (--ctx)", len(ids), ctx)
	}
	if chunks > 0 {
		windows = min(windows, chunks)
	}
	if err := m.Load(); err != nil {
		return perplexity{}, err
	}
	bos, hasBOS := m.Tokenizer.BOS()
	hasBOS = hasBOS && m.Tokenizer.AddsBOS()
	var sum, sq float64
	n := 0
	last := time.Now()
	for w := 0; w < windows; w++ {
		window := append([]int32{}, ids[w*ctx:(w+1)*ctx]...)
		if hasBOS {
			window[0] = bos
		}
		err := windowNLL(m, window, ctx/2, func(nll float64) {
			sum, sq, n = sum+nll, sq+nll*nll, n+1
		})
		if err != nil {
			return perplexity{}, fmt.Errorf("window %d: %w", w, err)
		}
		if time.Since(last) > 5*time.Second {
			last = time.Now()
			fmt.Fprintf(os.Stderr, "window %d of %d: perplexity %.4f\n", w+1, windows, math.Exp(sum/float64(n)))
		}
	}
	mean := sum / float64(n)
	p := perplexity{PPL: math.Exp(mean), NLL: mean, Tokens: n}
	if n > 1 {
		p.Stderr = math.Sqrt(max(0, sq/float64(n)-mean*mean)/float64(n-1)) * p.PPL
	}
	return p, nil
}

// windowNLL scores the tokens that follow positions first … len−2.
func windowNLL(m *model.Model, ids []int32, first int, score func(float64)) error {
	for at := 0; at < len(ids); at += m.Limits.Rows {
		n := min(m.Limits.Rows, len(ids)-at)
		b := wholeBatch(ids, at, n, len(ids))
		b.Out = b.Out[:0]
		for i := max(first, at); i < min(at+n, len(ids)-1); i++ {
			b.Out = append(b.Out, int32(i-at))
		}
		if err := m.Forward(b); err != nil {
			return err
		}
		for i, r := range b.Out {
			next := ids[at+int(r)+1]
			if row := m.Logits(i); next < 0 || int(next) >= len(row) {
				return fmt.Errorf("token %d of the text has no logit: the tokenizer has more tokens than the model's %d", next, len(row))
			}
			nll := -engine.Logprob(m.Logits(i), next)
			if math.IsNaN(nll) || math.IsInf(nll, 0) {
				return fmt.Errorf("the log-probability of position %d is not finite; %s", at+int(r), m.Diagnose(b))
			}
			score(nll)
		}
	}
	return nil
}
