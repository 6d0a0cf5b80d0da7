package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// textFlags are what the commands over texts share.
type textFlags struct {
	model modelFlags
	embed embed.Options
	file  string
	json  bool
}

func (f *textFlags) add(fs *pflag.FlagSet) {
	f.model.add(fs)
	fs.StringVarP(&f.file, "file", "f", "", `file of texts, one a line ("-": standard input)`)
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	fs.BoolVar(&f.embed.Truncate, "truncate", false, "cut texts that are too long, with a notice (default: refuse them)")
}

func embedCommand() *cobra.Command {
	var f textFlags
	c := &cobra.Command{
		Use:   "embed MODEL [TEXT…]",
		Short: "Vectors of texts",
		Long: `Prints the embedding of each TEXT, a line of numbers each. Without TEXT the texts
are the lines of --file or of standard input. How rows are pooled, whether
vectors have length 1, and prompts come from the model's files (modules.json and
what it names); a folder that says nothing has the mean.`,
		Example: `  inferflow embed ./all-MiniLM-L6-v2 "a cat" "a dog"
  inferflow embed ./nomic-embed --prompt query --json "Where do cats sleep?"
  inferflow embed ./all-MiniLM-L6-v2 --file sentences.txt --json > vectors.json`,
		Args: argsBetween(1, 1<<20, "a model and texts"),
		RunE: func(c *cobra.Command, args []string) error {
			f.embed.Unscaled = c.Flags().Changed("normalize") && !f.embed.Normalize
			return f.with(c.Context(), args, spec.OutputEmbedding, func(ctx context.Context, s *embed.Service, texts []string) error {
				return f.vectors(ctx, s, texts)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().IntVar(&f.embed.Dimensions, "dimensions", 0, "numbers that are kept of each vector, which has length 1 again if it had it before (default: all, or what the model says)")
	c.Flags().StringVar(&f.embed.Prompt, "prompt", "", "name of the model's prompt that goes before each text")
	c.Flags().BoolVar(&f.embed.NoPrompt, "no-prompt", false, "put no prompt before the texts, even where the model has a default")
	c.Flags().BoolVar(&f.embed.Normalize, "normalize", false, "scale each vector to length 1, whatever the model says; --normalize=false: not even those that --dimensions cuts")
	return c
}

// with opens the model for an output, reads the texts and runs f.
func (f *textFlags) with(ctx context.Context, args []string, output string, run func(context.Context, *embed.Service, []string) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	texts, err := f.texts(args[1:])
	if err != nil {
		return err
	}
	o, err := f.model.options()
	if err != nil {
		return err
	}
	s, err := openTexts(ctx, args[0], o, output)
	if err != nil {
		return err
	}
	defer s.Close()
	return run(ctx, s, texts)
}

// openTexts opens and loads a model for one of its outputs; "" is what its files are made for.
func openTexts(ctx context.Context, ref string, o model.Options, output string) (*embed.Service, error) {
	if output == "" {
		quiet := o
		quiet.Notice = nil
		m, err := openModel(ctx, ref, quiet)
		if err != nil {
			return nil, err
		}
		if output = m.Purpose(); output == embed.OutputLogits {
			output = spec.OutputEmbedding // the rows of a model that writes texts
		}
		m.Close()
	}
	o.Output = output
	m, err := openModel(ctx, ref, o)
	if errors.Is(err, spec.ErrOutput) {
		return nil, withoutHead(ctx, ref, o, output, err)
	}
	if err != nil {
		return nil, err
	}
	if m.Encodes() {
		m.Close()
		return nil, usagef("%s is an encoder-decoder: it answers with a text (inferflow run), not with numbers", m.Name)
	}
	return embed.Load(m)
}

// texts are the arguments, or the lines of a file or of standard input.
func (f *textFlags) texts(args []string) ([]string, error) {
	if f.file == "" && len(args) > 0 {
		for i, a := range args {
			args[i] = strings.ToValidUTF8(a, "\uFFFD")
		}
		return args, nil
	}
	if len(args) > 0 {
		return nil, usagef("give texts as arguments or with --file, not both")
	}
	in, what := io.Reader(os.Stdin), "standard input"
	if f.file != "" && f.file != "-" {
		file, err := os.Open(f.file)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in, what = file, f.file
	} else if f.file == "" && term.IsTerminal(int(os.Stdin.Fd())) {
		return nil, usagef("no texts: give them as arguments, with --file or on standard input")
	}
	all, err := readAll(in, what)
	if err != nil {
		return nil, err
	}
	all = strings.ToValidUTF8(strings.TrimSuffix(all, "\n"), "\uFFFD")
	if all == "" {
		return nil, usagef("%s holds no texts", what)
	}
	lines := strings.Split(all, "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines, nil
}

// noticeCuts tells which texts lost their end.
func noticeCuts(texts []embed.Text, most int) {
	n, tokens := 0, 0
	for _, t := range texts {
		if t.Cut > 0 {
			n, tokens = n+1, tokens+t.Cut
		}
	}
	if n > 0 {
		notice(fmt.Sprintf("%d of %d texts were cut to %d tokens: %d tokens were left out", n, len(texts), most, tokens))
	}
}

// chunk is the number of texts that are tokenized and computed before their
// vectors are printed: memory stays bounded however many lines come.
const chunk = 4096

func (f *textFlags) vectors(ctx context.Context, s *embed.Service, texts []string) error {
	w := bufio.NewWriter(os.Stdout)
	tokens := 0
	for at := 0; at < len(texts); at += chunk {
		f.embed.Before = at
		enc, err := s.Encode(texts[at:min(at+chunk, len(texts))], f.embed)
		if err != nil {
			return hintTruncate(err)
		}
		noticeCuts(enc, s.MaxTokens())
		vectors, err := s.Vectors(ctx, enc, f.embed)
		if err != nil {
			return err
		}
		lines := make([][]byte, len(vectors))
		embed.Each(len(vectors), printAtOnce, func(i int) error {
			lines[i] = formatVector(vectors[i], f.json, at+i == 0)
			return nil
		})
		for i, l := range lines {
			tokens += len(enc[i].IDs)
			w.Write(l)
		}
	}
	if f.json {
		fmt.Fprintf(w, "], \"tokens\": %d}\n", tokens)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// printAtOnce is the number of vectors that a thread formats at a time.
const printAtOnce = 16

func formatVector(v []float32, asJSON, first bool) []byte {
	begin, sep, end := "", " ", "\n"
	if asJSON {
		begin, sep, end = ", [", ", ", "]"
		if first {
			begin = `{"embeddings": [[`
		}
	}
	out := append(make([]byte, 0, 16*len(v)), begin...)
	for i, x := range v {
		if i > 0 {
			out = append(out, sep...)
		}
		out = strconv.AppendFloat(out, float64(x), 'g', -1, 32)
	}
	return append(out, end...)
}

// hintTruncate says how a long text can be served.
func hintTruncate(err error) error {
	if strings.Contains(err.Error(), embed.ErrTooLong.Error()) {
		return fmt.Errorf("%w; --truncate cuts it", err)
	}
	return err
}

func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}
