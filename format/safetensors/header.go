package safetensors

import (
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

const (
	maxTensors = 1 << 20
	maxDims    = 16
)

// dtypes are the names of the format and the quant.Type that each stands for.
var dtypes = map[string]quant.Type{
	"F64": quant.F64, "F32": quant.F32, "F16": quant.F16, "BF16": quant.BF16,
	"I64": quant.I64, "I32": quant.I32, "I16": quant.I16, "I8": quant.I8,
	"U64": quant.U64, "U32": quant.U32, "U16": quant.U16, "U8": quant.U8, "BOOL": quant.Bool,
	"F8_E4M3": quant.F8_E4M3, "F8_E5M2": quant.F8_E5M2, "F8_E8M0": quant.F8_E8M0,
	"F8_E4M3FNUZ": quant.F8_E4M3FNUZ, "F8_E5M2FNUZ": quant.F8_E5M2FNUZ,
	"F6_E2M3": quant.F6_E2M3, "F6_E3M2": quant.F6_E3M2, "F4": quant.F4_E2M1, "C64": quant.C64,
}

type header struct {
	meta    map[string]string
	entries []entry
}

// entry is a tensor as the header describes it; offsets count from the end of
// the header.
type entry struct {
	name       string
	typ        quant.Type
	shape      tensor.Shape
	begin, end uint64
}

// bytes is the size that type and shape ask for; ok is false above 2^63. The
// types of less than a byte are packed along the last dimension.
func (e entry) bytes() (n uint64, ok bool) {
	l, _ := e.typ.Layout()
	n = uint64(l.Bytes)
	for i, d := range e.shape {
		size := uint64(d)
		if i == len(e.shape)-1 && l.Block > 1 {
			if d%l.Block != 0 {
				return 0, false
			}
			size /= uint64(l.Block)
		}
		var hi uint64
		if hi, n = bits.Mul64(n, size); hi != 0 || n > math.MaxInt64 {
			return math.MaxUint64, false
		}
	}
	return n, true
}

func parseHeader(text []byte) (h header, err error) {
	if !utf8.Valid(text) {
		return h, fmt.Errorf("is not UTF-8: %w", ErrCorrupt)
	}
	s := newScanner(text)
	many := len(text) / 64 // an entry takes more
	h.entries = make([]entry, 0, min(many, maxTensors))
	err = s.object(place{what: "the header"}, many, func(key string) error {
		switch {
		case key == "__metadata__":
			meta, err := s.metadata()
			h.meta = meta
			return err
		case len(h.entries) == maxTensors:
			return s.bad("more than %d tensors", maxTensors)
		}
		h.entries = append(h.entries, entry{name: key})
		return s.entry(&h.entries[len(h.entries)-1])
	})
	if err == nil {
		err = s.end()
	}
	return h, err
}

func (s *scanner) metadata() (map[string]string, error) {
	meta := map[string]string{}
	return meta, s.object(place{what: "__metadata__"}, 0, func(key string) (err error) {
		meta[key], err = s.str(place{what: "__metadata__", name: key})
		return err
	})
}

func (s *scanner) entry(e *entry) error {
	what := place{what: "tensor", name: e.name}
	have := 0
	err := s.object(what, 0, func(key string) error {
		have++
		what := what
		what.field = key
		switch key {
		case "dtype":
			return s.dtype(what, &e.typ)
		case "shape":
			dims, err := s.numbers(what, maxDims)
			e.shape = make(tensor.Shape, len(dims))
			for i, d := range dims {
				e.shape[i] = int(d)
			}
			return err
		case "data_offsets":
			two, err := s.numbers(what, 2)
			if err == nil && len(two) != 2 {
				err = s.bad("%s has %d numbers, want 2", what, len(two))
			}
			if err == nil {
				e.begin, e.end = two[0], two[1]
			}
			return err
		}
		return s.bad("tensor %s has the key %s; dtype, shape and data_offsets are known", shelf.Quote(e.name), shelf.Quote(key))
	})
	if err == nil && have != 3 {
		err = s.bad("%s lacks one of dtype, shape and data_offsets", what)
	}
	return err
}

func (s *scanner) dtype(what place, t *quant.Type) error {
	name, err := s.str(what)
	if err != nil {
		return err
	}
	var ok bool
	if *t, ok = dtypes[name]; !ok {
		return fmt.Errorf("offset %d: tensor %s: dtype %s: %w", s.at, shelf.Quote(what.name), shelf.Quote(name), ErrUnsupported)
	}
	return nil
}
