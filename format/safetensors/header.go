package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"

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

// scanner reads JSON by tokens, because package json alone takes the last of
// two equal keys without a word.
type scanner struct{ *json.Decoder }

func (s scanner) bad(format string, args ...any) error {
	return fmt.Errorf("offset %d: %s: %w", s.InputOffset(), fmt.Sprintf(format, args...), ErrCorrupt)
}

func (s scanner) next() (json.Token, error) {
	t, err := s.Token()
	if errors.Is(err, io.EOF) {
		return nil, s.bad("the JSON ends too early")
	}
	if err != nil {
		return nil, s.bad("broken JSON: %v", err)
	}
	return t, nil
}

// object reads an object and calls field after each key, which must read the value.
func (s scanner) object(what string, field func(key string) error) error {
	t, err := s.next()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return s.bad("%s is no object", what)
	}
	seen := map[string]bool{}
	for s.More() {
		if t, err = s.next(); err != nil {
			return err
		}
		key, _ := t.(string) // an object's keys are strings, or Token had failed
		if seen[key] {
			return s.bad("%s has the key %s twice", what, quote(key))
		}
		seen[key] = true
		if err := field(key); err != nil {
			return err
		}
	}
	_, err = s.next()
	return err
}

func (s scanner) str(what string) (string, error) {
	t, err := s.next()
	if err != nil {
		return "", err
	}
	v, ok := t.(string)
	if !ok {
		return "", s.bad("%s is no string", what)
	}
	return v, nil
}

// numbers reads an array of at most limit integers that are not negative.
func (s scanner) numbers(what string, limit int) ([]uint64, error) {
	t, err := s.next()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('[') {
		return nil, s.bad("%s is no array", what)
	}
	list := []uint64{}
	for s.More() {
		if t, err = s.next(); err != nil {
			return nil, err
		}
		num, ok := t.(json.Number)
		n, err := strconv.ParseUint(string(num), 10, 63)
		if !ok || err != nil {
			return nil, s.bad("%s holds %v, want integers from 0 to 2^63-1", what, t)
		}
		if list = append(list, n); len(list) > limit {
			return nil, s.bad("%s has more than %d numbers", what, limit)
		}
	}
	_, err = s.next()
	return list, err
}

// end checks that nothing but white space follows.
func (s scanner) end() error {
	if t, err := s.Token(); !errors.Is(err, io.EOF) {
		return s.bad("something follows the JSON: %v %v", t, err)
	}
	return nil
}

func newScanner(text []byte) scanner {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return scanner{d}
}

func parseHeader(text []byte) (h header, err error) {
	if !utf8.Valid(text) {
		return h, fmt.Errorf("is not UTF-8: %w", ErrCorrupt)
	}
	s := newScanner(text)
	err = s.object("the header", func(key string) error {
		switch {
		case key == "__metadata__":
			meta, err := s.metadata()
			h.meta = meta
			return err
		case len(h.entries) == maxTensors:
			return s.bad("more than %d tensors", maxTensors)
		}
		e, err := s.entry(key)
		h.entries = append(h.entries, e)
		return err
	})
	if err == nil {
		err = s.end()
	}
	return h, err
}

func (s scanner) metadata() (map[string]string, error) {
	meta := map[string]string{}
	return meta, s.object("__metadata__", func(key string) (err error) {
		meta[key], err = s.str("__metadata__ " + quote(key))
		return err
	})
}

func (s scanner) entry(name string) (e entry, err error) {
	e.name = name
	what := "tensor " + quote(name)
	have := 0
	err = s.object(what, func(key string) error {
		have++
		switch key {
		case "dtype":
			return s.dtype(what, &e.typ)
		case "shape":
			dims, err := s.numbers(what+": shape", maxDims)
			for _, d := range dims {
				e.shape = append(e.shape, int(d))
			}
			return err
		case "data_offsets":
			two, err := s.numbers(what+": data_offsets", 2)
			if err == nil && len(two) != 2 {
				err = s.bad("%s: data_offsets has %d numbers, want 2", what, len(two))
			}
			if err == nil {
				e.begin, e.end = two[0], two[1]
			}
			return err
		}
		return s.bad("%s has the key %s; dtype, shape and data_offsets are known", what, quote(key))
	})
	if err == nil && have != 3 {
		err = s.bad("%s lacks one of dtype, shape and data_offsets", what)
	}
	if e.shape == nil {
		e.shape = tensor.Shape{}
	}
	return e, err
}

func (s scanner) dtype(what string, t *quant.Type) error {
	name, err := s.str(what + ": dtype")
	if err != nil {
		return err
	}
	var ok bool
	if *t, ok = dtypes[name]; !ok {
		return fmt.Errorf("offset %d: %s: dtype %s: %w", s.InputOffset(), what, quote(name), ErrUnsupported)
	}
	return nil
}
