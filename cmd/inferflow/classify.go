package main

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/embed"
)

// scored is a label, word or document with its score, as JSON shows it.
type scored struct {
	Label string  `json:"label,omitempty"`
	Score float64 `json:"score"`
}

func classifyCommand() *cobra.Command {
	var f textFlags
	var pair string
	var top int
	c := &cobra.Command{
		Use:   "classify MODEL [TEXT…]",
		Short: "Classes of texts with their probabilities",
		Long: `Prints the classes of each TEXT with their probabilities, the likeliest first.
The model is a folder of a class …ForSequenceClassification; its labels are
those of config.json.`,
		Example: `  inferflow classify ./sentiment "I like it." "I do not."
  inferflow classify ./nli "A man sleeps." --pair "Nobody is awake." --json`,
		Args: argsBetween(1, 1<<20, "a model and texts"),
		RunE: func(c *cobra.Command, args []string) error {
			return f.with(c.Context(), args, embed.OutputScores, func(ctx context.Context, s *embed.Service, texts []string) error {
				enc, err := encodeFor(s, texts, pair, f.embed)
				if err != nil {
					return hintTruncate(err)
				}
				noticeCuts(enc, s.MaxTokens())
				all, err := s.Classes(ctx, enc)
				if err != nil {
					return err
				}
				return f.printClasses(texts, all, top)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().StringVar(&pair, "pair", "", "second text, which is read behind each TEXT")
	c.Flags().IntVarP(&top, "top", "k", 0, "classes that are printed (default: all)")
	return c
}

func encodeFor(s *embed.Service, texts []string, pair string, o embed.Options) ([]embed.Text, error) {
	if pair == "" {
		o.NoPrompt = true
		return s.Encode(texts, o)
	}
	pairs := make([][2]string, len(texts))
	for i, t := range texts {
		pairs[i] = [2]string{t, pair}
	}
	return s.EncodePairs(pairs, o)
}

func (f *textFlags) printClasses(texts []string, all [][]embed.Class, top int) error {
	out := make([][]scored, len(all))
	for i, classes := range all {
		sort.SliceStable(classes, func(a, b int) bool { return classes[a].Score > classes[b].Score })
		if top > 0 {
			classes = classes[:min(top, len(classes))]
		}
		for _, c := range classes {
			out[i] = append(out[i], scored{c.Label, c.Score})
		}
	}
	if f.json {
		return printJSON(map[string]any{"classes": out})
	}
	for i, classes := range out {
		var parts []string
		for _, c := range classes {
			parts = append(parts, fmt.Sprintf("%s %.4f", plain(c.Label), c.Score))
		}
		if _, err := fmt.Printf("%s\t%s\n", strings.Join(parts, ", "), short(texts[i])); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	return nil
}

// short is a text on one line of a table.
func short(s string) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > 72 {
		r = append(r[:71:71], '…')
	}
	return plain(string(r))
}

func rerankCommand() *cobra.Command {
	var f textFlags
	var top int
	c := &cobra.Command{
		Use:   "rerank MODEL QUERY [DOCUMENT…]",
		Short: "Order documents by their relevance to a query",
		Long: `Prints the documents with their relevance, the most relevant first. MODEL is a
cross-encoder (…ForSequenceClassification with one score, which is read through
the logistic function) or a model of embeddings (their cosine).`,
		Example: `  inferflow rerank ./bge-reranker "Where do cats sleep?" "On sofas." "In Paris."
  inferflow rerank ./all-MiniLM-L6-v2 "Where do cats sleep?" --file documents.txt --top 3`,
		Args: argsBetween(2, 1<<20, "a model, a query and documents"),
		RunE: func(c *cobra.Command, args []string) error {
			query := strings.ToValidUTF8(args[1], "\uFFFD")
			return f.with(c.Context(), append([]string{args[0]}, args[2:]...), "", func(ctx context.Context, s *embed.Service, docs []string) error {
				ranked, _, err := s.Rank(ctx, query, docs, f.embed)
				if err != nil {
					return hintTruncate(err)
				}
				if top > 0 {
					ranked = ranked[:min(top, len(ranked))]
				}
				return f.printRanked(docs, ranked)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().IntVarP(&top, "top", "k", 0, "documents that are printed (default: all)")
	return c
}

func (f *textFlags) printRanked(docs []string, ranked []embed.Ranked) error {
	if f.json {
		type result struct {
			Index    int     `json:"index"`
			Score    float64 `json:"score"`
			Document string  `json:"document"`
		}
		out := []result{}
		for _, r := range ranked {
			out = append(out, result{r.Index, r.Score, docs[r.Index]})
		}
		return printJSON(map[string]any{"results": out})
	}
	for _, r := range ranked {
		if _, err := fmt.Printf("%.4f\t%d\t%s\n", r.Score, r.Index, short(docs[r.Index])); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	return nil
}

func fillMaskCommand() *cobra.Command {
	var f textFlags
	var top int
	c := &cobra.Command{
		Use:   "fill-mask MODEL [TEXT…]",
		Short: "Words for the masks of a text",
		Long: `Prints for each mask of each TEXT the likeliest words with their probabilities.
The mask is written as the model's own ([MASK], <mask>) or as [MASK]. The model
has a masked-LM head.`,
		Example: `  inferflow fill-mask ./masked-lm "Paris is the [MASK] of France."`,
		Args:    argsBetween(1, 1<<20, "a model and texts"),
		RunE: func(c *cobra.Command, args []string) error {
			if top < 1 || top > embed.MaxWords {
				return usagef("--top %d: want 1 to %d", top, embed.MaxWords)
			}
			return f.with(c.Context(), args, embed.OutputLogits, func(ctx context.Context, s *embed.Service, texts []string) error {
				list := fillList{top: top, n: len(texts), encode: func(i int) (embed.Text, error) { return s.EncodeMasked(texts[i]) }}
				if len(texts) > 1 {
					list.title = func(i int) string { return titleOf("text", i, texts[i]) }
				}
				return f.fill(ctx, s, list)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().IntVarP(&top, "top", "k", 5, "words for each mask")
	return c
}
