package pull

import (
	"fmt"
	"os"
	"path/filepath"
)

// room refuses what the disk of dir cannot hold, before the first byte of it.
// dir need not exist yet.
func (p *puller) room(dir, label string, need int64) error {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, ok := p.free(dir)
	if !ok || need <= free {
		return nil
	}
	return fmt.Errorf("pull: %w: %s needs %s more, and %s has %s free: free some space, or set INFERFLOW_CACHE to a folder with more",
		ErrDiskFull, label, size(need), dir, size(free))
}

// fileSize is 0 for a file that is not there.
func fileSize(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}

// roomForWheels counts the wheels still to come and what is unpacked of them.
func (p *puller) roomForWheels(parts []Part, t target, dir string) error {
	need := t.size
	for _, part := range parts {
		need += part.Size
	}
	return p.room(dir, t.label, need-folderSize(dir))
}

// roomForRepo counts the files of a folder that are still to come.
func (p *puller) roomForRepo(h hfRef, commit string, files []repoFile) error {
	var need int64
	dir := filepath.Join(p.repoDir(h), commit)
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if p.Refetch || !stamped(path, f.LFS.SHA256) {
			need += max(0, f.Size-fileSize(path+partialSuffix))
		}
		if need < 0 || f.Size < 0 {
			return fmt.Errorf("pull: %s: %w: the list claims impossible sizes", h, ErrHash)
		}
	}
	return p.room(dir, h.String(), need)
}

// create opens a file for writing and makes its folder. Another process may
// remove the folder, if it is empty, in between.
func create(path string, flags int) (f *os.File, err error) {
	for range 3 {
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			break
		}
		if f, err = os.OpenFile(path, flags|os.O_RDWR|os.O_CREATE, 0o644); !os.IsNotExist(err) {
			break
		}
	}
	if err != nil {
		return nil, storage(err, path, 0)
	}
	return f, nil
}

// prune removes the folders of a file that are empty, up to root.
func prune(root, file string) {
	for dir := filepath.Dir(file); dir != root && len(dir) > len(root); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			return // not empty
		}
	}
}
