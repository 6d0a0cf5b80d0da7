package pickle

import (
	"archive/zip"
	"bytes"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/quant"
)

const (
	maxEntries = 1 << 20 // files of an archive
	maxKey     = 1 << 10 // bytes: looked up for every tensor; PyTorch counts, or writes an address
)

// archive is a checkpoint in the zip layout: FOLDER/data.pkl describes it,
// FOLDER/data/KEY are the storages, all stored as they are.
type archive struct {
	data    []byte
	folder  string
	entries map[string]*zip.File
	found   map[string]*storage // by key, shared by the tensors that name it
}

// parseZip reads the zip layout (torch/serialization.py, _load).
func parseZip(data []byte) (root any, err error) {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("zip: %v; was the download cut short?: %w", err, ErrCorrupt)
	}
	a := &archive{data: data, entries: map[string]*zip.File{}, found: map[string]*storage{}}
	if err := a.list(r.File); err != nil {
		return nil, err
	}
	if order, ok := a.entries[a.folder+"byteorder"]; ok {
		b, _, err := a.stored(order)
		if err != nil {
			return nil, err
		}
		if string(b) != "little" {
			return nil, fmt.Errorf("byte order %s: %w", shelf.Quote(string(b)), ErrUnsupported)
		}
	}
	if _, ok := a.entries[a.folder+"constants.pkl"]; ok {
		return nil, fmt.Errorf("a TorchScript program, not weights; save its state_dict, or safetensors: %w", ErrUnsupported)
	}
	b, _, err := a.stored(a.entries[a.folder+"data.pkl"])
	if err != nil {
		return nil, err
	}
	if len(b) > maxPickle {
		return nil, fmt.Errorf("data.pkl has %d bytes, at most %d are read: %w", len(b), maxPickle, ErrTooLarge)
	}
	m := &machine{data: b, persistent: a.persistent}
	return m.run()
}

// list checks the names and places of all entries: they must not overlap, so
// that a small archive cannot stand for a large one.
func (a *archive) list(files []*zip.File) error {
	if len(files) > maxEntries {
		return fmt.Errorf("zip: %d files: %w", len(files), ErrTooLarge)
	}
	type span struct {
		from, to int64
		name     string
	}
	var spans []span
	for _, f := range files {
		switch {
		case strings.HasPrefix(f.Name, "/") || strings.Contains(f.Name, `\`) || slices.Contains(strings.Split(f.Name, "/"), ".."):
			return fmt.Errorf("zip: the name %s leads out of the archive: %w", shelf.Quote(f.Name), ErrCorrupt)
		case a.entries[f.Name] != nil:
			return fmt.Errorf("zip: %s stands there twice: %w", shelf.Quote(f.Name), ErrCorrupt)
		}
		a.entries[f.Name] = f
		if path.Base(f.Name) == "data.pkl" && strings.Count(f.Name, "/") <= 1 && a.folder == "" {
			a.folder = strings.TrimSuffix(f.Name, "data.pkl")
		}
		if f.CompressedSize64 == 0 {
			continue
		}
		at, err := f.DataOffset()
		if err != nil || f.CompressedSize64 > math.MaxInt64 || at < 0 || at > int64(len(a.data)) || int64(f.CompressedSize64) > int64(len(a.data))-at {
			return fmt.Errorf("zip: %s lies outside the file; was the download cut short?: %w", shelf.Quote(f.Name), ErrCorrupt)
		}
		spans = append(spans, span{at, at + int64(f.CompressedSize64), f.Name})
	}
	if a.entries[a.folder+"data.pkl"] == nil {
		return fmt.Errorf("a zip archive without data.pkl: %w", ErrFormat)
	}
	slices.SortFunc(spans, func(x, y span) int {
		if x.from != y.from {
			return int(min(max(x.from-y.from, -1), 1))
		}
		return int(min(max(x.to-y.to, -1), 1))
	})
	for i := 1; i < len(spans); i++ {
		if spans[i].from < spans[i-1].to {
			return fmt.Errorf("zip: %s and %s overlap: %w", shelf.Quote(spans[i-1].name), shelf.Quote(spans[i].name), ErrCorrupt)
		}
	}
	return nil
}

// stored is the bytes of an entry, which list has found inside the file.
func (a *archive) stored(f *zip.File) (b []byte, offset int, err error) {
	switch {
	case f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64:
		return nil, 0, fmt.Errorf("zip: %s is compressed, which PyTorch never writes and cannot be mapped: %w", shelf.Quote(f.Name), ErrUnsupported)
	case f.Flags&1 != 0:
		return nil, 0, fmt.Errorf("zip: %s is encrypted: %w", shelf.Quote(f.Name), ErrUnsupported)
	case f.CompressedSize64 == 0:
		return []byte{}, 0, nil
	}
	at, err := f.DataOffset()
	if err != nil {
		return nil, 0, fmt.Errorf("zip: %s: %v: %w", shelf.Quote(f.Name), err, ErrCorrupt)
	}
	end := at + int64(f.CompressedSize64)
	return a.data[at:end:end], int(at), nil
}

// persistent finds the storage of ("storage", type, key, location, values).
func (a *archive) persistent(id any) (any, error) {
	s, err := storageOf(id)
	if err != nil {
		return nil, err
	}
	if old, ok := a.found[s.key]; ok {
		if old.typ != s.typ || old.bytes != s.bytes || old.numel != s.numel {
			return nil, fmt.Errorf("storage %s is described in two ways: %w", shelf.Quote(s.key), ErrCorrupt)
		}
		return old, nil
	}
	f, ok := a.entries[a.folder+"data/"+s.key]
	if !ok {
		return nil, fmt.Errorf("storage %s is not in the archive: %w", shelf.Quote(s.key), ErrCorrupt)
	}
	if s.data, s.offset, err = a.stored(f); err != nil {
		return nil, err
	}
	if n, ok := s.size(); !ok || n != uint64(len(s.data)) {
		return nil, fmt.Errorf("storage %s holds %d bytes, %d values of %s take %d: %w", shelf.Quote(s.key), len(s.data), s.numel, s.typ, n, ErrCorrupt)
	}
	a.found[s.key] = s
	return s, nil
}

// storageOf reads a persistent id.
func storageOf(id any) (*storage, error) {
	t, ok := id.(*tuple)
	if !ok || len(t.items) < 5 || t.items[0] != "storage" {
		return nil, fmt.Errorf("a persistent id that names no storage: %w", ErrCorrupt)
	}
	g, ok1 := t.items[1].(global)
	key, ok2 := t.items[2].(string)
	numel, ok3 := t.items[4].(int64)
	if !ok1 || !ok2 || !ok3 || numel < 0 {
		return nil, fmt.Errorf("a storage that is not described by type, key and number of values: %w", ErrCorrupt)
	}
	if len(key) > maxKey {
		return nil, fmt.Errorf("a storage under a key of %d bytes: %w", len(key), ErrTooLarge)
	}
	s := &storage{key: key, numel: uint64(numel), typ: quant.U8}
	if g.name == "UntypedStorage" {
		s.bytes = true
		return s, nil
	}
	if s.typ, ok = storageTypes[g.name]; !ok {
		return nil, fmt.Errorf("storages of type %s: %w", g, ErrUnsupported)
	}
	return s, nil
}
