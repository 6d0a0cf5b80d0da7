package pull

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// repoHub serves a whole repository.
type repoHub struct {
	commit string
	files  map[string]string
	asked  int
}

func (h *repoHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked++
	if r.URL.Path == "/api/models/owner/repo/revision/main" {
		var rows []string
		for name, text := range h.files {
			rows = append(rows, fmt.Sprintf(`{"rfilename":%q,"size":%d,"lfs":{"sha256":%q}}`, name, len(text), sumOf([]byte(text))))
		}
		rows = append(rows, `{"rfilename":"../evil.json"}`, `{"rfilename":"onnx/model.bin"}`)
		fmt.Fprintf(w, `{"sha":%q,"siblings":[%s]}`, h.commit, strings.Join(rows, ","))
		return
	}
	rest, _ := strings.CutPrefix(r.URL.Path, "/owner/repo/resolve/")
	_, name, _ := strings.Cut(rest, "/")
	text, ok := h.files[name]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("X-Repo-Commit", h.commit)
	http.ServeContent(w, r, name, fixedTime, bytes.NewReader([]byte(text)))
}

func TestRepository(t *testing.T) {
	h := &repoHub{commit: "c1", files: map[string]string{
		"config.json": "{}", "model.safetensors": "weights", "pytorch_model.bin": "no", "README.md": "no", "tokenizer.json": "{}",
	}}
	l := newLab(t)
	l.env["HF_ENDPOINT"] = serve(t, h)
	dir, err := l.resolve("hf:owner/repo")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), stampSuffix) {
			names = append(names, e.Name())
		}
	}
	if got := strings.Join(names, " "); got != "config.json model.safetensors tokenizer.json" {
		t.Errorf("fetched %s", got)
	}
	list, err := List(l.o)
	if err != nil || len(list) != 1 || list[0].Ref != "hf:owner/repo" || list[0].Path != dir || list[0].Size != 11 || list[0].Source != "hf:owner/repo@c1" {
		t.Errorf("list %+v, %v", list, err)
	}
	h.asked, l.o.Offline = 0, true
	if again, err := l.resolve("hf:owner/repo"); err != nil || again != dir || h.asked != 0 {
		t.Errorf("%s, %v, asked %d times", again, err, h.asked)
	}
	os.Remove(filepath.Join(dir, "config.json"))
	if _, err := l.resolve("hf:owner/repo"); !errors.Is(err, ErrOffline) {
		t.Errorf("incomplete and offline: %v", err)
	}
	l.o.Offline = false
	h.commit = "c2"
	if again, err := l.resolve("hf:owner/repo"); err != nil || filepath.Base(again) != "c2" {
		t.Errorf("%s, %v", again, err)
	}
	if err := Remove(t.Context(), "hf:owner/repo", l.o); err != nil {
		t.Error(err)
	}
	if err := Remove(t.Context(), "hf:owner/repo", l.o); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	h.files = map[string]string{"a.gguf": "", "b.gguf": ""}
	if _, err := l.resolve("hf:owner/repo"); !errors.Is(err, ErrReference) || !strings.Contains(err.Error(), "a.gguf") {
		t.Errorf("only GGUF: %v", err)
	}
	h.files = map[string]string{"README.md": ""}
	if _, err := l.resolve("hf:owner/repo"); !errors.Is(err, ErrNotFound) {
		t.Errorf("nothing: %v", err)
	}
	h.commit = "../x"
	if _, err := l.resolve("hf:owner/repo"); err == nil {
		t.Error("a commit that leads out of the cache is taken")
	}
}

func TestSplitFile(t *testing.T) {
	h := &repoHub{commit: "c1", files: map[string]string{"q/m-00001-of-00002.gguf": "GGUF one", "q/m-00002-of-00002.gguf": "GGUF two"}}
	l := newLab(t)
	l.env["HF_ENDPOINT"] = serve(t, h)
	path := l.must("hf:owner/repo/q/m-00001-of-00002.gguf", []byte("GGUF one"))
	if b, err := os.ReadFile(strings.Replace(path, "00001-of", "00002-of", 1)); string(b) != "GGUF two" {
		t.Errorf("the second part: %q, %v", b, err)
	}
	if err := Remove(t.Context(), "hf:owner/repo/q/m-00001-of-00002.gguf", l.o); err != nil {
		t.Error(err)
	}
	if list, _ := List(l.o); len(list) != 0 {
		t.Errorf("%d parts stay", len(list))
	}
}
