package gemm

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/inferflow/inferflow/quant"
)

// Kind is the form that a weight type wants its activations in.
type Kind uint8

const (
	Float Kind = iota // float32 rows as they are
	Int8              // int8 codes with a scale per block of 32 values
)

func (k Kind) String() string { return [...]string{"float", "int8"}[k] }

// KindOf is the kind of activations that weights of type t are multiplied with.
func KindOf(t quant.Type) Kind {
	if f, ok := forms[t]; ok && f.class != classFloat {
		return Int8
	}
	return Float
}

// A record holds 32 activations of kind Int8, x ≈ scale·code, in a cache line.
//
//	 0  int8   code[32]     round to nearest even of x·(127/max|x|)
//	32  float  scale        max|x|/127
//	36  float  scale·Σcode
//	40  int16  sums of codes 0 to 15 whose index mod 4 is {0, 1}, then {2, 3}
//	44  int16  the same of codes 16 to 31
//	48  int32  −128·Σcode of the block, of codes 0 to 15, of codes 16 to 31
//	60  int16  Σcode of codes 0 to 15, of codes 16 to 31
const recordBytes = 64

// spareRows is the number of rows after the last that a kernel may read.
const spareRows = 7

// Acts holds activations of up to maxRows rows, prepared for one kind of
// weights at a time. The buffer is allocated once. Preparing may be split over
// threads by rows; reading is safe for any number of threads afterwards.
type Acts struct {
	buf    []byte
	kind   Kind
	rows   int
	k      int
	stride int // bytes from row to row
}

// NewActs allocates room for maxRows rows of maxK values, of either kind.
func NewActs(maxRows, maxK int) *Acts {
	perRow := max(rowStride(Float, maxK), rowStride(Int8, maxK))
	return &Acts{buf: alignedBytes((maxRows + spareRows) * perRow)}
}

// rowStride is the number of bytes from row to row of k prepared values: an odd
// number of cache lines, so that rows do not fall on the same sets of a cache.
func rowStride(kind Kind, k int) int {
	bytes := 4 * k
	if kind == Int8 {
		bytes = (k + granule - 1) / granule * recordBytes
	}
	return roundUp(bytes, align) | align
}

// Rows is the number of rows prepared last, K the number of values of each,
// Kind their kind.
func (a *Acts) Rows() int { return a.rows }

// K is the number of values of a row.
func (a *Acts) K() int { return a.k }

// Kind is the kind prepared last.
func (a *Acts) Kind() Kind { return a.kind }

// Prepare converts rows [from, to) of the rows in x, row i being
// x[i·stride : i·stride+k], to the given kind. All threads that share the work
// pass the same kind, stride, rows and k; the one whose range holds row 0
// records them. The ranges must cover all rows before a product reads any.
// Int8 needs k to be a multiple of 32. A block with a NaN or an infinity
// becomes NaN as a whole. It panics if the rows do not fit the buffer.
func (a *Acts) Prepare(kind Kind, x []float32, stride, rows, k int, from, to int) {
	rs := rowStride(kind, k)
	if from < 0 || to > rows || (rows+spareRows)*rs > len(a.buf) || kind == Int8 && k%granule != 0 {
		panic("gemm: Prepare: the rows do not fit the activations' buffer, or K is no multiple of 32")
	}
	if from >= to {
		return
	}
	if from == 0 {
		a.kind, a.rows, a.k, a.stride = kind, rows, k, rs
	}
	for m := from; m < to; m++ {
		src, dst := x[m*stride:m*stride+k], a.buf[m*rs:(m+1)*rs]
		if kind == Float {
			copy(float32s(dst), src)
			continue
		}
		prepareInt8(dst, src)
	}
}

// SpareRows is the number of rows that must follow the rows given to Alias.
const SpareRows = spareRows

// Alias makes a read rows rows of k float32 where they lie, one behind the other
// from x[0] on, instead of a copy: x, which must be aligned to 4 bytes only, holds
// SpareRows more rows, whose values do not matter, and stays as it is while a
// is read. It panics if x is too short.
func (a *Acts) Alias(x []float32, rows, k int) {
	if rows < 0 || k < 1 || len(x) < (rows+spareRows)*k {
		panic("gemm: Alias: the rows do not fit the values")
	}
	a.buf = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
	a.kind, a.rows, a.k, a.stride = Float, rows, k, 4*k
}

// Gather makes a hold the given prepared rows of src in that order: the rows of
// one expert. It panics if they do not fit.
func (a *Acts) Gather(src *Acts, rows []int32) {
	rs := src.stride
	if (len(rows)+spareRows)*rs > len(a.buf) {
		panic("gemm: Gather: the rows do not fit the activations' buffer")
	}
	a.kind, a.rows, a.k, a.stride = src.kind, len(rows), src.k, rs
	for i, r := range rows {
		copy(a.buf[i*rs:(i+1)*rs], src.buf[int(r)*rs:(int(r)+1)*rs])
	}
}

// prepareBlockGo writes the record of 32 values: the definition of the codes.
func prepareBlockGo(dst *[recordBytes]byte, x *[granule]float32) {
	var amax uint32
	for _, v := range x {
		amax = max(amax, math.Float32bits(v)&^(1<<31))
	}
	top := math.Float32frombits(amax)
	scale, inv := top/127, float32(0)
	if top >= leastTop {
		inv = 127 / top
	}
	var sums [2][2]int32
	var codes [granule]int32
	if amax >= 0x7f800000 {
		scale = float32(math.NaN())
	} else {
		for i, v := range x {
			codes[i] = roundEven(v * inv)
			sums[i/16][i%4/2] += codes[i]
		}
	}
	for i, c := range codes {
		dst[i] = byte(c)
	}
	total := sums[0][0] + sums[0][1] + sums[1][0] + sums[1][1]
	binary.LittleEndian.PutUint32(dst[32:], math.Float32bits(scale))
	binary.LittleEndian.PutUint32(dst[36:], math.Float32bits(scale*float32(total)))
	for i := range 4 {
		binary.LittleEndian.PutUint16(dst[40+2*i:], uint16(sums[i/2][i%2]))
	}
	binary.LittleEndian.PutUint32(dst[48:], uint32(-128*total))
	for h, s := range sums {
		binary.LittleEndian.PutUint32(dst[52+4*h:], uint32(-128*(s[0]+s[1])))
		binary.LittleEndian.PutUint16(dst[60+2*h:], uint16(s[0]+s[1]))
	}
}

// leastTop is the least maximum of a block that is not taken for zero: below
// it 127/max overflows.
const leastTop = 1e-36

// roundEven rounds a value of magnitude below 2²² to the nearest integer, ties
// to even: adding 1.5·2²³ leaves the integer in the low mantissa bits.
func roundEven(f float32) int32 {
	const magic = 3 << 22
	return int32(math.Float32bits(f+magic)) - int32(math.Float32bits(magic))
}

func prepareInt8Go(dst []byte, src []float32) {
	for len(src) > 0 {
		prepareBlockGo((*[recordBytes]byte)(dst), (*[granule]float32)(src))
		dst, src = dst[recordBytes:], src[granule:]
	}
}

// record gives the parts of the record of block b in a prepared row.
func record(row []byte, b int) (codes *[granule]int8, scale, scaledSum float32, halves [2]int32) {
	r := (*[recordBytes]byte)(row[b*recordBytes:])
	s := func(i int) int32 { return int32(int16(binary.LittleEndian.Uint16(r[i:]))) }
	return (*[granule]int8)(unsafe.Pointer(r)),
		math.Float32frombits(binary.LittleEndian.Uint32(r[32:])),
		math.Float32frombits(binary.LittleEndian.Uint32(r[36:])),
		[2]int32{s(60), s(62)}
}
