package pull

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// The errors that callers may branch on.
var (
	ErrUnknown   = errors.New("unknown model")
	ErrReference = errors.New("invalid reference")
	ErrOffline   = errors.New("not in the cache, and offline")
	ErrHash      = errors.New("the file is not the expected one")
	ErrDiskFull  = errors.New("disk full")
	ErrNotFound  = errors.New("not found")
	ErrDenied    = errors.New("access denied")
)

// statusError is an HTTP answer that is not the file.
type statusError struct {
	url  string
	code int
	text string
	kind error // ErrNotFound, ErrDenied or nil
}

func (e *statusError) Error() string { return fmt.Sprintf("%s answered %s", redact(e.url), e.text) }
func (e *statusError) Unwrap() error { return e.kind }

// transient reports whether trying again may help.
func transient(err error) bool {
	if s := (*statusError)(nil); errors.As(err, &s) {
		return s.code == 408 || s.code == 429 || s.code >= 500
	}
	for _, final := range []error{context.Canceled, ErrHash, ErrDiskFull, ErrDenied, ErrNotFound, errStorage, errRedirect, errLength} {
		if errors.Is(err, final) {
			return false
		}
	}
	if d := (*net.DNSError)(nil); errors.As(err, &d) && d.IsNotFound {
		return false
	}
	if c := (*tls.CertificateVerificationError)(nil); errors.As(err, &c) {
		return false
	}
	return true
}

// errStorage marks a failure of the local disk, which no retry cures.
var errStorage = errors.New("cannot write")

// errRedirect marks a redirection that is not followed.
var errRedirect = errors.New("refused redirection")

// storage explains a failed write; kept bytes serve a later run.
func storage(err error, path string, kept int64) error {
	if diskFull(err) {
		hint := ""
		if kept > 0 {
			hint = fmt.Sprintf(" (%s are kept and need not be fetched again)", size(kept))
		}
		return fmt.Errorf("pull: %w: writing %s: free some space and run the same command again%s", ErrDiskFull, path, hint)
	}
	return fmt.Errorf("pull: %w: %s: %w", errStorage, path, err)
}

// network explains a failed request without the credentials that its address
// may hold.
func network(err error, address string) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("%s: %w", redact(address), err)
}

// exhausted is the error after every source has failed.
func exhausted(t target, tried []error, offlineHint string) error {
	if len(tried) == 1 {
		return fmt.Errorf("pull: %s: %w%s", t.label, tried[0], offlineHint)
	}
	var b strings.Builder
	for i, e := range tried {
		fmt.Fprintf(&b, "\n  %s: %v", t.sources[i], e)
	}
	return &manyError{fmt.Sprintf("pull: %s: none of its sources worked:%s%s", t.label, b.String(), offlineHint), tried}
}

type manyError struct {
	text string
	errs []error
}

func (e *manyError) Error() string   { return e.text }
func (e *manyError) Unwrap() []error { return e.errs }
