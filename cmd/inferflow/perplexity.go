package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/config"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sys"
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
tokenizer adds one, and only the second half of each window is scored. MODEL may
be an .ini file of the C++ Inferflow with a test_data_file: by its convention the
beginning-of-text token stands before the whole text alone, and all of a window
but its first token is scored.`,
		Example: `  inferflow perplexity smollm2 -f wiki.txt --ctx 512 --json
  inferflow perplexity perplexity.ini`,
		Args: argsBetween(1, 1, "one model"),
		RunE: func(c *cobra.Command, args []string) error {
			if fs := c.Flags(); fs.Changed("context") && !fs.Changed("ctx") {
				if err := fs.Set("ctx", fmt.Sprint(f.context)); err != nil {
					return err
				}
			}
			p := perplexityRun{model: &f, ref: args[0], file: file, ctx: ctx, chunks: chunks, half: true}
			r, err := p.run(c.Context(), c.Flags())
			if err != nil {
				return err
			}
			return r.print(asJSON)
		},
	}
	f.add(c.Flags())
	c.Flags().StringVarP(&file, "file", "f", "", "text file")
	c.Flags().IntVar(&ctx, "ctx", 512, "tokens of a window; --context says the same")
	_ = c.Flags().MarkHidden("context")
	c.Flags().IntVar(&chunks, "chunks", 0, "windows at most; 0: all")
	c.Flags().BoolVar(&asJSON, "json", false, "print {ppl, stderr, nll, tokens}")
	return c
}

// perplexityRun is what the command measures.
type perplexityRun struct {
	model       *modelFlags
	ref, file   string
	ctx, chunks int
	half        bool // llama.cpp's convention, else the C++ Inferflow's
}

// run opens the model, which an .ini file may name with the text, and measures.
func (r *perplexityRun) run(ctx context.Context, given *pflag.FlagSet) (p perplexity, err error) {
	o, err := r.model.options()
	if err != nil {
		return p, err
	}
	open := func() (*model.Model, error) { return openModel(ctx, r.ref, o) }
	if isINI(r.ref) {
		x, err := r.read(given)
		if err != nil {
			return p, err
		}
		x.options(&o, given)
		open = func() (*model.Model, error) { return x.openModel(ctx, o) }
	}
	switch {
	case r.file == "":
		return p, usagef("perplexity needs a text: -f FILE")
	case r.ctx < 4 || r.ctx > maxContext:
		return p, usagef("--ctx %d: a window takes 4 tokens at least", r.ctx)
	case r.chunks < 0:
		return p, usagef("--chunks must not be negative")
	}
	openText := os.Open
	if !r.half {
		openText = sys.OpenRegular // a pipe that a file names would be waited for
	}
	t, err := openText(r.file)
	if err != nil {
		return p, err
	}
	defer t.Close()
	text, err := readAll(t, r.file)
	if err != nil {
		return p, err
	}
	o.Rows = 512
	m, err := open()
	if err != nil {
		return p, err
	}
	defer m.Close()
	if err := onlyReads(m, "perplexity"); err != nil {
		return p, err
	}
	if r.ctx, err = windowFor(m, r.ctx, given.Changed("ctx")); err != nil {
		return p, err
	}
	m.SetContext(max(r.model.context, r.ctx+len(m.Lead())))
	return r.measure(m, strings.ToValidUTF8(text, "\uFFFD"))
}

// read takes text and window from an .ini file, where no flag names them.
func (r *perplexityRun) read(given *pflag.FlagSet) (*iniService, error) {
	ini, err := config.ReadINI(r.ref)
	if err != nil {
		return nil, err
	}
	q, err := ini.Perplexity()
	if err != nil {
		return nil, err
	}
	for _, n := range q.Notes {
		notice(n)
	}
	if !given.Changed("file") {
		r.file = q.Text
	}
	if !given.Changed("ctx") && q.Length > 0 {
		r.ctx = q.Length
	}
	if q.Stride > 0 && q.Stride != r.ctx {
		notice(fmt.Sprintf("stride = %d has no effect: windows do not overlap", q.Stride))
	}
	r.half = false
	return readINIService(q.Service)
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

// measure cuts the text into windows and scores them.
func (r *perplexityRun) measure(m *model.Model, text string) (perplexity, error) {
	if m.Tokenizer == nil {
		return perplexity{}, fmt.Errorf("%s: %w", m.Path, complete.ErrNoTokenizer)
	}
	ids, err := m.Tokenizer.TryEncode(text, tokenizer.Options{AddSpecial: true})
	if err != nil {
		return perplexity{}, err
	}
	ctx := r.ctx
	windows := len(ids) / ctx
	if windows == 0 {
		return perplexity{}, fmt.Errorf("the text has %d tokens; a window takes %d (--ctx)", len(ids), ctx)
	}
	if r.chunks > 0 {
		windows = min(windows, r.chunks)
	}
	if err := m.Load(); err != nil {
		return perplexity{}, err
	}
	bos, hasBOS := m.Tokenizer.BOS()
	hasBOS = r.half && hasBOS && m.Tokenizer.AddsBOS()
	first := 0
	if r.half {
		first = ctx / 2
	}
	var sum, sq float64
	n := 0
	last := time.Now()
	for w := 0; w < windows; w++ {
		window := append([]int32{}, ids[w*ctx:(w+1)*ctx]...)
		if hasBOS {
			window[0] = bos
		}
		err := windowNLL(m, window, first, func(nll float64) {
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
	lead := m.Lead()
	ids, first = slices.Concat(lead, ids), first+len(lead)
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
