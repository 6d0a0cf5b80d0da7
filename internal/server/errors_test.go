package server

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/chat/jinja"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/tokenizer"
)

// TestWords: messages begin with the field or with what happened, not with the
// packages that an error came through.
func TestWords(t *testing.T) {
	hot := sample.Defaults()
	hot.Temperature = -1
	for _, c := range []struct {
		err     error
		status  int
		param   string
		message string
	}{
		{fmt.Errorf("engine: %w: %w", engine.ErrRequest, hot.Validate()), 400, "temperature", "temperature is -1; it must be a finite number of at least 0"},
		{fmt.Errorf("engine: %w: the prompt holds no tokens", engine.ErrRequest), 400, "", "the prompt holds no tokens"},
		{fmt.Errorf("engine: %w (7)", engine.ErrQueueFull), 429, "", "too many requests are waiting (7)"},
		{fmt.Errorf("engine: cpu: token id 9 is outside"), 500, "", "token id 9 is outside"},
		{fmt.Errorf("complete: tiny: %w; use a plain completion (--raw)", complete.ErrNoTemplate), 400, "", "the model's files hold no chat template; use /v1/completions"},
		{fmt.Errorf("complete: %w: chat: template: %w", complete.ErrTemplate, &jinja.Error{Kind: jinja.ErrRaised, Line: 3, Col: 4, Msg: "no tools"}), 400, "messages", "the chat template refused the conversation: no tools"},
		{fmt.Errorf("complete: %w: chat: template: %w", complete.ErrTemplate, &jinja.Error{Kind: jinja.ErrLimit, Line: 3, Col: 4, Msg: "more than 7 steps"}), 400, "messages", "the chat template failed at line 3, column 4: limit exceeded: more than 7 steps"},
		{fmt.Errorf("complete: %w: chat: %w %q: it is bad", complete.ErrTemplate, chat.ErrVariable, "x"), 400, "chat_template_kwargs", `chat_template_kwargs: template variable "x": it is bad`},
		{about("prompt", fmt.Errorf("complete: %w: 9 bytes", complete.ErrTooLong)), 400, "prompt", "the text is longer than the context holds: 9 bytes"},
		{about("prompt", fmt.Errorf("complete: tokenizer: encode: pattern: \"a\": %w: 9 bytes", tokenizer.ErrTooCostly)), 400, "prompt", "encode: \"a\": the pattern takes too many steps on this text: 9 bytes"},
		{about("content", fmt.Errorf("tokenizer: encode: %w: 9 bytes become more than 5", tokenizer.ErrTooLong)), 400, "content", "encode: normalization makes the text too long: 9 bytes become more than 5"},
		{context.Canceled, 400, "", "the client closed the connection before the answer; keep both sides open"},
		{errors.New("what: else"), 500, "", "what: else"},
	} {
		if e := toAPI(c.err); e.Status != c.status || e.Param != c.param || e.Message != c.message {
			t.Errorf("%v: %d %q %q", c.err, e.Status, e.Param, e.Message)
		}
	}
}
