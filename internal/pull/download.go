package pull

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	partialSuffix = ".partial"
	maxAttempts   = 5 // in a row without a byte gained,
	stallAfter    = 60 * time.Second

	refusedAttempts = 2 // and where connections are refused
)

// remote is a file on a server, with what is known of it beforehand.
type remote struct {
	url    string
	header http.Header
	client *http.Client // nil is the puller's
	label  string
	key    string // says which version of the file it is; "" if only the server can
	sha256 string // "" if unknown
	size   int64  // 0 if unknown
}

// partial describes a .partial file, so that a later run can go on with it.
type partial struct {
	URL       string `json:"url"` // without credentials
	Key       string `json:"key,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
	Validator string `json:"validator,omitempty"` // for If-Range
	Size      int64  `json:"size,omitempty"`
}

// transfer is a download under way.
type transfer struct {
	p     *puller
	r     remote
	path  string // of the .partial file
	f     *os.File
	h     hash.Hash
	n     int64 // bytes written and hashed
	state partial
	meter *meter

	kind   string // the content type of the last answer
	looked bool   // the beginning of the file is that of a model
	ranges ranges
	best   int64 // the most that n has been
}

// download fetches r to dest: into dest.partial, which a later call goes on
// with, then, verified and synced, by a rename. It returns the SHA-256.
func (p *puller) download(ctx context.Context, r remote, dest string) (sum string, err error) {
	if r.client == nil {
		r.client = p.client
	}
	t := &transfer{p: p, r: r, path: dest + partialSuffix, h: sha256.New()}
	if err := t.open(ctx); err != nil {
		return "", err
	}
	defer t.f.Close()
	if err := t.run(ctx); err != nil {
		if errors.Is(err, errContent) || t.kept() == 0 {
			t.drop()
		}
		return "", err
	}
	t.meter.end()
	sum = hex.EncodeToString(t.h.Sum(nil))
	if r.sha256 != "" && sum != r.sha256 {
		t.drop()
		return "", fmt.Errorf("%s: %w: its SHA-256 is %s, not %s; it was thrown away", redact(r.url), ErrHash, sum, r.sha256)
	}
	if err := install(t.f, t.path, dest); err != nil {
		return "", err
	}
	os.Remove(t.path + ".json")
	return sum, nil
}

// drop throws away what has been fetched; t is of no use then.
func (t *transfer) drop() {
	t.f.Close()
	os.Remove(t.path)
	os.Remove(t.path + ".json")
}

// install syncs and closes f, written at tmp, and gives it its name.
func install(f *os.File, tmp, dest string) error {
	err := f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, dest)
	}
	if err == nil {
		err = syncDir(filepath.Dir(dest))
	}
	if err != nil {
		return storage(err, dest, 0)
	}
	return nil
}

// open opens the .partial file and hashes what an earlier run left in it.
func (t *transfer) open(ctx context.Context) error {
	var old partial
	if b, err := os.ReadFile(t.path + ".json"); err == nil && len(b) < 1<<16 {
		if json.Unmarshal(b, &old) != nil {
			old = partial{}
		}
	}
	t.state = partial{URL: redact(t.r.url), Key: t.r.key, SHA256: t.r.sha256}
	known := t.r.sha256 != "" || t.r.key != "" || old.Validator != ""
	keep := known && old.URL == t.state.URL && old.Key == t.state.Key && old.SHA256 == t.state.SHA256
	flags := 0
	if keep {
		t.state = old
	} else {
		flags = os.O_TRUNC
	}
	f, err := create(t.path, flags)
	if err != nil {
		return err
	}
	t.f = f
	t.meter = newMeter(nil, t.r.label, "checking", 0, 0)
	if keep {
		if t.n, err = copyContext(ctx, t.h, f); err != nil {
			f.Close()
			return fmt.Errorf("pull: reading %s: %w", t.path, err)
		}
	}
	if t.best = t.n; t.n > 0 {
		t.p.Note(fmt.Sprintf("%s: going on after %s fetched earlier", t.r.label, size(t.n)))
	}
	t.meter = newMeter(t.p.Progress, t.r.label, "fetching", t.n, max(t.r.size, t.state.Size))
	return nil
}

// run makes attempts until the file is complete.
func (t *transfer) run(ctx context.Context) error {
	for failed := 0; ; {
		before := t.best
		err := t.attempt(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return t.broken(ctx.Err())
		}
		if !transient(err) {
			return err
		}
		if t.best > before {
			failed = 0
		}
		most := maxAttempts
		if errors.Is(err, syscall.ECONNREFUSED) {
			most = refusedAttempts // nobody listens: waiting seldom helps
		}
		if failed++; failed >= most {
			return t.broken(fmt.Errorf("gave up after %d attempts: %w", failed, err))
		}
		pause := t.p.wait(failed)
		if failed > 1 {
			t.p.Note(fmt.Sprintf("%s: %v; trying again in %s", t.r.label, err, pause))
		}
		select {
		case <-ctx.Done():
			return t.broken(ctx.Err())
		case <-time.After(pause):
		}
	}
}

// attempt makes one request and writes what comes.
func (t *transfer) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(t.p.stall, func() { cancel(fmt.Errorf("nothing came for %s", t.p.stall)) })
	defer watch.Stop()
	resp, err := t.p.get(ctx, t.r.client, http.MethodGet, t.r.url, t.request(), http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable)
	if err != nil {
		return stalled(ctx, err)
	}
	defer resp.Body.Close()
	done, err := t.begin(resp)
	if done || err != nil {
		return err
	}
	buf := make([]byte, 1<<18)
	for {
		k, err := resp.Body.Read(buf)
		watch.Reset(t.p.stall)
		if k > 0 {
			if werr := t.write(buf[:k]); werr != nil {
				return werr
			}
			if !t.looked && t.n >= headSize {
				if err := t.look(false); err != nil {
					return err
				}
			}
		}
		if err == io.EOF {
			return t.complete()
		}
		if err != nil {
			return stalled(ctx, network(err, t.r.url))
		}
	}
}

func stalled(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

func (t *transfer) request() http.Header {
	h := t.r.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Accept-Encoding", "identity") // ranges count the bytes that are stored
	if t.n > 0 {
		h.Set("Range", fmt.Sprintf("bytes=%d-", t.n))
		if t.state.Validator != "" {
			h.Set("If-Range", t.state.Validator)
		}
	}
	return h
}

// begin reads the head of an answer and sets up the rest; done says that the
// file was complete already.
func (t *transfer) begin(resp *http.Response) (done bool, err error) {
	total := int64(-1)
	t.ranges = t.ranges.learn(resp, t.n, t.state.Validator)
	switch resp.StatusCode {
	case http.StatusOK:
		if err := t.restart(); err != nil {
			return false, err
		}
		total = resp.ContentLength
		if !framed(resp) && t.r.sha256 == "" && t.r.size == 0 {
			return false, fmt.Errorf("%s: %w, so a part of it could not be told from the whole: add #sha256=… to the address, or fetch it by other means and name the file",
				redact(t.r.url), errLength)
		}
	default:
		var start int64
		start, total = contentRange(resp.Header.Get("Content-Range"))
		if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			if t.n > 0 && total == t.n && (t.state.Size == 0 || t.state.Size == total) {
				return true, t.complete()
			}
			start = -1
		}
		if start != t.n || (t.state.Size > 0 && total > 0 && total != t.state.Size) {
			if err := t.restart(); err != nil {
				return false, err
			}
			return false, fmt.Errorf("%s does not go on where it was broken off", redact(t.r.url))
		}
	}
	if t.r.size > 0 && total >= 0 && total != t.r.size {
		return false, fmt.Errorf("%s: %w: it has %d bytes, not %d", redact(t.r.url), ErrHash, total, t.r.size)
	}
	if err := t.p.room(filepath.Dir(t.path), t.r.label, max(total, t.r.size)-t.n); err != nil {
		return false, err
	}
	t.kind = resp.Header.Get("Content-Type")
	t.state.Size = max(total, 0)
	t.state.Validator = validator(resp.Header)
	t.meter.p.Total = max(t.state.Size, t.r.size)
	b, err := json.Marshal(t.state)
	if err != nil {
		return false, err
	}
	return false, writeFile(t.path+".json", b)
}

// validator is what If-Range may hold: a strong tag, or a time.
func validator(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

// contentRange reads "bytes 5-9/10" and "bytes */10"; what is missing is -1.
func contentRange(s string) (start, total int64) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, all, cut := strings.Cut(rest, "/")
	if !ok || !cut {
		return -1, -1
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		if err != nil || n < 0 {
			return -1
		}
		return n
	}
	first, _, _ := strings.Cut(span, "-")
	return number(first), number(all)
}

// restart throws away what has been fetched.
func (t *transfer) restart() error {
	t.h.Reset()
	t.n, t.state.Size, t.looked = 0, 0, false
	if err := t.f.Truncate(0); err != nil {
		return storage(err, t.path, 0)
	}
	if _, err := t.f.Seek(0, io.SeekStart); err != nil {
		return storage(err, t.path, 0)
	}
	return nil
}

func (t *transfer) write(b []byte) error {
	limit := max(t.r.size, t.state.Size)
	if limit > 0 && t.n+int64(len(b)) > limit {
		return fmt.Errorf("%s: %w: more than %d bytes come", redact(t.r.url), ErrHash, limit)
	}
	k, err := t.f.Write(b)
	t.h.Write(b[:k])
	t.n += int64(k)
	t.best = max(t.best, t.n)
	t.meter.set(t.n)
	if err != nil {
		return storage(err, t.path, t.kept())
	}
	return nil
}

// complete checks the length at the end of an answer, and what came.
func (t *transfer) complete() error {
	if want := max(t.r.size, t.state.Size); want > 0 && t.n != want {
		return fmt.Errorf("%s: the connection ended after %d of %d bytes: %w", redact(t.r.url), t.n, want, io.ErrUnexpectedEOF)
	}
	return t.look(true)
}
