package tokenizer

import (
	"encoding/binary"
	"fmt"
	"math"
)

// protoField is one field of a protocol buffer message: a number, or bytes.
type protoField struct {
	num  uint64
	wire uint64
	n    uint64 // varint, or the bits of a fixed number
	data []byte // strings, bytes and messages
}

func (f protoField) flag() bool       { return f.n != 0 }
func (f protoField) int32() int32     { return int32(f.n) }
func (f protoField) float32() float32 { return math.Float32frombits(uint32(f.n)) }

// protoFields yields the fields of a message in order. Nothing is copied; data points into b.
func protoFields(b []byte, yield func(protoField) error) error {
	for pos := 0; pos < len(b); {
		f, n := protoNext(b[pos:])
		if n <= 0 {
			return fmt.Errorf("%w: no protocol buffer message at byte %d of %d", ErrInvalid, pos, len(b))
		}
		pos += n
		if err := yield(f); err != nil {
			return err
		}
	}
	return nil
}

// protoNext reads one field and returns its size, 0 where there is none.
func protoNext(b []byte) (f protoField, size int) {
	tag, pos := binary.Uvarint(b)
	if pos <= 0 {
		return f, 0
	}
	f.num, f.wire = tag>>3, tag&7
	if f.num == 0 {
		return f, 0
	}
	rest := b[pos:]
	switch f.wire {
	case 0:
		n := 0
		if f.n, n = binary.Uvarint(rest); n <= 0 {
			return f, 0
		}
		return f, pos + n
	case 1:
		if len(rest) < 8 {
			return f, 0
		}
		f.n = binary.LittleEndian.Uint64(rest)
		return f, pos + 8
	case 2:
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return f, 0
		}
		f.data = rest[n : n+int(length)]
		return f, pos + n + int(length)
	case 5:
		if len(rest) < 4 {
			return f, 0
		}
		f.n = uint64(binary.LittleEndian.Uint32(rest))
		return f, pos + 4
	}
	return f, 0 // groups are not used
}
