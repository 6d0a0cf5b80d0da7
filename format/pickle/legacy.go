package pickle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/inferflow/inferflow/format/shelf"
)

// legacyMagic is the first object of a checkpoint before PyTorch 1.6.
var legacyMagic, _ = new(big.Int).SetString("1950a86a20f9469cfc6c", 16)

// legacyVersion is the second.
const legacyVersion = 1001

// parse reads a whole checkpoint in any layout.
func parse(name string, data []byte) (*shelf.Part, error) {
	root, err := parseRoot(data)
	var tensors []named
	if err == nil {
		tensors, err = flatten(root)
	}
	if err != nil {
		return nil, fmt.Errorf("pickle: %s: %w", name, err)
	}
	p := &shelf.Part{Name: name}
	c := &copier{left: uint64(len(data))}
	for _, t := range tensors {
		v, offset, err := c.place(t.name, t.t)
		if err != nil {
			return nil, fmt.Errorf("pickle: %s: %w", name, err)
		}
		p.Add(v, offset)
	}
	return p, nil
}

func parseRoot(data []byte) (any, error) {
	switch {
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return parseZip(data)
	case len(data) > 262 && string(data[257:262]) == "ustar":
		return nil, fmt.Errorf("a tar archive, as PyTorch wrote before 0.1.10; load and save it once with PyTorch: %w", ErrUnsupported)
	case bytes.HasPrefix(data, []byte("\x80")):
		return parseLegacy(data)
	}
	return nil, fmt.Errorf("starts with %q: %w", data[:min(len(data), 8)], ErrFormat)
}

// legacy is the layout of pickles one after the other and the storages behind
// them (torch/serialization.py, _legacy_load).
type legacy struct {
	data  []byte
	at    int
	found map[string]*storage
}

// next interprets the next pickle.
func (l *legacy) next(persistent func(any) (any, error)) (any, error) {
	end := min(len(l.data), l.at+maxPickle)
	m := &machine{data: l.data[:end], at: l.at, persistent: persistent}
	v, err := m.run()
	l.at = m.at
	return v, err
}

func parseLegacy(data []byte) (any, error) {
	l := &legacy{data: data, found: map[string]*storage{}}
	magic, err := l.next(nil)
	if err != nil {
		return nil, err
	}
	if n, ok := magic.(*big.Int); !ok || n.Cmp(legacyMagic) != 0 {
		return nil, fmt.Errorf("a pickle, but not of PyTorch: its first object is %s: %w", kindOf(magic), ErrFormat)
	}
	if v, err := l.next(nil); err != nil || v != int64(legacyVersion) {
		return nil, or(err, fmt.Errorf("protocol version is not %d: %w", legacyVersion, ErrUnsupported))
	}
	info, err := l.next(nil)
	if err != nil {
		return nil, err
	}
	if d, ok := info.(*dict); ok {
		for i, k := range d.keys {
			if k == "little_endian" && d.values[i] == false {
				return nil, fmt.Errorf("written in big-endian order: %w", ErrUnsupported)
			}
		}
	}
	root, err := l.next(l.persistent)
	if err != nil {
		return nil, err
	}
	keys, err := l.next(nil)
	if err != nil {
		return nil, err
	}
	return root, l.storages(keys)
}

func or(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// persistent notes the storage of ("storage", type, key, location, values,
// view), where view is None or (key, offset, values) of a part of it.
func (l *legacy) persistent(id any) (any, error) {
	s, err := storageOf(id)
	if err != nil {
		return nil, err
	}
	old, ok := l.found[s.key]
	if !ok {
		old = s
		l.found[s.key] = s
	} else if old.typ != s.typ || old.bytes != s.bytes || old.numel != s.numel {
		return nil, fmt.Errorf("storage %s is described in two ways: %w", shelf.Quote(s.key), ErrCorrupt)
	}
	if t := id.(*tuple); len(t.items) > 5 && t.items[5] != nil {
		return nil, fmt.Errorf("storage %s is a view of another, as PyTorch wrote before 0.4; load and save it once: %w", shelf.Quote(s.key), ErrUnsupported)
	}
	return old, nil
}

// storages finds the bytes of all storages: for each key of the list the
// number of values, then the values.
func (l *legacy) storages(keys any) error {
	list, ok := keys.(*list)
	if !ok {
		return fmt.Errorf("the storages are listed by %s: %w", kindOf(keys), ErrCorrupt)
	}
	for _, k := range list.items {
		key, _ := k.(string)
		s, ok := l.found[key]
		if !ok || s.data != nil {
			return fmt.Errorf("storage %s is listed but not described, or twice: %w", shelf.Quote(key), ErrCorrupt)
		}
		want, ok := s.size()
		if rest := len(l.data) - l.at; !ok || rest < 8 || want > uint64(rest-8) {
			return fmt.Errorf("storage %s of %d values of %s does not fit the file; was the download cut short?: %w", shelf.Quote(key), s.numel, s.typ, ErrCorrupt)
		}
		if n := binary.LittleEndian.Uint64(l.data[l.at:]); n != s.numel {
			return fmt.Errorf("storage %s has %d values, %d are described: %w", shelf.Quote(key), n, s.numel, ErrCorrupt)
		}
		l.at += 8
		end := l.at + int(want)
		s.data, s.offset = l.data[l.at:end:end], l.at
		l.at = end
	}
	return nil
}
