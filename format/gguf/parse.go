package gguf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// Limits on what a header may claim. They are far above any real model and
// bound the memory that the index of a hostile file takes.
const (
	maxKeys      = 1 << 16
	maxTensors   = 1 << 20
	maxName      = 1<<16 - 1 // the format's own limit on keys
	maxDims      = 4         // ggml's
	maxAlignment = 1 << 16

	minKeyBytes    = 8 + 4 + 1     // length, kind, the smallest value
	minTensorBytes = 8 + 4 + 4 + 8 // length, dimensions, type, offset
	defaultAlign   = 32            // where general.alignment is absent
	alignmentKey   = "general.alignment"
)

// part is one file of a set.
type part struct {
	shelf.Part
	version   uint32
	meta      Meta
	stored    []uint64 // the tensors' offsets as the headers say them
	infos     []int    // of the tensors' headers, for errors
	alignment uint64
}

// parse checks a whole file. Nothing is allocated before the bytes that ask
// for it are known to be there.
func parse(name string, data []byte) (*part, error) {
	p := &part{Part: shelf.Part{Name: name}, meta: Meta{name: name}}
	c := &cursor{name: name, data: data}
	if err := p.parseStart(c); err != nil {
		return nil, err
	}
	nTensors, nKeys := c.u64("the number of tensors"), c.u64("the number of keys")
	p.checkCounts(c, nTensors, nKeys)
	for i := uint64(0); i < nKeys && c.err == nil; i++ {
		p.parseKey(c, i)
	}
	if c.err == nil {
		c.err = p.findAlignment()
	}
	seen := map[string]bool{}
	for i := uint64(0); i < nTensors && c.err == nil; i++ {
		p.parseTensor(c, i, seen)
	}
	if c.err != nil {
		return nil, c.err
	}
	if err := p.place(data, uint64(c.off)); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *part) parseStart(c *cursor) error {
	magic := c.take(4, "the magic number")
	switch {
	case c.err != nil:
		return fmt.Errorf("gguf: %s: %d bytes are too few for any model: %w", p.Name, len(c.data), ErrNotGGUF)
	case bytes.Equal(magic, []byte("lmgg")), bytes.Equal(magic, []byte("tjgg")), bytes.Equal(magic, []byte("fmgg")), bytes.Equal(magic, []byte("algg")):
		return fmt.Errorf("gguf: %s: a GGML file from before GGUF (2023); convert the original model anew: %w", p.Name, ErrUnsupported)
	case !bytes.Equal(magic, []byte("GGUF")):
		return fmt.Errorf("gguf: %s: starts with %q, not with \"GGUF\": %w", p.Name, magic, ErrNotGGUF)
	}
	p.version = c.u32("the version")
	switch {
	case c.err != nil:
		return c.err
	case p.version == 2 || p.version == 3:
		return nil
	case p.version&0xffff == 0 && p.version != 0:
		return fmt.Errorf("gguf: %s: big-endian (version %d); convert it with gguf_convert_endian.py of the gguf package: %w",
			p.Name, bits.ReverseBytes32(p.version), ErrUnsupported)
	case p.version == 1:
		return fmt.Errorf("gguf: %s: version 1; versions 2 and 3 are read, convert the original model anew: %w", p.Name, ErrUnsupported)
	}
	return fmt.Errorf("gguf: %s: version %d; versions 2 and 3 are read: %w", p.Name, p.version, ErrUnsupported)
}

func (p *part) checkCounts(c *cursor, nTensors, nKeys uint64) {
	switch {
	case nKeys > maxKeys || nKeys > c.left()/minKeyBytes:
		c.fail(ErrCorrupt, "claims %d metadata keys; %d bytes follow and at most %d keys are read", nKeys, c.left(), maxKeys)
	case nTensors > maxTensors || nTensors > c.left()/minTensorBytes:
		c.fail(ErrCorrupt, "claims %d tensors; %d bytes follow and at most %d tensors are read", nTensors, c.left(), maxTensors)
	}
}

func (p *part) parseKey(c *cursor, i uint64) {
	c.what = fmt.Sprintf("metadata key %d", i)
	start := c.off
	key := string(c.str("its name", maxName))
	c.what = "key " + shelf.Quote(key)
	if c.err == nil && p.meta.Has(key) {
		c.off = start
		c.fail(ErrCorrupt, "stands there twice")
	}
	v := Value{kind: Kind(c.u32("its type"))}
	switch {
	case c.err != nil:
		return
	case int(v.kind) >= len(kinds):
		c.off -= 4
		c.fail(ErrCorrupt, "its type is %d, which GGUF does not define", v.kind)
	case v.kind == String:
		v.raw = c.str("its string", c.left())
	case v.kind == Array:
		p.parseArray(c, &v)
	default:
		v.raw = c.take(kinds[v.kind].size, "its value")
	}
	if c.err == nil {
		p.meta.add(key, v)
	}
}

// parseArray walks the elements once to find where the array ends.
func (p *part) parseArray(c *cursor, v *Value) {
	v.elem = Kind(c.u32("its element type"))
	switch {
	case c.err != nil:
		return
	case int(v.elem) >= len(kinds):
		c.off -= 4
		c.fail(ErrCorrupt, "its elements have the type %d, which GGUF does not define", v.elem)
		return
	case v.elem == Array:
		c.off -= 4
		c.fail(ErrUnsupported, "an array of arrays")
		return
	}
	at := c.off
	n := c.u64("its length")
	least := max(kinds[v.elem].size, 1)
	if v.elem == String {
		least = 8
	}
	if c.err == nil && n > c.left()/least {
		c.off = at
		c.fail(ErrCorrupt, "claims %d elements of type %s, the file has %d more bytes", n, v.elem, c.left()-8)
		return
	}
	v.n = int(n)
	start := c.off
	if v.elem != String {
		v.raw = c.take(n*kinds[v.elem].size, "its elements")
		return
	}
	c.skipStrings(v.n)
	v.raw = c.data[start:c.off:c.off]
}

// skipStrings passes n strings. A vocabulary has 256 thousand, so that what is
// in order goes without a call.
func (c *cursor) skipStrings(n int) {
	for i := 0; i < n && c.err == nil; i++ {
		if c.left() >= 8 {
			if size := binary.LittleEndian.Uint64(c.data[c.off:]); size <= c.left()-8 {
				c.off += 8 + int(size)
				continue
			}
		}
		c.str(fmt.Sprintf("element %d", i), c.left())
	}
}

func (p *part) findAlignment() error {
	p.alignment = defaultAlign
	v, ok := p.meta.Value(alignmentKey)
	if !ok {
		return nil
	}
	a, err := p.meta.Uint(alignmentKey)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrCorrupt)
	}
	if v.kind != Uint32 || bits.OnesCount64(a) != 1 || a > maxAlignment {
		return fmt.Errorf("gguf: %s: key %q is %d (%s), want a power of two up to %d as uint32: %w",
			p.Name, alignmentKey, a, v.kind, maxAlignment, ErrCorrupt)
	}
	p.alignment = a
	return nil
}

// parseTensor reads one tensor's header. Its data are placed later, when the
// end of all headers is known.
func (p *part) parseTensor(c *cursor, i uint64, seen map[string]bool) {
	c.what = fmt.Sprintf("tensor %d", i)
	start := c.off
	name := string(c.str("its name", maxName))
	c.what = "tensor " + shelf.Quote(name)
	if c.err == nil && seen[name] {
		c.off = start
		c.fail(ErrCorrupt, "stands there twice")
	}
	dims := p.parseDims(c)
	typ := quant.Type(c.u32("its type"))
	if c.err == nil && !typ.GGML() {
		c.off -= 4
		c.fail(ErrUnsupported, "its type number is %d, which ggml does not define (removed or newer than this program)", uint32(typ))
	}
	offset := c.u64("its offset")
	if c.err != nil {
		return
	}
	if l, _ := typ.Layout(); dims.Cols()%l.Block != 0 {
		c.fail(ErrCorrupt, "shape %s of type %s: rows of %d values, but a block holds %d", dims, typ, dims.Cols(), l.Block)
		return
	}
	seen[name] = true
	p.Tensors = append(p.Tensors, tensor.View{Name: name, Type: typ, Shape: dims})
	p.stored = append(p.stored, offset)
	p.infos = append(p.infos, start)
}

// parseDims reads the dimensions, reverses them and checks that their product
// can be addressed.
func (p *part) parseDims(c *cursor) tensor.Shape {
	n := c.u32("its number of dimensions")
	if c.err == nil && n > maxDims {
		c.off -= 4
		c.fail(ErrCorrupt, "claims %d dimensions, at most %d are defined", n, maxDims)
	}
	if c.err != nil {
		return nil
	}
	dims, total := make(tensor.Shape, n), uint64(1)
	for i := range dims {
		d := c.u64("a dimension")
		hi, lo := bits.Mul64(total, d)
		if c.err == nil && (hi != 0 || !fitsInt(lo)) {
			c.off -= 8
			c.fail(ErrCorrupt, "dimension %d is %d: more than 2^63 values", i, d)
		}
		if c.err == nil && d == 0 {
			c.off -= 8
			c.fail(ErrCorrupt, "dimension %d is 0", i)
		}
		if c.err != nil {
			return nil
		}
		total = lo
		dims[len(dims)-1-i] = int(d)
	}
	return dims
}

// place turns the offsets into views: inside the file, aligned, not overlapping.
func (p *part) place(data []byte, headers uint64) error {
	base := headers + (p.alignment-headers%p.alignment)%p.alignment
	for i := range p.Tensors {
		v, off := &p.Tensors[i], p.stored[i]
		bad := func(format string, args ...any) error {
			return fmt.Errorf("gguf: %s: offset %d: tensor %s: %s: %w", p.Name, p.infos[i], shelf.Quote(v.Name), fmt.Sprintf(format, args...), ErrCorrupt)
		}
		row, ok := v.Type.RowBytes(v.Shape.Cols())
		hi, size := bits.Mul64(uint64(row), uint64(v.Shape.Rows()))
		switch end, carry := bits.Add64(base, off, 0); {
		case !ok || hi != 0 || !fitsInt(size):
			return bad("shape %s of type %s takes more than 2^63 bytes", v.Shape, v.Type)
		case off%p.alignment != 0:
			return bad("its data offset %d is not a multiple of the alignment %d", off, p.alignment)
		case carry != 0 || end > uint64(len(data)) || size > uint64(len(data))-end:
			return bad("its %d bytes (shape %s of type %s) start at %d + %d, but the file ends at %d; was the download cut short?",
				size, v.Shape, v.Type, base, off, len(data))
		default:
			v.Data = data[end : end+size : end+size]
			p.Offsets = append(p.Offsets, int(end))
		}
	}
	return p.checkOverlap()
}

func (p *part) checkOverlap() error {
	order := make([]int, len(p.Tensors))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.Offsets[a], p.Offsets[b]), a-b)
	})
	for k := 1; k < len(order); k++ {
		a, b := order[k-1], order[k]
		if end := p.Offsets[a] + len(p.Tensors[a].Data); end > p.Offsets[b] {
			return fmt.Errorf("gguf: %s: offset %d: tensor %s: its data start at %d, inside tensor %s (up to %d): %w", p.Name, p.infos[b],
				shelf.Quote(p.Tensors[b].Name), p.Offsets[b], shelf.Quote(p.Tensors[a].Name), end, ErrCorrupt)
		}
	}
	return nil
}
