package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/inferflow/inferflow/internal/embed"
)

// fillList is texts whose masks are to be filled.
type fillList struct {
	n, top int
	encode func(i int) (embed.Text, error)
	title  func(i int) string // the line above a text's masks; nil: none
}

// filledWord is a word for a mask, as JSON shows it.
type filledWord struct {
	ID    int32   `json:"id"`
	Token string  `json:"token"`
	Score float64 `json:"score"`
}

// titleOf is the line above what became of one text or query of several.
func titleOf(what string, i int, text string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf("── %s %d: %s", what, i+1, quoted)
}

// failures collects what went wrong with single texts of a list, which goes on.
type failures struct {
	n, of int
}

// tell prints the error of one text, under the line that names it.
func (f *failures) tell(title string, err error) {
	f.n++
	fmt.Fprintln(os.Stderr, "inferflow:", plain(strings.TrimPrefix(title, "── ")+": "+words(err)))
}

// err is the error of the whole list, nil where nothing went wrong.
func (f *failures) err() error {
	if f.n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d were not answered", f.n, f.of)
}

// fill prints the words for the masks of a list of texts. One that cannot be
// filled is told, and the others are filled all the same.
func (f *textFlags) fill(ctx context.Context, s *embed.Service, l fillList) error {
	if !s.Model.Whole() {
		return fmt.Errorf("%s fills no masks: it writes texts from left to right (inferflow run); it gives vectors too (inferflow embed)", s.Model.Name)
	}
	out := make([][][]filledWord, l.n)
	failed := failures{of: l.n}
	for i := range l.n {
		masks, err := fillOne(ctx, s, l, i)
		switch {
		case err != nil && (l.title == nil || ctx.Err() != nil):
			return err
		case err != nil:
			failed.tell(l.title(i), err)
			continue
		}
		out[i] = masks
		if f.json {
			continue
		}
		if err := printMasks(l, i, masks); err != nil {
			return err
		}
	}
	if f.json {
		return errors.Join(printJSON(map[string]any{"masks": out}), failed.err())
	}
	return failed.err()
}

func fillOne(ctx context.Context, s *embed.Service, l fillList, i int) (masks [][]filledWord, err error) {
	enc, err := l.encode(i)
	if err != nil {
		return nil, err
	}
	filled, err := s.Fill(ctx, enc, l.top)
	if err != nil {
		return nil, err
	}
	for _, words := range filled {
		var list []filledWord
		for _, w := range words {
			list = append(list, filledWord{w.ID, w.Text, w.Score})
		}
		masks = append(masks, list)
	}
	return masks, nil
}

func printMasks(l fillList, i int, masks [][]filledWord) error {
	var b strings.Builder
	if l.title != nil {
		b.WriteString(plain(l.title(i)) + "\n")
	}
	for k, words := range masks {
		var parts []string
		for _, w := range words {
			parts = append(parts, fmt.Sprintf("%s %.4f", plain(strings.TrimSpace(w.Token)), w.Score))
		}
		fmt.Fprintf(&b, "%d\t%s\n", k, strings.Join(parts, ", "))
	}
	if l.title != nil && i+1 < l.n {
		b.WriteString("\n")
	}
	if _, err := os.Stdout.WriteString(b.String()); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}
