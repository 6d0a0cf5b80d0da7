package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// ErrWrite says that what was handed to a Writer cannot stand in a file of the format.
var ErrWrite = errors.New("cannot be written as safetensors")

// Writer collects the description of tensors, then writes a file. The
// tensors' bytes are asked for one after the other while it is written, so
// that a model larger than memory can be. The zero Writer is empty and ready.
type Writer struct {
	// Metadata stands under __metadata__.
	Metadata map[string]string
	tensors  []pending
	names    map[string]bool
	size     uint64
}

type pending struct {
	entry
	data func(io.Writer) error
}

// names of the types, for writing.
var dtypeNames = func() map[quant.Type]string {
	m := map[quant.Type]string{}
	for name, t := range dtypes {
		m[t] = name
	}
	return m
}()

// Add announces a tensor. data is called once while the file is written and
// must write exactly the bytes of all rows.
func (w *Writer) Add(name string, t quant.Type, shape tensor.Shape, data func(io.Writer) error) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("safetensors: write: tensor %s: %s: %w", shelf.Quote(name), fmt.Sprintf(format, args...), ErrWrite)
	}
	e := entry{name: name, typ: t, shape: append(tensor.Shape{}, shape...), begin: w.size}
	switch {
	case name == "" || name == "__metadata__":
		return bad("no name of a tensor")
	case w.names[name]:
		return bad("added twice")
	case dtypeNames[t] == "":
		return bad("the format has no type %s", t)
	case len(shape) > maxDims:
		return bad("%d dimensions", len(shape))
	}
	for _, d := range shape {
		if d < 0 {
			return bad("shape %s", shape)
		}
	}
	n, ok := e.bytes()
	if !ok || w.size+n < w.size {
		return bad("shape %s of type %s is too large, or no whole number of bytes", shape, t)
	}
	e.end = e.begin + n
	w.size = e.end
	if w.names == nil {
		w.names = map[string]bool{}
	}
	w.names[name] = true
	w.tensors = append(w.tensors, pending{e, data})
	return nil
}

// header renders length and JSON, padded so that the data are aligned to 8 bytes.
func (w *Writer) header() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	field := func(key string, v any) error {
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		x, err := json.Marshal(v)
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(x)
		return err
	}
	var err error
	if w.Metadata != nil {
		err = field("__metadata__", w.Metadata)
	}
	for _, t := range w.tensors {
		err = errors.Join(err, field(t.name, struct {
			Dtype   string    `json:"dtype"`
			Shape   []int     `json:"shape"`
			Offsets [2]uint64 `json:"data_offsets"`
		}{dtypeNames[t.typ], t.shape, [2]uint64{t.begin, t.end}}))
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(b.Len())), b.Bytes()...), err
}

// WriteTo writes the file to out and returns the number of bytes written.
func (w *Writer) WriteTo(out io.Writer) (int64, error) {
	head, err := w.header()
	if err != nil {
		return 0, fmt.Errorf("safetensors: write: header: %w", err)
	}
	c := &sys.WriteCounter{W: out}
	if _, err := c.Write(head); err != nil {
		return c.N, fmt.Errorf("safetensors: write: header: %w", err)
	}
	for _, t := range w.tensors {
		start := c.N
		if err := t.data(c); err != nil {
			return c.N, fmt.Errorf("safetensors: write: tensor %s: %w", shelf.Quote(t.name), err)
		}
		if got := uint64(c.N - start); got != t.end-t.begin {
			return c.N, fmt.Errorf("safetensors: write: tensor %s: %d bytes were written, its shape takes %d: %w", shelf.Quote(t.name), got, t.end-t.begin, ErrWrite)
		}
	}
	return c.N, nil
}

// WriteFile writes the file as sys.Replace does: path holds the old contents or
// the whole new ones, never a part. After an error the temporary file is gone.
func (w *Writer) WriteFile(path string) error {
	err := sys.Replace(path, func(out io.Writer) error {
		_, err := w.WriteTo(out)
		return err
	})
	if err != nil {
		return fmt.Errorf("safetensors: write: %w", err)
	}
	return nil
}
