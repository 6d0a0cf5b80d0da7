package pattern

import (
	"math/bits"
	"sync"
	"unicode"
)

// Category numbers: the general categories of Unicode, with the white space among the controls set apart so that \s is a union of categories too.
const (
	catCn = iota // unassigned
	catCc        // controls that are not white space
	catWs        // controls that are white space: U+0009 to U+000D, U+0085
	catCf
	catCo
	catCs
	catLl
	catLm
	catLo
	catLt
	catLu
	catMc
	catMe
	catMn
	catNd
	catNl
	catNo
	catPc
	catPd
	catPe
	catPf
	catPi
	catPo
	catPs
	catSc
	catSk
	catSm
	catSo
	catZl
	catZp
	catZs
	catCount
)

const (
	maskC   = 1<<catCn | 1<<catCc | 1<<catWs | 1<<catCf | 1<<catCo | 1<<catCs
	maskL   = 1<<catLl | 1<<catLm | 1<<catLo | 1<<catLt | 1<<catLu
	maskM   = 1<<catMc | 1<<catMe | 1<<catMn
	maskN   = 1<<catNd | 1<<catNl | 1<<catNo
	maskP   = 1<<catPc | 1<<catPd | 1<<catPe | 1<<catPf | 1<<catPi | 1<<catPo | 1<<catPs
	maskS   = 1<<catSc | 1<<catSk | 1<<catSm | 1<<catSo
	maskZ   = 1<<catZl | 1<<catZp | 1<<catZs
	maskAll = 1<<catCount - 1

	maskControl = 1<<catCc | 1<<catWs
	maskSpace   = maskZ | 1<<catWs
	maskWord    = maskL | maskM | 1<<catNd | 1<<catNl | 1<<catPc
)

// categoryMasks gives the categories of each name that \p{…} may carry.
var categoryMasks = map[string]uint32{
	"C": maskC, "Cn": 1 << catCn, "Cc": 1<<catCc | 1<<catWs, "Cf": 1 << catCf, "Co": 1 << catCo, "Cs": 1 << catCs,
	"L": maskL, "Ll": 1 << catLl, "Lm": 1 << catLm, "Lo": 1 << catLo, "Lt": 1 << catLt, "Lu": 1 << catLu,
	"L&": 1<<catLl | 1<<catLu | 1<<catLt, "LC": 1<<catLl | 1<<catLu | 1<<catLt,
	"M": maskM, "Mc": 1 << catMc, "Me": 1 << catMe, "Mn": 1 << catMn,
	"N": maskN, "Nd": 1 << catNd, "Nl": 1 << catNl, "No": 1 << catNo,
	"P": maskP, "Pc": 1 << catPc, "Pd": 1 << catPd, "Pe": 1 << catPe, "Pf": 1 << catPf, "Pi": 1 << catPi, "Po": 1 << catPo, "Ps": 1 << catPs,
	"S": maskS, "Sc": 1 << catSc, "Sk": 1 << catSk, "Sm": 1 << catSm, "So": 1 << catSo,
	"Z": maskZ, "Zl": 1 << catZl, "Zp": 1 << catZp, "Zs": 1 << catZs,
}

// categoryTable maps a rune to its category in two steps: a block of 256 runes, then the entry. Equal blocks are stored once.
type categoryTable struct {
	index  [(unicode.MaxRune + 1) >> 8]uint16
	blocks [][256]uint8
}

// categories builds the table on first use: the library's range tables answer one rune at a time too slowly for text.
var categories = sync.OnceValue(func() *categoryTable {
	flat := make([]uint8, unicode.MaxRune+1)
	for name, mask := range categoryMasks {
		table := unicode.Categories[name]
		if table == nil || len(name) != 2 || bits.OnesCount32(mask) != 1 && name != "Cc" {
			continue
		}
		fillCategory(flat, table, uint8(bits.TrailingZeros32(mask)))
	}
	for _, l := range laterCategories {
		for r := l.first; r <= l.last; r++ {
			flat[r] = l.category
		}
	}
	for _, r := range []rune{'\t', '\n', '\v', '\f', '\r', 0x85} {
		flat[r] = catWs
	}
	t := &categoryTable{}
	seen := map[[256]uint8]uint16{}
	for i := range t.index {
		block := [256]uint8(flat[i<<8 : (i+1)<<8])
		n, ok := seen[block]
		if !ok {
			n = uint16(len(t.blocks))
			seen[block] = n
			t.blocks = append(t.blocks, block)
		}
		t.index[i] = n
	}
	return t
})

func fillCategory(flat []uint8, table *unicode.RangeTable, cat uint8) {
	if cat == catCn {
		return // the zero value already says so
	}
	for _, r := range table.R16 {
		for c := uint32(r.Lo); c <= uint32(r.Hi); c += uint32(r.Stride) {
			flat[c] = cat
		}
	}
	for _, r := range table.R32 {
		for c := r.Lo; c <= r.Hi; c += r.Stride {
			flat[c] = cat
		}
	}
}

// bit returns the category of r as a mask of one bit; r outside Unicode counts as unassigned.
func (t *categoryTable) bit(r rune) uint32 {
	if uint32(r) > unicode.MaxRune {
		return 1 << catCn
	}
	return 1 << t.blocks[t.index[r>>8]][r&0xff]
}

// IsSpace reports whether r is white space, as \s does.
func IsSpace(r rune) bool { return categories().bit(r)&maskSpace != 0 }

// wordRanges are what \w has beyond categories: letters among the symbols (Other_Alphabetic outside M) and, outside brackets, an oddity of
// Oniguruma: the Latin-1 numbers that are no digits.
var (
	wordRanges   = []runeRange{{0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}}
	latinNumbers = []runeRange{{0xb2, 0xb3}, {0xb9, 0xb9}, {0xbc, 0xbe}}
)

// wordSet is \w: within brackets, or outside of them.
func wordSet(inside bool) *set {
	if inside {
		return &set{mask: maskWord, ranges: wordRanges}
	}
	return &set{mask: maskWord, ranges: append(latinNumbers[:len(latinNumbers):len(latinNumbers)], wordRanges...)}
}

var word = sync.OnceValue(func() *set { return wordSet(false) })

// IsWord reports whether r is a word character, as \w does.
func IsWord(r rune) bool {
	return categories().bit(r)&maskWord != 0 || r >= 0xb2 && word().has(r)
}

// IsRustWord reports whether r is a word character in Rust's regular expressions: without numbers that are no digits, with the two joiners.
func IsRustWord(r rune) bool {
	return IsWord(r) && categories().bit(r)&(1<<catNo) == 0 || r == 0x200c || r == 0x200d
}

// IsNumber reports whether r is in category N.
func IsNumber(r rune) bool { return categories().bit(r)&maskN != 0 }

// IsPunct reports whether r is ASCII punctuation (symbols among it) or in category P.
func IsPunct(r rune) bool {
	if r < 0x80 {
		return r > ' ' && r < 0x7f && !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
	}
	return categories().bit(r)&maskP != 0
}

// IsNonspacingMark reports whether r is in category Mn.
func IsNonspacingMark(r rune) bool { return categories().bit(r)&(1<<catMn) != 0 }

// IsMark reports whether r is in category M.
func IsMark(r rune) bool { return categories().bit(r)&maskM != 0 }

// IsOther reports whether r is a control, a format character, a surrogate or for private use.
func IsOther(r rune) bool { return categories().bit(r)&(maskC&^(1<<catCn)) != 0 }
