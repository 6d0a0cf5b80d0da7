package pull

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// repoFolder is the part of the cache that holds whole repositories.
const repoFolder = "hfrepo"

// maxRepoFiles bounds how many files of a repository are fetched.
const maxRepoFiles = 2000

var shardName = regexp.MustCompile(`^(.*-)(\d{5})-of-(\d{5})(\.(?:gguf|safetensors))$`)

// shards returns the references of all parts of a split file ("…-00001-of-00003"
// in its name), the first part first, or ref alone.
func shards(ref string, h hfRef) ([]string, error) {
	m := shardName.FindStringSubmatch(h.file)
	if m == nil {
		return []string{ref}, nil
	}
	n, err := strconv.Atoi(m[3])
	if err != nil || n < 1 || n > maxRepoFiles {
		return nil, fmt.Errorf("pull: %w: %q: a file in %s parts", ErrReference, ref, m[3])
	}
	all := make([]string, n)
	for i := range all {
		part := h
		part.file = fmt.Sprintf("%s%05d-of-%s%s", m[1], i+1, m[3], m[4])
		all[i] = part.String()
	}
	return all, nil
}

// parts returns the references of the files that make up t, which ref names.
func (t target) parts(ref string) ([]string, error) {
	if len(t.sources) == 1 && t.sources[0].hf != nil {
		return shards(ref, *t.sources[0].hf)
	}
	return []string{ref}, nil
}

// fromShards fetches every part of a split file and returns the first's path.
func (p *puller) fromShards(ctx context.Context, refs []string) (first string, err error) {
	for i, ref := range refs {
		t, err := parseHF(ref)
		if err != nil {
			return "", err
		}
		path, err := p.obtain(ctx, ref, t)
		if err != nil {
			return "", err
		}
		if i == 0 {
			first = path
		}
	}
	return first, nil
}

// repoState is what hfrepo/OWNER/REPO/REVISION.json holds: the folder of a
// repository is complete at this commit.
type repoState struct {
	Commit string   `json:"commit"`
	Files  []string `json:"files"`
}

// repoFile is an entry of the Hub's list.
type repoFile struct {
	Name string `json:"rfilename"`
	Size int64  `json:"size"`
	LFS  struct {
		SHA256 string `json:"sha256"`
	} `json:"lfs"`
}

func (p *puller) repoDir(h hfRef) string {
	return filepath.Join(p.Cache, modelsDir, repoFolder, h.owner, h.repo)
}

func (p *puller) repoMark(h hfRef) string {
	return filepath.Join(p.repoDir(h), strings.ReplaceAll(h.rev, "/", "--")+".json")
}

// fromRepo fetches what a model folder needs of a repository and returns the
// folder. Files of one commit share a folder, so that versions never mix.
func (p *puller) fromRepo(ctx context.Context, ref string, h hfRef) (string, error) {
	if dir, ok := p.completeRepo(h); ok {
		return dir, nil
	}
	if p.Offline {
		return "", fmt.Errorf("pull: %s: %w: go online once and run the same command again, or name a local folder", ref, ErrOffline)
	}
	commit, files, err := p.listRepo(ctx, h)
	if err != nil {
		return "", fmt.Errorf("pull: %w", err)
	}
	if files, err = modelFiles(files, ref); err != nil {
		return "", err
	}
	if err := p.roomForRepo(h, commit, files); err != nil {
		return "", err
	}
	state := repoState{Commit: commit}
	for i, f := range files {
		at := hfRef{h.owner, h.repo, f.Name, commit}
		t := target{
			label:  fmt.Sprintf("%s (%d of %d)", f.Name, i+1, len(files)),
			dest:   path.Join(repoFolder, h.owner, h.repo, commit, f.Name),
			sha256: f.LFS.SHA256, size: max(f.Size, 0),
			sources: []source{{hf: &at}},
		}
		if _, err := p.obtain(ctx, h.String(), t); err != nil {
			return "", err
		}
		state.Files = append(state.Files, f.Name)
	}
	b, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return "", err
	}
	return filepath.Join(p.repoDir(h), commit), writeFile(p.repoMark(h), append(b, '\n'))
}

// completeRepo reports whether every file of the folder is there and vouched for.
func (p *puller) completeRepo(h hfRef) (dir string, ok bool) {
	var s repoState
	b, err := os.ReadFile(p.repoMark(h))
	if err != nil || json.Unmarshal(b, &s) != nil || !cleanPath(s.Commit) || p.Verify || p.Refetch {
		return "", false
	}
	dir = filepath.Join(p.repoDir(h), s.Commit)
	for _, f := range s.Files {
		if !cleanPath(f) || !stamped(filepath.Join(dir, filepath.FromSlash(f)), "") {
			return "", false
		}
	}
	return dir, len(s.Files) > 0
}

// listRepo asks the Hub which files a revision has.
func (p *puller) listRepo(ctx context.Context, h hfRef) (commit string, files []repoFile, err error) {
	endpoint, header, err := p.hub()
	if err != nil {
		return "", nil, err
	}
	header.Set("Accept", "application/json")
	address := fmt.Sprintf("%s/api/models/%s/%s/revision/%s?blobs=true", endpoint, h.owner, h.repo, url.PathEscape(h.rev))
	resp, err := p.get(ctx, p.client, http.MethodGet, address, header, http.StatusOK)
	if err != nil {
		return "", nil, explainHF(err, endpoint, h, header)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxIndexPage))
	if err != nil {
		return "", nil, network(err, address)
	}
	var list struct {
		SHA      string     `json:"sha"`
		Siblings []repoFile `json:"siblings"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return "", nil, fmt.Errorf("%s: not the Hub's list of files: %w", redact(address), err)
	}
	if !cleanPath(list.SHA) || strings.Contains(list.SHA, "/") {
		return "", nil, fmt.Errorf("%s: the Hub names no commit", redact(address))
	}
	for i := range list.Siblings {
		list.Siblings[i].LFS.SHA256 = checkedSHA256(list.Siblings[i].LFS.SHA256)
	}
	return list.SHA, list.Siblings, nil
}

// modelFiles keeps the files at the top of a repository that a model folder is
// read from: weights in safetensors, else in PyTorch's format, and every
// description and vocabulary.
func modelFiles(files []repoFile, ref string) ([]repoFile, error) {
	var tensors, pickles, small []repoFile
	var gguf []string
	for _, f := range files {
		if !cleanPath(f.Name) || strings.Contains(f.Name, "/") {
			continue
		}
		switch strings.ToLower(path.Ext(f.Name)) {
		case ".safetensors":
			tensors = append(tensors, f)
		case ".bin":
			pickles = append(pickles, f)
		case ".json", ".txt", ".model", ".jinja", ".tiktoken", ".star":
			small = append(small, f)
		case ".gguf":
			gguf = append(gguf, f.Name)
		}
	}
	if len(tensors) == 0 {
		tensors = pickles
	}
	switch {
	case len(tensors) == 0 && len(gguf) > 0:
		return nil, fmt.Errorf("pull: %w: the repository holds GGUF files, name one: %s/%s", ErrReference, ref, strings.Join(gguf, ", "))
	case len(tensors) == 0:
		return nil, fmt.Errorf("pull: %w: %s holds no weights in safetensors, PyTorch's format or GGUF", ErrNotFound, ref)
	case len(small)+len(tensors) > maxRepoFiles:
		return nil, fmt.Errorf("pull: %w: %s has more than %d files", ErrReference, ref, maxRepoFiles)
	}
	return slices.Concat(small, tensors), nil
}
