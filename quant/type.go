// Package quant holds the block layouts of quantised weights: their names,
// sizes, reference decoding and encoding. It imports nothing of the project.
// Read Type first.
package quant

import (
	"fmt"
	"math"
	"strings"
)

// Type is the storage type of a tensor. The values are ggml's type numbers as
// they stand in GGUF files (github.com/ggml-org/ggml, docs/gguf.md), so that a
// file's number is a Type without a table.
type Type uint32

// The types of ggml by their numbers. Numbers that ggml removed are absent.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
)

// Types that ggml has no number for but other formats store. They never stand
// in a GGUF file: their numbers start above every 16-bit type number.
const (
	U8 Type = 1<<16 + iota
	U16
	U32
	U64
	Bool    // one byte, 0 or 1
	F8_E4M3 // 4 bits of exponent, 3 of mantissa, no infinity
	F8_E5M2
	F8_E8M0     // a power of two, the scale of microscaling blocks
	F8_E4M3FNUZ // no minus zero; it is the NaN
	F8_E5M2FNUZ
	F6_E2M3 // four values in three bytes
	F6_E3M2
	F4_E2M1 // two values a byte
	C64     // two F32 a value; has no decoder
)

// Layout says how a type stores a row: Block consecutive values take Bytes bytes.
type Layout struct {
	Name  string
	Block int // values a block
	Bytes int // bytes a block
}

var layouts = map[Type]Layout{
	F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2}, F64: {"F64", 1, 8},
	I8: {"I8", 1, 1}, I16: {"I16", 1, 2}, I32: {"I32", 1, 4}, I64: {"I64", 1, 8},
	Q4_0: {"Q4_0", 32, 18}, Q4_1: {"Q4_1", 32, 20}, Q5_0: {"Q5_0", 32, 22}, Q5_1: {"Q5_1", 32, 24},
	Q8_0: {"Q8_0", 32, 34}, Q8_1: {"Q8_1", 32, 36},
	Q2_K: {"Q2_K", 256, 84}, Q3_K: {"Q3_K", 256, 110}, Q4_K: {"Q4_K", 256, 144}, Q5_K: {"Q5_K", 256, 176},
	Q6_K: {"Q6_K", 256, 210}, Q8_K: {"Q8_K", 256, 292},
	IQ2_XXS: {"IQ2_XXS", 256, 66}, IQ2_XS: {"IQ2_XS", 256, 74}, IQ3_XXS: {"IQ3_XXS", 256, 98},
	IQ1_S: {"IQ1_S", 256, 50}, IQ4_NL: {"IQ4_NL", 32, 18}, IQ3_S: {"IQ3_S", 256, 110}, IQ2_S: {"IQ2_S", 256, 82},
	IQ4_XS: {"IQ4_XS", 256, 136}, IQ1_M: {"IQ1_M", 256, 56},
	TQ1_0: {"TQ1_0", 256, 54}, TQ2_0: {"TQ2_0", 256, 66}, MXFP4: {"MXFP4", 32, 17},
	NVFP4: {"NVFP4", 64, 36}, Q1_0: {"Q1_0", 128, 18},
	U8: {"U8", 1, 1}, U16: {"U16", 1, 2}, U32: {"U32", 1, 4}, U64: {"U64", 1, 8}, Bool: {"BOOL", 1, 1},
	F8_E4M3: {"F8_E4M3", 1, 1}, F8_E5M2: {"F8_E5M2", 1, 1}, F8_E8M0: {"F8_E8M0", 1, 1},
	F8_E4M3FNUZ: {"F8_E4M3FNUZ", 1, 1}, F8_E5M2FNUZ: {"F8_E5M2FNUZ", 1, 1},
	F6_E2M3: {"F6_E2M3", 4, 3}, F6_E3M2: {"F6_E3M2", 4, 3}, F4_E2M1: {"F4", 2, 1}, C64: {"C64", 1, 8},
}

// GGML reports whether t is one of ggml's own type numbers.
func (t Type) GGML() bool { _, ok := layouts[t]; return ok && t < U8 }

// ParseType finds the type by its name as String writes it, in any case.
func ParseType(name string) (t Type, ok bool) {
	for t, l := range layouts {
		if strings.EqualFold(l.Name, name) {
			return t, true
		}
	}
	return 0, false
}

// Layout returns the layout of t; ok is false for a number that ggml does not define.
func (t Type) Layout() (l Layout, ok bool) { l, ok = layouts[t]; return }

// String is ggml's name of the type, such as "Q4_K".
func (t Type) String() string {
	if l, ok := layouts[t]; ok {
		return l.Name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// RowBytes is the number of bytes of a row of n values. ok is false when the
// type is unknown, n is not a multiple of its block, or the result is no int.
func (t Type) RowBytes(n int) (bytes int, ok bool) {
	l, ok := layouts[t]
	if !ok || n < 0 || n%l.Block != 0 {
		return 0, false
	}
	if n/l.Block > math.MaxInt/l.Bytes {
		return 0, false
	}
	return n / l.Block * l.Bytes, true
}
