package pull

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// ranges is what is known of a server's will to go on in the middle of a file.
type ranges int

const (
	rangesUnknown ranges = iota
	rangesYes
	rangesNo
)

// learn reads from an answer whether the server resumes; n bytes were there
// when it was asked, of the file with the validator had.
func (r ranges) learn(resp *http.Response, n int64, had string) ranges {
	accept := strings.ToLower(resp.Header.Get("Accept-Ranges"))
	switch {
	case resp.StatusCode == http.StatusPartialContent:
		return rangesYes
	case resp.StatusCode != http.StatusOK:
		return r
	case n > 0 && validator(resp.Header) == had, accept == "none":
		return rangesNo // the same file, from its beginning
	case r == rangesUnknown && strings.Contains(accept, "bytes"):
		return rangesYes
	}
	return r
}

// broken is a download that ended early.
type broken struct {
	err  error
	kept int64 // bytes that a later run can go on after
	lost bool  // the server cannot resume
	sure bool  // it can
}

func (b *broken) Error() string { return b.err.Error() }
func (b *broken) Unwrap() error { return b.err }

// kept is how much of the download a later run can go on with.
func (t *transfer) kept() int64 {
	known := t.r.sha256 != "" || t.r.key != "" || t.state.Validator != ""
	if !known || t.ranges == rangesNo {
		return 0
	}
	return t.n
}

func (t *transfer) broken(err error) error {
	kept := t.kept()
	return &broken{err, kept, kept == 0 && t.best > 0, t.ranges == rangesYes}
}

// again says what a later run of the same command does; "" if that is nothing
// to speak of.
func again(err error) string {
	b := (*broken)(nil)
	switch {
	case !errors.As(err, &b):
		return ""
	case b.lost:
		return "this server cannot resume, so it begins anew"
	case b.kept == 0:
		return ""
	case !b.sure:
		return fmt.Sprintf("%s are kept, and it goes on where it stopped if the server can resume", size(b.kept))
	}
	return fmt.Sprintf("%s are kept, and it goes on where it stopped", size(b.kept))
}
