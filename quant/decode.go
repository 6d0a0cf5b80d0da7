package quant

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrNoDecoder says that a type is known by name and size but that its values
// cannot be read.
var ErrNoDecoder = errors.New("no decoder for this tensor type")

// ErrSize says that a buffer does not fit the number of values.
var ErrSize = errors.New("size does not fit")

// Decode writes the len(dst) values that src stores into dst. len(dst) must be
// a multiple of the type's block and src exactly RowBytes(len(dst)) bytes long
// (ErrSize otherwise); several whole rows may be decoded at once. A type
// without a decoder gives an error that wraps ErrNoDecoder.
//
// The result is the definition of what a stored weight means: the faster
// kernels are held against it. It equals, in bits, dequantize of the Python
// package gguf; products and sums are rounded one by one on every processor.
func (t Type) Decode(dst []float32, src []byte) error {
	f, err := t.decoder()
	if err != nil {
		return err
	}
	if err := t.checkRow("decode", len(dst), len(src)); err != nil {
		return err
	}
	f(dst, src)
	return nil
}

// CanDecode returns nil when Decode reads the type, otherwise the error that
// it would return.
func (t Type) CanDecode() error { _, err := t.decoder(); return err }

func (t Type) checkRow(what string, values, bytes int) error {
	want, ok := t.RowBytes(values)
	if !ok {
		return fmt.Errorf("quant: %s %s: %d values is not a multiple of the block of %d: %w",
			what, t, values, layouts[t].Block, ErrSize)
	}
	if want != bytes {
		return fmt.Errorf("quant: %s %s: %d values take %d bytes, the buffer has %d: %w",
			what, t, values, want, bytes, ErrSize)
	}
	return nil
}

func (t Type) decoder() (func([]float32, []byte), error) {
	f := decoders[t]
	if f != nil {
		return f, nil
	}
	if _, ok := layouts[t]; !ok {
		return nil, fmt.Errorf("quant: decode: unknown type number %d: %w", uint32(t), ErrNoDecoder)
	}
	return nil, fmt.Errorf("quant: decode %s: its values cannot be read yet; convert the model to another type: %w", t, ErrNoDecoder)
}

var decoders = map[Type]func(dst []float32, src []byte){
	F32: decodeF32, F16: decodeF16, BF16: decodeBF16, F64: decodeF64,
	I8: decodeI8, I16: decodeI16, I32: decodeI32, I64: decodeI64, U8: decodeU8, Bool: decodeU8,
	Q4_0: decodeQ4_0, Q4_1: decodeQ4_1, Q5_0: decodeQ5_0, Q5_1: decodeQ5_1, Q8_0: decodeQ8_0,
	Q2_K: decodeQ2_K, Q3_K: decodeQ3_K, Q4_K: decodeQ4_K, Q5_K: decodeQ5_K, Q6_K: decodeQ6_K,
	U16: decodeU16, U32: decodeU32, U64: decodeU64,
	F8_E4M3: decodeByTable(valuesE4M3), F8_E5M2: decodeByTable(valuesE5M2), F8_E8M0: decodeByTable(valuesE8M0),
	F8_E4M3FNUZ: decodeByTable(valuesE4M3FNUZ), F8_E5M2FNUZ: decodeByTable(valuesE5M2FNUZ),
	F6_E2M3: decodeF6(valuesE2M3), F6_E3M2: decodeF6(valuesE3M2), F4_E2M1: decodeF4,
	IQ4_NL: decodeIQ4_NL, IQ4_XS: decodeIQ4_XS, MXFP4: decodeMXFP4,
}

func u16(b []byte) uint16     { return binary.LittleEndian.Uint16(b) }
func u32(b []byte) uint32     { return binary.LittleEndian.Uint32(b) }
func half(b []byte) float32   { return FromF16(u16(b)) }
func single(b []byte) float32 { return math.Float32frombits(u32(b)) }

func decodeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = single(src[4*i:])
	}
}

func decodeF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = half(src[2*i:])
	}
}

func decodeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = FromBF16(u16(src[2*i:]))
	}
}

func decodeF64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func decodeI8(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int8(src[i]))
	}
}

func decodeU8(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(src[i])
	}
}

func decodeI16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int16(u16(src[2*i:])))
	}
}

func decodeI32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int32(u32(src[4*i:])))
	}
}

func decodeI64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(int64(binary.LittleEndian.Uint64(src[8*i:])))
	}
}
