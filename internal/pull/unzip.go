package pull

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrArchive marks a zip archive that is not unpacked.
var ErrArchive = errors.New("the archive is not unpacked")

// Limits of an archive. Weights hardly shrink, so what grows much is no model.
const (
	maxEntries = 10000
	maxGrowth  = 8
	freeGrowth = 256 << 20 // bytes that may come of an archive of any size
)

// The folder that an archive is unpacked to, that of one under way, and the file
// that says which archive the folder is all of.
const (
	unpackedSuffix = ".d"
	unpackSuffix   = ".unpack"
	wholeSuffix    = ".whole"
)

// unzipped is the folder that the archive of a target at path holds, unpacked
// beside it: a model that is published as one zip. One process unpacks it at a
// time, and the folder gets its name when it is whole.
func (p *puller) unzipped(ctx context.Context, path string, t target) (string, error) {
	dir := path + unpackedSuffix
	if fresh(dir, path) {
		return modelRoot(dir), nil
	}
	unlock, err := p.lock(ctx, t)
	if err != nil {
		return "", err
	}
	defer unlock()
	if fresh(dir, path) { // another process unpacked it meanwhile
		return modelRoot(dir), nil
	}
	return p.unpackArchive(ctx, path, dir)
}

// unpackArchive makes the folder of an archive; the target's lock is held.
func (p *puller) unpackArchive(ctx context.Context, path, dir string) (string, error) {
	mark, err := markOf(path)
	if err != nil {
		return "", fmt.Errorf("pull: %w", err)
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		return "", fmt.Errorf("pull: %s: %w: %w", path, ErrArchive, err)
	}
	defer z.Close()
	total, err := checkArchive(&z.Reader, path)
	if err != nil {
		return "", fmt.Errorf("pull: %s: %w: %w", path, ErrArchive, err)
	}
	if free, ok := p.free(filepath.Dir(path)); ok && free < total {
		return "", fmt.Errorf("pull: %s: %w: %d bytes are needed, %d are free", path, ErrDiskFull, total, free)
	}
	tmp := dir + unpackSuffix
	if err := os.RemoveAll(tmp); err != nil {
		return "", fmt.Errorf("pull: %w", err)
	}
	defer os.RemoveAll(tmp)
	m := newMeter(p.Progress, filepath.Base(path), "unpacking", 0, total)
	for _, f := range z.File {
		if err := extract(ctx, f, tmp, m); err != nil {
			return "", fmt.Errorf("pull: %s: %s: %w", path, f.Name, err)
		}
	}
	m.end()
	os.Remove(dir + wholeSuffix)
	if err = os.RemoveAll(dir); err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return "", fmt.Errorf("pull: %w", err)
	}
	if err := writeFile(dir+wholeSuffix, []byte(mark)); err != nil {
		return "", err
	}
	return modelRoot(dir), nil
}

// isArchive says that a fetched file is a folder in one file: a .zip, or a
// package's only content, which is called a GGUF file before it is seen.
// PyTorch's checkpoints are zip archives too, and stay as they are.
func isArchive(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".zip", ".gguf":
	default:
		return false
	}
	return form(headOfFile(path)) == formOf[".zip"]
}

// fresh says that the folder holds all of the archive as it is.
func fresh(dir, archive string) bool {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return false
	}
	want, err := markOf(archive)
	if err != nil {
		return false
	}
	f, err := os.Open(dir + wholeSuffix)
	if err != nil {
		return false
	}
	defer f.Close()
	got, err := io.ReadAll(io.LimitReader(f, int64(len(want))+1))
	return err == nil && string(got) == want
}

// markOf tells an archive from what may come in its place.
func markOf(archive string) (string, error) {
	st, err := os.Stat(archive)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes of %s\n", st.Size(), st.ModTime().UTC().Format(time.RFC3339Nano)), nil
}

// modelRoot is the folder itself, or the only one in it.
func modelRoot(dir string) string {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 1 && entries[0].IsDir() {
		return filepath.Join(dir, entries[0].Name())
	}
	return dir
}

// checkArchive refuses what no model holds, before anything is written: names
// that lead out, links, the same name twice, more than the archive can hold.
func checkArchive(z *zip.Reader, path string) (total int64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if len(z.File) > maxEntries {
		return 0, fmt.Errorf("it has %d entries; %d are possible", len(z.File), maxEntries)
	}
	seen := map[string]bool{}
	limit := info.Size()*maxGrowth + freeGrowth
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, "/")
		switch mode := f.Mode(); {
		case !filepath.IsLocal(filepath.FromSlash(name)) || strings.ContainsAny(name, `\:`):
			return 0, fmt.Errorf("the entry %q leads out of the folder", f.Name)
		case !mode.IsDir() && !mode.IsRegular():
			return 0, fmt.Errorf("the entry %q is neither a file nor a folder", f.Name)
		case seen[strings.ToLower(name)]:
			return 0, fmt.Errorf("the entry %q stands twice", f.Name)
		case f.UncompressedSize64 > uint64(limit-total):
			return 0, fmt.Errorf("its %d bytes would become more than %d", info.Size(), limit)
		}
		seen[strings.ToLower(name)] = true
		total += int64(f.UncompressedSize64)
	}
	return total, nil
}

// extract writes one entry below dir; what is longer than it says is refused.
func extract(ctx context.Context, f *zip.File, dir string, m io.Writer) error {
	path := filepath.Join(dir, filepath.FromSlash(f.Name))
	if f.FileInfo().IsDir() {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer w.Close()
	n, err := copyContext(ctx, io.MultiWriter(w, m), io.LimitReader(r, int64(f.UncompressedSize64)+1))
	if err == nil && n > int64(f.UncompressedSize64) {
		err = fmt.Errorf("%w: it is longer than it says", ErrArchive)
	}
	if err == nil {
		err = w.Sync()
	}
	return err
}
