package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/pull"
	"github.com/inferflow/inferflow/tokenizer"
)

func tokenizeCommand() *cobra.Command {
	var lines bool
	c := &cobra.Command{
		Use:   "tokenize MODEL [TEXT]",
		Short: "Token ids of a text",
		Long: `Prints the token ids of TEXT, or of standard input, as a JSON array.

With --jsonl each line of standard input is {"text": …, "special": true|false,
"parse": true|false} and each line of output the array of its ids. "special"
adds the tokens of the post-processor (default false); "parse" recognises added
tokens inside the text (default true). A line {"ids": [...], "skip": true|false}
gives their text as a JSON string; "skip" leaves special tokens out (default
false), "stream" decodes one id at a time.

MODEL may also be a folder that holds a tokenizer only: tokenizer.json,
tokenizer.model, tekken.json, tiktoken files, vocab.json with merges.txt, or
vocab.txt.`,
		Example: `  inferflow tokenize smollm2 "Hello, world"
  echo '{"text": "Hello", "special": true}' | inferflow tokenize smollm2 --jsonl`,
		Args: argsBetween(1, 2, "a model and perhaps a text"),
		RunE: func(c *cobra.Command, args []string) error {
			if lines && len(args) == 2 {
				return usagef("--jsonl reads standard input; leave the text out")
			}
			tok, err := openTokenizer(c.Context(), args[0])
			if err != nil {
				return err
			}
			w := bufio.NewWriter(os.Stdout)
			defer w.Flush()
			if lines {
				return tokenizeLines(tok, os.Stdin, w)
			}
			var text string
			if len(args) == 2 {
				text = args[1]
			} else {
				if text, err = readAll(os.Stdin, "standard input"); err != nil {
					return err
				}
			}
			text = strings.ToValidUTF8(text, "\uFFFD")
			ids, err := tok.TryEncode(text, tokenizer.Options{AddSpecial: true, ParseSpecial: true})
			if err != nil {
				return err
			}
			return printIDs(w, ids)
		},
	}
	c.Flags().BoolVar(&lines, "jsonl", false, "read and write a JSON value a line")
	return c
}

// openTokenizer reads the tokenizer of a model, fetched if it must be.
func openTokenizer(ctx context.Context, ref string) (*tokenizer.Tokenizer, error) {
	if ref == demoName {
		m, err := openDemo(model.Options{})
		if err != nil {
			return nil, err
		}
		return m.Tokenizer, nil
	}
	path, err := pull.Resolve(ctx, ref, pull.Options{Progress: pull.Terminal(os.Stderr), Note: notice})
	if err != nil {
		return nil, err
	}
	tok, err := model.OpenTokenizer(path)
	if err == nil {
		for _, note := range tok.Notes() {
			notice(note)
		}
	}
	return tok, err
}

// maxLine bounds a line of JSON.
const maxLine = 64 << 20

// tokenizeLine is a line of JSON: a text to encode, or ids to decode.
type tokenizeLine struct {
	Text    *string  `json:"text"`
	Special bool     `json:"special"`
	Parse   *bool    `json:"parse"`
	IDs     *[]int32 `json:"ids"`
	Skip    bool     `json:"skip"`
	Stream  bool     `json:"stream"`
}

func tokenizeLines(tok *tokenizer.Tokenizer, r io.Reader, w *bufio.Writer) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; sc.Scan(); n++ {
		var in tokenizeLine
		err := json.Unmarshal(sc.Bytes(), &in)
		if err == nil {
			err = in.answer(tok, w)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		// A reader may wait for each answer before it asks again.
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return sc.Err()
}

func (in *tokenizeLine) answer(tok *tokenizer.Tokenizer, w io.Writer) error {
	if (in.Text == nil) == (in.IDs == nil) {
		return errors.New(`want either "text" or "ids"`)
	}
	if in.Text != nil {
		o := tokenizer.Options{AddSpecial: in.Special, ParseSpecial: in.Parse == nil || *in.Parse}
		ids, err := tok.TryEncode(*in.Text, o)
		if err != nil {
			return err
		}
		return printIDs(w, ids)
	}
	text := ""
	if in.Stream {
		d := tok.NewDecoder(in.Skip)
		var b strings.Builder
		for _, id := range *in.IDs {
			b.WriteString(d.Next(id))
		}
		b.WriteString(d.Flush())
		text = b.String()
	} else {
		text = tok.Decode(*in.IDs, in.Skip)
	}
	return json.NewEncoder(w).Encode(text)
}

func printIDs(w io.Writer, ids []int32) error {
	if ids == nil {
		ids = []int32{}
	}
	return json.NewEncoder(w).Encode(ids)
}
