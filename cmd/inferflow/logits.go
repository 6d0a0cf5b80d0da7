package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/embed"
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
tokens of each. A classifier of texts has one row, the logits of its classes; an encoder without a
head only its hidden values: {"hidden": [[…], …]}. What is pooled has one row. An encoder-decoder takes its source as input_ids and has a row
for each of decoder_input_ids.`,
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
			in, err := readIDs(os.Stdin)
			if err != nil {
				return err
			}
			m, err := openModel(c.Context(), args[0], o)
			if err != nil {
				return err
			}
			defer m.Close()
			if err := in.fits(m); err != nil {
				return err
			}
			w := bufio.NewWriter(os.Stdout)
			if n := len(in.sequence(m)); chunk > 0 && chunk < n && m.Whole() {
				return usagef("this model sees the whole text at once: it cannot be computed in chunks of %d tokens", chunk)
			}
			p, err := printerOf(m, w, asJSON)
			if err != nil {
				return err
			}
			if exact {
				err = exactLogits(m, in, p.row)
			} else {
				err = fastLogits(m, in, chunk, f.context, p.row)
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

// rowPrinter writes rows of logits as they come.
type rowPrinter struct {
	w    *bufio.Writer
	json bool
	key  string // of the rows in JSON
	ids  string // what the columns of a row are
	once bool   // all rows are the text's one row
	n    int
}

// printerOf names the rows by what they are; hidden values are no logits, and
// the largest of them mean nothing.
func printerOf(m *model.Model, w *bufio.Writer, asJSON bool) (rowPrinter, error) {
	p := rowPrinter{w: w, json: asJSON, key: "logits", ids: "id"}
	g := m.Traced.Graph
	p.once = g.Pooled()[g.Outputs[0].Node]
	switch out := m.Outputs()[0]; out {
	case embed.OutputLogits:
	case embed.OutputScores:
		p.ids = "class"
	case embed.OutputTokenScores:
		p.ids = "class"
	case "spans":
		p.ids = "column"
	default:
		if !asJSON {
			return p, usagef("%s has no head, so its rows are no logits but values named %s: print them with --json; it gives %s", m.Name, out, gives(m))
		}
		p.key = out
	}
	return p, nil
}

func (p *rowPrinter) row(v []float32) {
	if p.once && p.n > 0 {
		return
	}
	if !p.json {
		p.likeliest(v)
		return
	}
	sep := ", ["
	if p.n == 0 {
		sep = fmt.Sprintf(`{%q: [[`, p.key)
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
		fmt.Fprintln(p.w, "  row "+strings.Repeat(fmt.Sprintf("%8s %8s", p.ids, "logit"), min(5, len(v))))
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
