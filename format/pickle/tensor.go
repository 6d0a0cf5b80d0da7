package pickle

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

const maxDims = 16

// storage is a run of values in the file, which several tensors may share.
type storage struct {
	typ    quant.Type
	bytes  bool // untyped: numel counts bytes, and the tensor brings its type
	numel  uint64
	key    string
	data   []byte // nil until it is found
	offset int    // in the file
}

// size is the number of bytes that the storage should have.
func (s *storage) size() (uint64, bool) {
	if s.bytes {
		return s.numel, s.numel <= math.MaxInt64
	}
	l, _ := s.typ.Layout()
	hi, n := bits.Mul64(s.numel, uint64(l.Bytes))
	return n, hi == 0 && n <= math.MaxInt64
}

// strided is a tensor as a pickle describes it: a view of a storage, with
// offset and strides in values.
type strided struct {
	storage       *storage
	typ           quant.Type
	offset        uint64
	shape, stride []uint64
}

// rebuildTensor is _rebuild_tensor(storage, offset, size, stride) and
// _rebuild_tensor_v2, which has more arguments that say nothing of the values.
func (m *machine) rebuildTensor(args []any) (any, error) {
	t, err := m.view(args)
	if err == nil && t.storage.bytes {
		return nil, m.bad(ErrCorrupt, "a tensor without a type on an untyped storage")
	}
	return t, err
}

// rebuildTyped is _rebuild_tensor_v3(storage, offset, size, stride, grad,
// hooks, dtype, …): the tensor brings its type.
func (m *machine) rebuildTyped(args []any) (any, error) {
	t, err := m.view(args)
	if err != nil {
		return nil, err
	}
	if len(args) < 7 {
		return nil, m.bad(ErrCorrupt, "_rebuild_tensor_v3 has %d arguments", len(args))
	}
	g, _ := args[6].(global)
	typ, ok := g.typeOf()
	if !ok {
		return nil, m.bad(ErrCorrupt, "%s is no dtype", kindOf(args[6]))
	}
	t.typ = typ
	return t, nil
}

func (m *machine) view(args []any) (*strided, error) {
	if len(args) < 4 {
		return nil, m.bad(ErrCorrupt, "a tensor is made of %d arguments", len(args))
	}
	s, ok := args[0].(*storage)
	if !ok {
		return nil, m.bad(ErrCorrupt, "a tensor is made of %s, not of a storage", kindOf(args[0]))
	}
	t := &strided{storage: s, typ: s.typ}
	offset, ok := args[1].(int64)
	shape, ok1 := natural(args[2])
	stride, ok2 := natural(args[3])
	if !ok || offset < 0 || !ok1 || !ok2 || len(shape) != len(stride) || len(shape) > maxDims {
		return nil, m.bad(ErrCorrupt, "offset, size and stride of a tensor are not natural numbers of up to %d dimensions", maxDims)
	}
	if err := m.make(8 * (len(shape) + len(stride))); err != nil {
		return nil, err
	}
	t.offset, t.shape, t.stride = uint64(offset), shape, stride
	return t, nil
}

// natural reads a tuple of integers from 0 to 2^63 − 1.
func natural(v any) ([]uint64, bool) {
	t, ok := v.(*tuple)
	if !ok || len(t.items) > maxDims {
		return nil, false
	}
	out := make([]uint64, len(t.items))
	for i, x := range t.items {
		n, ok := x.(int64)
		if !ok || n < 0 {
			return nil, false
		}
		out[i] = uint64(n)
	}
	return out, true
}

// elements is the number of values, and the index after the last that is
// reached in the storage; ok is false where a number leaves 63 bits.
func (t *strided) elements() (n, end uint64, ok bool) {
	n, end = 1, t.offset
	empty := false
	for i, d := range t.shape {
		hi, lo := bits.Mul64(n, d)
		if hi != 0 || lo > math.MaxInt64 {
			return 0, 0, false
		}
		n = lo
		if d == 0 {
			empty = true
			continue
		}
		hi, lo = bits.Mul64(d-1, t.stride[i])
		if hi != 0 || lo > math.MaxInt64 || end+lo > math.MaxInt64 {
			return 0, 0, false
		}
		end += lo
	}
	if empty {
		return 0, t.offset, true
	}
	return n, end + 1, true
}

// contiguous says that the values lie one after the other in the order of the shape.
func (t *strided) contiguous() bool {
	want := uint64(1)
	for i := len(t.shape) - 1; i >= 0; i-- {
		if t.shape[i] != 1 && t.stride[i] != want {
			return false
		}
		want *= t.shape[i]
	}
	return true
}

// copier bounds what is copied out of a file.
type copier struct{ left uint64 }

// place makes the view of a tensor: of the file's bytes where its values lie
// in order, else a copy. The offset is −1 for a copy.
func (c *copier) place(name string, t *strided) (v tensor.View, offset int, err error) {
	bad := func(is error, format string, args ...any) error {
		return fmt.Errorf("tensor %s: %s: %w", shelf.Quote(name), fmt.Sprintf(format, args...), is)
	}
	n, end, ok := t.elements()
	l, _ := t.typ.Layout()
	size := uint64(l.Bytes)
	have := uint64(len(t.storage.data)) / size
	switch {
	case t.storage.data == nil && t.storage.numel > 0:
		return v, 0, bad(ErrCorrupt, "its storage %s is not in the file", shelf.Quote(t.storage.key))
	case !ok || n > 0 && end > have || t.offset > have:
		return v, 0, bad(ErrCorrupt, "shape %v with strides %v from %d leaves its storage of %d values", t.shape, t.stride, t.offset, have)
	}
	v = tensor.View{Name: name, Type: t.typ, Shape: make(tensor.Shape, len(t.shape))}
	for i, d := range t.shape {
		v.Shape[i] = int(d)
	}
	at := int(t.offset * size)
	if t.contiguous() || n == 0 {
		v.Data = t.storage.data[at : at+int(n*size) : at+int(n*size)]
		return v, t.storage.offset + at, nil
	}
	if n*size > c.left || n > math.MaxInt64/size {
		return v, 0, bad(ErrTooLarge, "shape %v with strides %v asks for a copy of %d bytes, more than the file holds", t.shape, t.stride, n*size)
	}
	c.left -= n * size
	v.Data = t.copied(int(n), int(size))
	return v, -1, nil
}

// copied brings the values in the order of the shape.
func (t *strided) copied(n, size int) []byte {
	out := make([]byte, n*size)
	idx := make([]uint64, len(t.shape))
	last := len(t.shape) - 1
	inner, step := int(t.shape[last]), int(t.stride[last])*size
	for at := 0; at < len(out); {
		from := t.offset
		for i, x := range idx[:last] {
			from += x * t.stride[i]
		}
		src := int(from) * size
		for range inner {
			copy(out[at:at+size], t.storage.data[src:src+size])
			at, src = at+size, src+step
		}
		for i := last - 1; i >= 0; i-- {
			if idx[i]++; idx[i] < t.shape[i] {
				break
			}
			idx[i] = 0
		}
	}
	return out
}
