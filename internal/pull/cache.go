package pull

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The cache:
//
//	models/names/NAME/FILE     and models/hf/…, models/pypi/…, models/url/…
//	models/hfrepo/…            folders of repositories, by commit
//	models/…/FILE.stamp        what is known of FILE: a stamp as JSON
//	models/…/FILE.partial      a download under way, and FILE.partial.json
//	wheels/                    wheels being fetched and unpacked
//	locks/                     one for each file of models
const (
	modelsDir   = "models"
	wheelsDir   = "wheels"
	locksDir    = "locks"
	stampSuffix = ".stamp"
)

// stamp vouches for a file: as long as size and time are these, its hash need
// not be computed again.
type stamp struct {
	Ref     string    `json:"ref"`
	Size    int64     `json:"size"`
	ModTime int64     `json:"mtime_ns"`
	SHA256  string    `json:"sha256"`
	Source  string    `json:"source"`
	License string    `json:"license,omitempty"`
	Fetched time.Time `json:"fetched"`
}

func (p *puller) path(t target) string {
	return filepath.Join(p.Cache, modelsDir, filepath.FromSlash(t.dest))
}

func readStamp(dest string) (stamp, bool) {
	var s stamp
	f, err := os.Open(dest + stampSuffix)
	if err != nil {
		return s, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<16))
	return s, err == nil && json.Unmarshal(b, &s) == nil && len(s.SHA256) == 2*sha256.Size
}

// writeStamp records the file as it is on disk now.
func writeStamp(dest string, s stamp) error {
	st, err := os.Stat(dest)
	if err != nil {
		return storage(err, dest, 0)
	}
	s.Size, s.ModTime = st.Size(), st.ModTime().UnixNano()
	if s.Fetched.IsZero() {
		s.Fetched = time.Now().UTC().Truncate(time.Second)
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(dest+stampSuffix, append(b, '\n'))
}

// writeFile replaces a small file as a whole.
func writeFile(path string, b []byte) error {
	tmp := path + ".new"
	err := os.WriteFile(tmp, b, 0o644)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
		return storage(err, path, 0)
	}
	return nil
}

// stamped reports whether dest is as its stamp says, and, if sum is known,
// whether that is the file wanted. A web page never is.
func stamped(dest, sum string) bool {
	st, err := os.Stat(dest)
	if err != nil {
		return false
	}
	s, ok := readStamp(dest)
	return ok && s.Size == st.Size() && s.ModTime == st.ModTime().UnixNano() && (sum == "" || s.SHA256 == sum) && !webPage(dest)
}

// cached reports whether dest can be used; it hashes the file if its stamp
// does not vouch for it. A file that is not the one wanted is removed.
func (p *puller) cached(ctx context.Context, dest string, t target) (bool, error) {
	st, err := os.Stat(dest)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, storage(err, dest, 0)
	}
	if !p.Verify && stamped(dest, t.sha256) {
		return true, nil
	}
	s, _ := readStamp(dest)
	want := t.sha256
	if want == "" && !webPage(dest) {
		want = s.SHA256
	}
	got := ""
	if want != "" && st.Mode().IsRegular() {
		if got, err = p.hashFile(ctx, dest, t.label); err != nil {
			return false, err
		}
	}
	if want != "" && got == want {
		s.SHA256 = got
		return true, writeStamp(dest, s)
	}
	if p.Offline {
		return false, fmt.Errorf("pull: %w: %s is damaged or of unknown origin, and cannot be fetched again offline", ErrHash, dest)
	}
	p.Note(fmt.Sprintf("%s in the cache is damaged or of unknown origin, and is fetched again", t.label))
	os.Remove(dest + stampSuffix)
	if err := os.Remove(dest); err != nil {
		return false, storage(err, dest, 0)
	}
	return false, nil
}

// hashFile returns the SHA-256 of a file in hexadecimal.
func (p *puller) hashFile(ctx context.Context, path, label string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", storage(err, path, 0)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", storage(err, path, 0)
	}
	m := newMeter(p.Progress, label, "checking", 0, st.Size())
	h := sha256.New()
	if _, err := copyContext(ctx, io.MultiWriter(h, m), f); err != nil {
		return "", fmt.Errorf("pull: reading %s: %w", path, err)
	}
	m.end()
	return hex.EncodeToString(h.Sum(nil)), nil
}

// copyContext is io.Copy that ends with ctx.
func copyContext(ctx context.Context, w io.Writer, r io.Reader) (n int64, err error) {
	buf := make([]byte, 1<<18)
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		k, err := r.Read(buf)
		if k > 0 {
			m, werr := w.Write(buf[:k])
			n += int64(m)
			if werr != nil {
				return n, werr
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// lock keeps two processes from fetching the same file.
func (p *puller) lock(ctx context.Context, t target) (unlock func(), err error) {
	dir := filepath.Join(p.Cache, locksDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, storage(err, dir, 0)
	}
	path := filepath.Join(dir, t.key()+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, storage(err, path, 0)
	}
	for told := false; ; {
		ok, err := tryLock(f)
		if ok {
			return func() { f.Close() }, nil
		}
		if err != nil {
			f.Close()
			return nil, storage(err, path, 0)
		}
		if !told {
			told = true
			p.Note(fmt.Sprintf("%s is being fetched by another process; waiting for it", t.label))
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("pull: waiting for another process to fetch %s: %w", t.label, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// discard removes what a success leaves behind: the wheels, and the partial
// download of a source that was given up.
func (p *puller) discard(t target, dest string) {
	os.Remove(dest + partialSuffix)
	os.Remove(dest + partialSuffix + ".json")
	os.RemoveAll(p.wheelDir(t))
}
