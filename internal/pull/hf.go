package pull

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// hfDefault is used where HF_ENDPOINT names no other.
const hfDefault = "https://huggingface.co"

// hfPatience is how long Hugging Face may take to answer where another source
// remains.
const hfPatience = 3 * time.Second

// hfInfo is what the head of a file's answer says.
type hfInfo struct {
	commit string
	sha256 string // "" for small files, which are not in LFS
	size   int64  // 0 if unknown
}

// fromHF fetches a file with the "resolve" addresses of the Hugging Face Hub
// (https://huggingface.co/docs/huggingface_hub, file_download).
func (p *puller) fromHF(ctx context.Context, h hfRef, t target, dest string, more bool) (string, error) {
	endpoint, header, err := p.hub()
	if err != nil {
		return "", err
	}
	info, err := p.probe(ctx, endpoint, h, header, more)
	if err != nil {
		return "", explainHF(err, endpoint, h, header)
	}
	if t.sha256 != "" && info.sha256 != "" && t.sha256 != info.sha256 {
		return "", fmt.Errorf("%s: %w: the repository has another version of it", h, ErrHash)
	}
	r := remote{header: header, label: t.label, key: info.commit, sha256: info.sha256, size: info.size}
	if t.sha256 != "" {
		r.sha256, r.size = t.sha256, t.size
	}
	if info.commit != "" {
		h.rev = info.commit // so that a resumed download is of the same version
	}
	r.url = h.address(endpoint)
	sum, err := p.download(ctx, r, dest)
	return sum, explainHF(err, endpoint, h, header)
}

// hub returns the Hub's address and what every request to it carries.
func (p *puller) hub() (endpoint string, header http.Header, err error) {
	endpoint = strings.TrimRight(p.Getenv("HF_ENDPOINT"), "/")
	if endpoint == "" {
		endpoint = hfDefault
	}
	if _, err := join(endpoint, "/"); err != nil {
		return "", nil, fmt.Errorf("HF_ENDPOINT is not an http address")
	}
	header = http.Header{}
	if token := strings.TrimSpace(p.Getenv("HF_TOKEN")); token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	return endpoint, header, nil
}

func (h hfRef) address(endpoint string) string {
	parts := strings.Split(h.file, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return fmt.Sprintf("%s/%s/%s/resolve/%s/%s", endpoint, h.owner, h.repo, url.PathEscape(h.rev), strings.Join(parts, "/"))
}

// probe asks for the head of the file. The answer that matters is the Hub's
// own, before the redirection to where the bytes are.
func (p *puller) probe(ctx context.Context, endpoint string, h hfRef, header http.Header, more bool) (hfInfo, error) {
	if more {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, hfPatience)
		defer cancel()
	}
	c := *p.client
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if req.URL.Host != via[0].URL.Host {
			return http.ErrUseLastResponse
		}
		return safeRedirect(req, via)
	}
	header = header.Clone()
	header.Set("Accept-Encoding", "identity")
	resp, err := p.get(ctx, &c, http.MethodHead, h.address(endpoint), header,
		http.StatusOK, http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect)
	if err != nil {
		return hfInfo{}, err
	}
	resp.Body.Close()
	info := hfInfo{}
	if resp.StatusCode == http.StatusOK {
		info.size = max(resp.ContentLength, 0)
	}
	for r := resp; r != nil; r = r.Request.Response {
		if v := r.Header.Get("X-Repo-Commit"); cleanPath(v) {
			info.commit = v
		}
		if n, err := strconv.ParseInt(r.Header.Get("X-Linked-Size"), 10, 64); err == nil && n > 0 {
			info.size = n
		}
		tag := strings.Trim(r.Header.Get("X-Linked-Etag"), `"`)
		if isSHA256(tag) {
			info.sha256 = tag
		}
	}
	return info, nil
}

func isSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// explainHF says what to do about a refusal.
func explainHF(err error, endpoint string, h hfRef, header http.Header) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrDenied) && header.Get("Authorization") == "":
		return fmt.Errorf("%w: the repository is private or gated: accept its terms at %s/%s/%s and set HF_TOKEN", err, redact(endpoint), h.owner, h.repo)
	case errors.Is(err, ErrDenied):
		return fmt.Errorf("%w: HF_TOKEN does not open it: accept the terms at %s/%s/%s with the token's account", err, redact(endpoint), h.owner, h.repo)
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%w: see the files at %s/%s/%s/tree/%s", err, redact(endpoint), h.owner, h.repo, h.rev)
	}
	return err
}
