package jinja

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Sentinels that callers branch on with errors.Is.
var (
	// ErrSyntax marks a template that does not parse.
	ErrSyntax = errors.New("syntax error")
	// ErrRaised marks a refusal by the template itself, through raise_exception.
	ErrRaised = errors.New("template refused the conversation")
	// ErrLimit marks a template that exceeded one of its Limits.
	ErrLimit = errors.New("limit exceeded")
	// ErrRuntime marks an operation with no meaning, such as adding text to None.
	ErrRuntime = errors.New("template error")
)

// Error is what Parse and Render return: a kind (one of the sentinels), the
// place in the template (lines and columns count from 1; 0 if unknown) and what
// happened.
type Error struct {
	Kind      error
	Line, Col int
	Msg       string
}

// Error tells kind, place and detail.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("jinja: %v: %s", e.Kind, e.Msg)
	}
	return fmt.Sprintf("jinja: line %d, column %d: %v: %s", e.Line, e.Col, e.Kind, e.Msg)
}

// Unwrap gives the kind, for errors.Is.
func (e *Error) Unwrap() error { return e.Kind }

// maxMessage bounds the bytes of a message: templates make them, and quote names as long as they are themselves.
const maxMessage = 500

// brief cuts a message that is too long between two runes.
func brief(msg string) string {
	if len(msg) <= maxMessage {
		return msg
	}
	end := maxMessage
	for end > maxMessage-utf8.UTFMax && !utf8.RuneStart(msg[end]) {
		end--
	}
	return msg[:end] + "…"
}

func errorf(format string, args ...any) error {
	return &Error{Kind: ErrRuntime, Msg: brief(fmt.Sprintf(format, args...))}
}

func limitf(format string, args ...any) error {
	return &Error{Kind: ErrLimit, Msg: brief(fmt.Sprintf(format, args...))}
}

type pos struct{ line, col int }

// at gives an error the place of the innermost node that saw it.
func at(p pos, err error) error {
	if e, ok := err.(*Error); ok && e.Line == 0 {
		e.Line, e.Col = p.line, p.col
	}
	return err
}
