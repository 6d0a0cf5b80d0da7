package inferflow

import (
	"context"

	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// Embedder is a loaded model that makes vectors of texts. It is safe for
// concurrent use: texts of calls that run at the same time share batches, and
// their vectors do not depend on it.
type Embedder struct{ s *embed.Service }

// OpenEmbedder opens and loads the model at path for embeddings: a folder of
// sentence-transformers, another encoder, or any model whose rows are to be
// pooled. Close it when done.
func OpenEmbedder(path string, o Options) (*Embedder, error) {
	m, err := model.Open(path, model.Options{Threads: o.Threads, Context: o.Context, KVMemory: o.KVMemory, Keys: o.KVType, Values: o.KVType,
		Spec: spec.Choose(o.Spec), Notice: o.Notice, Output: spec.OutputEmbedding})
	if err != nil {
		return nil, err
	}
	s, err := embed.Load(m)
	if err != nil {
		return nil, err
	}
	return &Embedder{s}, nil
}

// Embed computes a vector for each text, in order. A text that is longer than
// MaxTokens is an error that wraps ErrTextTooLong; nothing is cut silently.
func (e *Embedder) Embed(ctx context.Context, texts ...string) ([][]float32, error) {
	enc, err := e.s.Encode(texts, embed.Options{})
	if err != nil {
		return nil, err
	}
	return e.s.Vectors(ctx, enc, embed.Options{})
}

// MaxTokens is the length of the longest text in tokens, special ones included;
// Dimensions the number of values of a vector.
func (e *Embedder) MaxTokens() int  { return e.s.MaxTokens() }
func (e *Embedder) Dimensions() int { return e.s.Width() }

// Close fails what waits and gives the memory back.
func (e *Embedder) Close() error { return e.s.Close() }

// ErrTextTooLong marks a text that is longer than an Embedder takes.
var ErrTextTooLong = embed.ErrTooLong
