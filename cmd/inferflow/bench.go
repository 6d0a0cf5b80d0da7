package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/internal/bench"
	"github.com/inferflow/inferflow/internal/model"
)

// benchFlags are what bench takes beside the model's flags.
type benchFlags struct {
	prefill, depth, sequences []int
	decode, repeat            int
	json, csv                 bool
}

func benchCommand() *cobra.Command {
	var f modelFlags
	var bf benchFlags
	c := &cobra.Command{
		Use:   "bench MODEL",
		Short: "Measure prefill and decode",
		Long: `Measures how many tokens a second a model takes in (prefill: one prompt in
chunks, logits of its last token) and puts out (decode: the likeliest token of
each sequence is fed back). Without a choice of tests it makes a table:
prefill of 32, 128, 512 and 2048 tokens, decode at depths 0, 512 and 2048 of
1, 4, 16 and 32 sequences. Each test is run several times; the median counts.
Prompts are random ids of a fixed generator.

Of a model that reads whole texts (an encoder) texts of these lengths are
measured, one at a time, and no decoding: it has none. An encoder-decoder is
refused (its steps need a source; run --stats shows their speed), and so are
lengths that its context does not hold.

Bytes a token are those of packed weights, keys and values that a token has to
read, by calculation; their share is that of the read bandwidth, which is
measured first in the same run, by the same number of threads. It passes one
where a cache holds what is read.`,
		Example: `  inferflow bench ./model.gguf
  inferflow bench ./model.gguf --prefill 512 --decode 64 --threads 2 --json
  inferflow bench ./model.gguf --decode 64 --depth 0,1024 --sequences 1,8 --csv`,
		Args: argsBetween(1, 1, "one model"),
		RunE: func(c *cobra.Command, args []string) error {
			config, err := bf.config(c.Flags())
			if err != nil {
				return err
			}
			o, err := f.options()
			if err != nil {
				return err
			}
			o.NoTokenizer = true
			config.Context, config.Memory, config.Threads = o.Context, o.KVMemory, o.Threads
			m, err := openModel(c.Context(), args[0], o)
			if err != nil {
				return err
			}
			defer m.Close()
			return runBench(c.Context(), m, config, &bf)
		},
	}
	f.add(c.Flags())
	bf.add(c.Flags())
	return c
}

func (b *benchFlags) add(fs *pflag.FlagSet) {
	fs.IntSliceVar(&b.prefill, "prefill", nil, "measure prompts of these lengths")
	fs.IntVar(&b.decode, "decode", 0, "measure decoding of this many tokens a sequence (default: 32)")
	fs.IntSliceVar(&b.depth, "depth", nil, "measure decoding after these numbers of tokens (default: 0)")
	fs.IntSliceVar(&b.sequences, "sequences", nil, "measure decoding of these numbers of sequences at once (default: 1)")
	fs.IntVar(&b.repeat, "repeat", 3, "runs of each test at most; a slow one is repeated less")
	fs.BoolVar(&b.json, "json", false, "print JSON")
	fs.BoolVar(&b.csv, "csv", false, "print comma-separated values")
}

// config is what the flags ask for: the whole table where they name no test.
func (b *benchFlags) config(fs *pflag.FlagSet) (bench.Config, error) {
	c := bench.Config{Prefill: b.prefill, Decode: b.decode, Depths: b.depth, Sequences: b.sequences, Repeat: b.repeat}
	decode := fs.Changed("decode") || fs.Changed("depth") || fs.Changed("sequences")
	if !decode && !fs.Changed("prefill") {
		c.Prefill, c.Decode, c.Depths, c.Sequences = []int{32, 128, 512, 2048}, 32, []int{0, 512, 2048}, []int{1, 4, 16, 32}
	}
	if decode && !fs.Changed("decode") {
		c.Decode = 32
	}
	if len(c.Depths) == 0 {
		c.Depths = []int{0}
	}
	if len(c.Sequences) == 0 {
		c.Sequences = []int{1}
	}
	if b.json && b.csv {
		return c, usagef("--json and --csv exclude each other")
	}
	if c.Repeat < 1 {
		return c, usagef("--repeat must be at least 1")
	}
	if c.Decode < 0 || c.Decode > maxBench || decode && c.Decode == 0 {
		return c, usagef("--decode takes a number of tokens from 1 to %d", maxBench)
	}
	for _, x := range []struct {
		flag   string
		values []int
		least  int
	}{{"prefill", c.Prefill, 1}, {"depth", c.Depths, 0}, {"sequences", c.Sequences, 1}} {
		for _, v := range x.values {
			if v < x.least || v > maxBench {
				return c, usagef("--%s takes numbers from %d to %d, got %d", x.flag, x.least, maxBench, v)
			}
		}
	}
	return c, nil
}

// maxBench bounds lengths and numbers of sequences in tests.
const maxBench = 1 << 24

func runBench(ctx context.Context, m *model.Model, c bench.Config, b *benchFlags) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	progress := progressLine()
	c.Progress = progress
	r, err := bench.Measure(ctx, m, c)
	progress("")
	if r == nil || err != nil && len(r.Results) == 0 {
		return err
	}
	print := printBench
	switch {
	case b.json:
		print = benchJSON
	case b.csv:
		print = benchCSV
	}
	if err := print(os.Stdout, r); err != nil {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("interrupted; the tests above were finished")
	}
	return err
}

func benchJSON(w io.Writer, r *bench.Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func benchCSV(w io.Writer, r *bench.Report) error {
	c := csv.NewWriter(w)
	float := func(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
	_ = c.Write([]string{"model", "types", "threads", "tier", "test", "n", "depth", "sequences", "tokens_per_second", "bytes_per_token",
		"bandwidth_share", "bandwidth_gb_s", "seconds", "repeats", "skipped"})
	row := func(t bench.Test, rest ...string) {
		_ = c.Write(append([]string{r.Model.Name, r.Model.Types, strconv.Itoa(r.Threads), r.Tier, t.Kind, strconv.Itoa(t.N),
			strconv.Itoa(t.Depth), strconv.Itoa(t.Sequences)}, rest...))
	}
	for _, x := range r.Results {
		row(x.Test, float(x.TokensPerSecond), float(x.BytesPerToken), float(x.BandwidthShare), float(r.Bandwidth), float(x.Seconds), strconv.Itoa(x.Repeats), "")
	}
	for _, x := range r.Skipped {
		row(x.Test, "", "", "", float(r.Bandwidth), "", "0", x.Reason)
	}
	c.Flush()
	return c.Error()
}

func printBench(w io.Writer, r *bench.Report) error {
	color := colored(os.Stdout)
	i := r.Model
	fmt.Fprintf(w, "%s  %s parameters, %s, %s stored, %s packed\n", style(bold, i.Name, color), bench.Count(i.Parameters), i.Types,
		model.Bytes(i.Bytes), model.Bytes(r.WeightBytes))
	fmt.Fprintf(w, "%d threads, %s kernels, keys %s, values %s, read bandwidth %.1f GB/s\n\n", r.Threads, r.Tier, i.Keys, i.Values, r.Bandwidth)
	t := table{head: []string{"test", "tokens", "depth", "sequences", "tokens/s", "MB/token", "of bandwidth", "seconds", "runs"},
		right: []bool{false, true, true, true, true, true, true, true, true}}
	texts := len(r.Results) > 0 && r.Results[0].TextsPerSecond > 0
	if texts {
		t.head, t.right = append(t.head, "texts/s"), append(t.right, true)
	}
	for _, x := range r.Results {
		row := []string{x.Kind, strconv.Itoa(x.N), strconv.Itoa(x.Depth), strconv.Itoa(x.Sequences), fmt.Sprintf("%.1f", x.TokensPerSecond),
			fmt.Sprintf("%.2f", x.BytesPerToken/1e6), fmt.Sprintf("%.0f %%", 100*x.BandwidthShare), fmt.Sprintf("%.3f", x.Seconds), strconv.Itoa(x.Repeats)}
		if texts {
			row = append(row, fmt.Sprintf("%.1f", x.TextsPerSecond))
		}
		t.add(row...)
	}
	if err := t.write(w, "", color); err != nil {
		return err
	}
	for _, x := range r.Skipped {
		fmt.Fprintf(w, "%s\n", style(dim, fmt.Sprintf("not measured: %s: %s", x.Test, x.Reason), color))
	}
	return nil
}
