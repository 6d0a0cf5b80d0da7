package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// gives says what an opened model's outputs are good for and by which commands;
// the model must have been opened without an Output.
func gives(m *model.Model) string {
	var uses []string
	for _, o := range m.Outputs() {
		switch {
		case m.Encodes() && o == embed.OutputLogits:
			return "texts for a source (inferflow run)"
		case o == embed.OutputScores && len(m.Labels()) == 1:
			uses = append(uses, "the relevance of texts to a query (inferflow rerank)")
		case o == embed.OutputScores:
			uses = append(uses, "classes of texts (inferflow classify)")
		case o == embed.OutputTokenScores:
			uses = append(uses, "classes of tokens (inferflow logits)")
		case o == "spans":
			uses = append(uses, "places of answers in a text (inferflow logits)")
		case o == embed.OutputLogits && m.Whole():
			uses = append(uses, "words for masks (inferflow fill-mask)")
		case o == embed.OutputLogits:
			uses = append(uses, "texts (inferflow run, chat, serve)")
		}
	}
	return strings.Join(append(uses, "vectors (inferflow embed, rerank)"), ", ")
}

// headFor names the outputs that a command asks for.
var headFor = map[string]string{
	embed.OutputScores:   "classes of texts",
	embed.OutputLogits:   "words",
	spec.OutputEmbedding: "vectors",
}

// withoutHead says what a model without an output has instead of it.
func withoutHead(ctx context.Context, ref string, o model.Options, output string, err error) error {
	o.Output, o.Notice, o.NoTokenizer = "", nil, true
	m, again := openModel(ctx, ref, o)
	if again != nil {
		return err
	}
	defer m.Close()
	what := headFor[output]
	if what == "" {
		what = output
	}
	return fmt.Errorf("%s has no head for %s; it gives %s", m.Name, what, gives(m))
}

// onlyReads refuses a model that goes on with no text, for a command that needs one.
func onlyReads(m *model.Model, command string) error {
	switch {
	case m.Encodes():
		return usagef("%s is of texts that a model goes on with; %s is an encoder-decoder", command, m.Name)
	case m.Whole() || m.Outputs()[0] != embed.OutputLogits:
		return usagef("%s is of texts that a model goes on with; %s reads texts and writes none: it gives %s", command, m.Name, gives(m))
	}
	return nil
}
