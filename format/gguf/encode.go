package gguf

import (
	"bytes"
	"encoding/binary"
)

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// encodeValue renders kind and bytes of a value that Writer.Set accepts.
func encodeValue(value any) (b []byte, ok bool) {
	if v, ok := value.(Value); ok {
		return v.encode()
	}
	kind, ok := scalarKind(value)
	if ok {
		b = binary.LittleEndian.AppendUint32(b, uint32(kind))
	} else {
		elem, n, ok := sliceKind(value)
		if !ok {
			return nil, false
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(Array))
		b = binary.LittleEndian.AppendUint32(b, uint32(elem))
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	switch s := value.(type) {
	case string:
		return appendString(b, s), true
	case []string:
		for _, e := range s {
			b = appendString(b, e)
		}
		return b, true
	}
	buf := bytes.NewBuffer(b)
	err := binary.Write(buf, binary.LittleEndian, value)
	return buf.Bytes(), err == nil
}

// encode renders a value of an opened file; the zero Value is none.
func (v Value) encode() (b []byte, ok bool) {
	b = binary.LittleEndian.AppendUint32(b, uint32(v.kind))
	switch v.kind {
	case String:
		b = binary.LittleEndian.AppendUint64(b, uint64(len(v.raw)))
	case Array:
		b = binary.LittleEndian.AppendUint32(b, uint32(v.elem))
		b = binary.LittleEndian.AppendUint64(b, uint64(v.n))
	default:
		if len(v.raw) == 0 {
			return nil, false
		}
	}
	return append(b, v.raw...), true
}

func scalarKind(value any) (Kind, bool) {
	switch value.(type) {
	case uint8:
		return Uint8, true
	case int8:
		return Int8, true
	case uint16:
		return Uint16, true
	case int16:
		return Int16, true
	case uint32:
		return Uint32, true
	case int32:
		return Int32, true
	case float32:
		return Float32, true
	case bool:
		return Bool, true
	case string:
		return String, true
	case uint64:
		return Uint64, true
	case int64:
		return Int64, true
	case float64:
		return Float64, true
	}
	return 0, false
}

func sliceKind(value any) (elem Kind, n int, ok bool) {
	switch v := value.(type) {
	case []uint8:
		return Uint8, len(v), true
	case []int8:
		return Int8, len(v), true
	case []uint16:
		return Uint16, len(v), true
	case []int16:
		return Int16, len(v), true
	case []uint32:
		return Uint32, len(v), true
	case []int32:
		return Int32, len(v), true
	case []float32:
		return Float32, len(v), true
	case []bool:
		return Bool, len(v), true
	case []string:
		return String, len(v), true
	case []uint64:
		return Uint64, len(v), true
	case []int64:
		return Int64, len(v), true
	case []float64:
		return Float64, len(v), true
	}
	return 0, 0, false
}
