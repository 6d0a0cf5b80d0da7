package main

// The layout of package gemm (layout.go, acts.go, mul.go there).
const (
	unit        = 64
	recordBytes = 64
	recScale    = 32
	recSum      = 36
	recHalf     = 40 // pair sums: two dwords, one a half
	recBias     = 48 // −128·Σ of the block, then of both halves
	recPair     = 60 // Σ of both halves as words

	argPlane     = 0
	argActs      = 32
	argActStride = 40
	argDst       = 48
	argDstStride = 56
	argN         = 64
	argTiles     = 72
	argSlice     = 80
	argWork      = 88
	argPanel     = 96
	argAhead     = 104 // of the last panel; others have the next one ahead
	argOut       = 112
	argOutStride = 120
	argRes       = 128
	argResStride = 136
	argBias      = 144
	argNext      = 152
	argSecond    = 160

	// A block of an unpacked slice.
	sliceBytes  = 1344
	sliceCodes  = 0    // [group][16][4] codes
	sliceAbs    = 512  // magnitudes of signed codes
	sliceScale  = 1024 // float [16]
	sliceMin    = 1088 // float [16]
	sliceSub    = 1152 // int16 [half][16][2]
	sliceSubMin = 1280 // int16 [16][half]

	workAcc   = 0    // [8 rows][16] float sums
	workPart  = 512  // [8 rows][16] integer sums of half a block
	workSuper = 1024 // float d[16], dmin[16]
	workOut   = 0    // pointers of the wide float kernels
	workRes   = 8
)

// class is how integer products become floats; see package gemm.
type class int

const (
	classOffset class = iota
	classMin
	classSub
	classSubMin
)

type scaleForm int

const (
	scaleF16 scaleForm = iota
	scaleMin
	scaleE8M0
	scaleI8
	scaleU8Min
	scaleHalves
	scaleNibble
)

var scaleBytes = [...]int{32, 64, 16, 16, 32, 32, 32}

// form describes a weight type.
type form struct {
	name   string
	class  class
	bits   [2]int
	offset int
	scale  scaleForm
	super  int
	table  string // of signed values, looked up by 4-bit codes
}

// signed reports whether the values fill a signed byte, so that products of
// pairs only fit 16 bits by magnitude and sign.
func (f form) signed() bool { return f.offset == 128 }

// wideSum reports whether a block of unsigned codes overflows 16 bits, so that
// its halves are widened apart.
func (f form) wideSum() bool { return f.class == classMin && f.bits[1] == 1 }

var types = []form{
	{name: "Q40", class: classOffset, bits: [2]int{4, 0}, offset: 8, scale: scaleF16},
	{name: "Q50", class: classOffset, bits: [2]int{4, 1}, offset: 16, scale: scaleF16},
	{name: "Q80", class: classOffset, bits: [2]int{8, 0}, offset: 128, scale: scaleF16},
	{name: "IQ4NL", class: classOffset, bits: [2]int{4, 0}, offset: 128, scale: scaleF16, table: "iq4"},
	{name: "IQ4XS", class: classOffset, bits: [2]int{4, 0}, offset: 128, scale: scaleI8, super: 32, table: "iq4"},
	{name: "MXFP4", class: classOffset, bits: [2]int{4, 0}, offset: 12, scale: scaleE8M0, table: "mxfp4"},
	{name: "Q41", class: classMin, bits: [2]int{4, 0}, scale: scaleMin},
	{name: "Q51", class: classMin, bits: [2]int{4, 1}, scale: scaleMin},
	{name: "Q4K", class: classMin, bits: [2]int{4, 0}, scale: scaleU8Min, super: 64},
	{name: "Q5K", class: classMin, bits: [2]int{4, 1}, scale: scaleU8Min, super: 64},
	{name: "Q3K", class: classSub, bits: [2]int{2, 1}, offset: 4, scale: scaleHalves, super: 32},
	{name: "Q6K", class: classSub, bits: [2]int{4, 2}, offset: 32, scale: scaleHalves, super: 32},
	{name: "Q2K", class: classSubMin, bits: [2]int{2, 0}, scale: scaleNibble, super: 64},
}

// iq4Values and mxfp4Values are the levels of the table types; MXFP4's carry
// the offset 12 where codes are unsigned.
var (
	iq4Values   = [16]int{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	mxfp4Values = [16]int{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)
