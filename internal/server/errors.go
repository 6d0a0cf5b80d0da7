package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/chat/jinja"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/tokenizer"
)

// apiError is an error in the shape of OpenAI's API.
type apiError struct {
	Status  int    `json:"-"`
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   string `json:"param"`
	Code    string `json:"code"`
}

func (e *apiError) Error() string { return e.Message }

// MarshalJSON writes null for an absent param or code.
func (e *apiError) MarshalJSON() ([]byte, error) {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return json.Marshal(map[string]any{"message": e.Message, "type": e.Type, "param": null(e.Param), "code": null(e.Code)})
}

func badRequest(param, format string, a ...any) *apiError {
	return &apiError{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, a...), Param: param}
}

// codeNotEncoded marks a text that the model's tokenizer gives up on.
const codeNotEncoded = "text_not_encoded"

// toAPI finds the status and words for any error.
func toAPI(err error) *apiError {
	var e *apiError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &e):
	case errors.As(err, &large):
		e = &apiError{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the request is larger than %d bytes", large.Limit)}
	case errors.Is(err, engine.ErrQueueFull):
		e = &apiError{Status: http.StatusTooManyRequests, Message: plain(err), Code: "queue_full"}
	case errors.Is(err, engine.ErrClosed):
		e = &apiError{Status: http.StatusServiceUnavailable, Message: "the server is shutting down"}
	case errors.Is(err, sample.ErrParams):
		param, message := paramOf(err)
		e = &apiError{Status: http.StatusBadRequest, Message: message, Param: param}
	case errors.Is(err, complete.ErrTooLong):
		e = &apiError{Status: http.StatusBadRequest, Message: plain(err), Code: "context_length_exceeded"}
	case errors.Is(err, chat.ErrVariable):
		e = &apiError{Status: http.StatusBadRequest, Message: "chat_template_kwargs: " + after(plain(err), complete.ErrTemplate), Param: "chat_template_kwargs"}
	case errors.Is(err, complete.ErrTemplate):
		e = &apiError{Status: http.StatusBadRequest, Message: ofTemplate(err), Param: "messages"}
	case errors.Is(err, complete.ErrNoTemplate):
		e = &apiError{Status: http.StatusBadRequest, Message: complete.ErrNoTemplate.Error() + "; use /v1/completions"}
	case errors.Is(err, tokenizer.ErrTooLong), errors.Is(err, tokenizer.ErrTooCostly):
		e = &apiError{Status: http.StatusBadRequest, Message: plain(err), Code: codeNotEncoded}
	case errors.Is(err, complete.ErrNoSource):
		e = &apiError{Status: http.StatusBadRequest, Message: plain(err), Param: "messages"}
	case errors.Is(err, complete.ErrTask):
		e = &apiError{Status: http.StatusBadRequest, Message: plain(err), Param: "task"}
	case errors.Is(err, engine.ErrRequest):
		e = &apiError{Status: http.StatusBadRequest, Message: after(plain(err), engine.ErrRequest)}
	case errors.Is(err, context.Canceled):
		// Only a client that closed just its sending side can read this.
		e = &apiError{Status: http.StatusBadRequest, Message: "the client closed the connection before the answer; keep both sides open", Code: "client_closed"}
	default:
		e = &apiError{Status: http.StatusInternalServerError, Message: plain(err)}
	}
	if e.Type == "" {
		e.Type = "invalid_request_error"
		if e.Status >= 500 {
			e.Type = "server_error"
		}
	}
	return e
}

// about is an error of the API whose param, where it has none, is the one given.
func about(param string, err error) error {
	e := *toAPI(err)
	if e.Param == "" && (e.Code == "context_length_exceeded" || e.Code == codeNotEncoded) {
		e.Param = param
	}
	return &e
}

// inner are names of packages that stand before their words in chains of errors.
var inner = regexp.MustCompile(`(^|: )(?:engine|complete|embed|chat|jinja|json|sample|sched|cpu|ref|device|kv|model|weight|tokenizer|pattern): `)

// plain is an error in words without the packages that it came through.
func plain(err error) string {
	text := err.Error()
	for {
		short := inner.ReplaceAllString(text, "$1")
		if short == text {
			return text
		}
		text = short
	}
}

// after is what text says behind the words of a sentinel.
func after(text string, sentinel error) string {
	if _, rest, ok := strings.Cut(text, sentinel.Error()+": "); ok {
		return rest
	}
	return text
}

// ofTemplate tells what a chat template did with a conversation.
func ofTemplate(err error) string {
	var j *jinja.Error
	switch {
	case errors.As(err, &j) && j.Kind == jinja.ErrRaised:
		return complete.ErrTemplate.Error() + ": " + j.Msg
	case errors.As(err, &j) && j.Line > 0:
		_, more, _ := strings.Cut(err.Error(), j.Msg) // what the service adds
		return fmt.Sprintf("the chat template failed at line %d, column %d: %v: %s%s", j.Line, j.Col, j.Kind, j.Msg, more)
	case errors.As(err, &j):
		return fmt.Sprintf("the chat template failed: %v: %s", j.Kind, j.Msg)
	}
	return after(plain(err), complete.ErrTemplate)
}

// paramOf finds the words of a sampling error and the field that they begin with.
func paramOf(err error) (param, message string) {
	_, message, _ = strings.Cut(err.Error(), sample.ErrParams.Error()+": ")
	if end := strings.IndexAny(message, " :"); end > 0 {
		param = message[:end]
	}
	return param, message
}

func writeError(w http.ResponseWriter, err error) {
	e := *toAPI(err)
	e.Message, e.Param = Short(e.Message), cutName(e.Param)
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	} else if e.Status >= 500 {
		w.Header().Set("X-Should-Retry", "false") // the same request fails again
	}
	writeJSON(w, e.Status, map[string]any{"error": &e})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := encode(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer could not be encoded","type":"server_error","param":null,"code":null}}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// encode is JSON in one line, with the line's end. It is never part of HTML, so
// "<" may stand as it is.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
