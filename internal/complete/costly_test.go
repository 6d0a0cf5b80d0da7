package complete

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/tokenizer"
)

// TestTooCostly: a text that the tokenizer gives up on is an error, not other ids.
func TestTooCostly(t *testing.T) {
	s := open(t, modeltest.Options{Template: template, Context: 4096})
	tok, err := tokenizer.FromJSON([]byte(`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(?:a{0,50}){0,50}c|[^a]"},"behavior":"Isolated"},
		"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Tok = tok
	long := strings.Repeat("a", 600)
	if _, err := s.Text(long, false); !errors.Is(err, tokenizer.ErrTooCostly) {
		t.Errorf("a text: %v", err)
	}
	in := chat.Input{AddGenerationPrompt: true, Messages: []chat.Message{{Role: "user", Content: long}}}
	if _, err := s.ChatWithin(context.Background(), 0, in); !errors.Is(err, tokenizer.ErrTooCostly) {
		t.Errorf("a conversation: %v", err)
	}
	if ids, err := s.Text("bab", false); err != nil || len(ids) != 3 {
		t.Errorf("a short text: %v, %v", ids, err)
	}
}
