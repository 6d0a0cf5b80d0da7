package embed

import (
	"errors"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tokenizer"
)

// TestNoTokenizer: a model without one says what its files lack and what it is good for.
func TestNoTokenizer(t *testing.T) {
	m, err := model.Open(modeltest.Write(t, t.TempDir(), modeltest.Options{}), model.Options{Threads: 1, NoTokenizer: true, Output: spec.OutputEmbedding})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(m)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Encode([]string{"a"}, Options{})
	if !errors.Is(err, tokenizer.ErrNoTokenizer) || !strings.Contains(err.Error(), m.TokenizerHint()) || !strings.Contains(err.Error(), "logits, bench and explain work without") {
		t.Errorf("a text: %v", err)
	}
	if _, err := s.EncodePairs([][2]string{{"a", "b"}}, Options{}); !errors.Is(err, tokenizer.ErrNoTokenizer) {
		t.Errorf("a pair: %v", err)
	}
}
