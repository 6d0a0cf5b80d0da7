package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// ErrWrite says that what was handed to a Writer cannot stand in a GGUF file.
var ErrWrite = errors.New("cannot be written as GGUF")

// Writer collects metadata and the description of tensors, then writes a file
// of version 3. The tensors' bytes are asked for one after the other while the
// file is written, so that a model larger than memory can be. The zero Writer
// is empty and ready.
type Writer struct {
	keys    map[string]bool
	nKeys   uint64
	meta    []byte
	tensors []pending
	names   map[string]bool
	align   uint64
}

type pending struct {
	name  string
	typ   quant.Type
	shape tensor.Shape
	size  uint64
	data  func(io.Writer) error
}

// Set adds a metadata value: any of Go's sized integers, float32, float64,
// bool, string, a slice of one of them, or a Value of an opened file, which is
// copied as it stands. Keys keep their order; a second use of a key is an error.
func (w *Writer) Set(key string, value any) error {
	switch {
	case key == "" || len(key) > maxName:
		return fmt.Errorf("gguf: write: key %s: want 1 to %d bytes: %w", shelf.Quote(key), maxName, ErrWrite)
	case w.keys[key]:
		return fmt.Errorf("gguf: write: key %s: set twice: %w", shelf.Quote(key), ErrWrite)
	}
	v, ok := encodeValue(value)
	if !ok {
		return fmt.Errorf("gguf: write: key %s: a %T has no GGUF type: %w", shelf.Quote(key), value, ErrWrite)
	}
	if key == alignmentKey {
		a, ok := value.(uint32)
		if !ok || a == 0 || a&(a-1) != 0 || a > maxAlignment {
			return fmt.Errorf("gguf: write: key %s: is %v, want a uint32 power of two up to %d: %w", shelf.Quote(key), value, maxAlignment, ErrWrite)
		}
		w.align = uint64(a)
	}
	if w.keys == nil {
		w.keys = map[string]bool{}
	}
	w.keys[key] = true
	w.nKeys++
	w.meta = appendString(w.meta, key)
	w.meta = append(w.meta, v...)
	return nil
}

// Add announces a tensor with its shape in PyTorch's order. data is called
// once while the file is written and must write exactly the bytes of all rows.
func (w *Writer) Add(name string, t quant.Type, shape tensor.Shape, data func(io.Writer) error) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("gguf: write: tensor %s: %s: %w", shelf.Quote(name), fmt.Sprintf(format, args...), ErrWrite)
	}
	switch {
	case name == "" || len(name) > maxName:
		return bad("its name has %d bytes, want 1 to %d", len(name), maxName)
	case w.names[name]:
		return bad("added twice")
	case !t.GGML():
		return bad("ggml has no type %s", t)
	case len(shape) > maxDims:
		return bad("%d dimensions, GGUF has room for %d", len(shape), maxDims)
	}
	rows := uint64(1)
	for i, d := range shape {
		if d < 1 {
			return bad("shape %s has a dimension below 1", shape)
		}
		if i < len(shape)-1 {
			if rows > math.MaxInt64/uint64(d) {
				return bad("shape %s is too large", shape)
			}
			rows *= uint64(d)
		}
	}
	row, ok := t.RowBytes(shape.Cols())
	if !ok || rows > math.MaxInt64/uint64(row) {
		return bad("shape %s does not fit the blocks of type %s", shape, t)
	}
	if w.names == nil {
		w.names = map[string]bool{}
	}
	w.names[name] = true
	w.tensors = append(w.tensors, pending{name, t, append(tensor.Shape{}, shape...), rows * uint64(row), data})
	return nil
}

// AddView announces a tensor whose bytes are at hand; they are not copied.
func (w *Writer) AddView(v tensor.View) error {
	return w.Add(v.Name, v.Type, v.Shape, func(out io.Writer) error {
		_, err := out.Write(v.Data)
		return err
	})
}

func (w *Writer) alignment() uint64 {
	if w.align == 0 {
		return defaultAlign
	}
	return w.align
}

func padding(n, align uint64) uint64 { return (align - n%align) % align }

// header is everything before the first tensor's bytes, without padding.
func (w *Writer) header() ([]byte, error) {
	b := append([]byte("GGUF"), 3, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.tensors)))
	b = binary.LittleEndian.AppendUint64(b, w.nKeys)
	b = append(b, w.meta...)
	offset := uint64(0)
	for _, t := range w.tensors {
		b = appendString(b, t.name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.shape)))
		for i := len(t.shape) - 1; i >= 0; i-- {
			b = binary.LittleEndian.AppendUint64(b, uint64(t.shape[i]))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.typ))
		b = binary.LittleEndian.AppendUint64(b, offset)
		next := offset + t.size + padding(t.size, w.alignment())
		if next < offset || next > math.MaxInt64 {
			return nil, fmt.Errorf("gguf: write: tensor %s: the file would exceed 2^63 bytes: %w", shelf.Quote(t.name), ErrWrite)
		}
		offset = next
	}
	return b, nil
}

// WriteTo writes the file to out and returns the number of bytes written. It
// may be called again if the tensors' data functions allow it.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	count := &sys.WriteCounter{W: out}
	head, err := w.header()
	if err != nil {
		return 0, err
	}
	if _, err := count.Write(append(head, make([]byte, padding(uint64(len(head)), w.alignment()))...)); err != nil {
		return count.N, fmt.Errorf("gguf: write: header: %w", err)
	}
	for _, t := range w.tensors {
		start := count.N
		if err := t.data(count); err != nil {
			return count.N, fmt.Errorf("gguf: write: tensor %s: %w", shelf.Quote(t.name), err)
		}
		if got := uint64(count.N - start); got != t.size {
			return count.N, fmt.Errorf("gguf: write: tensor %s: %d bytes were written, shape %s of type %s takes %d: %w",
				shelf.Quote(t.name), got, t.shape, t.typ, t.size, ErrWrite)
		}
		if _, err := count.Write(make([]byte, padding(t.size, w.alignment()))); err != nil {
			return count.N, fmt.Errorf("gguf: write: tensor %s: %w", shelf.Quote(t.name), err)
		}
	}
	return count.N, nil
}

// WriteFile writes the file as sys.Replace does: path holds the old contents or
// the whole new ones, never a part. After an error the temporary file is gone.
func (w *Writer) WriteFile(path string) error {
	err := sys.Replace(path, func(out io.Writer) error {
		_, err := w.WriteTo(out)
		return err
	})
	if err != nil {
		return fmt.Errorf("gguf: write: %w", err)
	}
	return nil
}
