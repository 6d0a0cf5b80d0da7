package tokenizer

import "unicode/utf8"

// maxMessage bounds the bytes of an error's message: some quote names that are as long as the file.
const maxMessage = 500

// briefError tells an error in at most maxMessage bytes and an ellipsis.
type briefError struct{ err error }

// Error is the beginning of the message, up to the last whole rune.
func (e briefError) Error() string {
	msg, end := e.err.Error(), maxMessage
	for end > maxMessage-utf8.UTFMax && !utf8.RuneStart(msg[end]) {
		end--
	}
	return msg[:end] + "…"
}

// Unwrap gives the whole error, for errors.Is.
func (e briefError) Unwrap() error { return e.err }

// brief cuts an error's message if it is too long.
func brief(err error) error {
	if err == nil || len(err.Error()) <= maxMessage {
		return err
	}
	return briefError{err}
}
