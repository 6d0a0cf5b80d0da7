package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/sample"
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

// toAPI finds the status and words for any error.
func toAPI(err error) *apiError {
	var e *apiError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &e):
	case errors.As(err, &large):
		e = &apiError{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the request is larger than %d bytes", large.Limit)}
	case errors.Is(err, engine.ErrQueueFull):
		e = &apiError{Status: http.StatusTooManyRequests, Message: err.Error(), Code: "queue_full"}
	case errors.Is(err, engine.ErrClosed):
		e = &apiError{Status: http.StatusServiceUnavailable, Message: "the server is shutting down"}
	case errors.Is(err, sample.ErrParams):
		param, message := paramOf(err)
		e = &apiError{Status: http.StatusBadRequest, Message: message, Param: param}
	case errors.Is(err, complete.ErrTemplate):
		e = &apiError{Status: http.StatusBadRequest, Message: err.Error(), Param: "messages"}
	case errors.Is(err, engine.ErrRequest), errors.Is(err, complete.ErrNoTemplate):
		e = &apiError{Status: http.StatusBadRequest, Message: err.Error()}
	case errors.Is(err, context.Canceled):
		e = &apiError{Status: 499, Message: "the client went away"}
	default:
		e = &apiError{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	if e.Type == "" {
		e.Type = "invalid_request_error"
		if e.Status >= 500 {
			e.Type = "server_error"
		}
	}
	return e
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
	e := toAPI(err)
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	} else if e.Status >= 500 {
		w.Header().Set("X-Should-Retry", "false") // the same request fails again
	}
	writeJSON(w, e.Status, map[string]any{"error": e})
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
