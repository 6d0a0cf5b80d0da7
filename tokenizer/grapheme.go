package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// graphemeSize is the size of the extended grapheme cluster that text begins with (UAX #29), as far as clusters of few bytes go: of emoji sequences
// and Indic conjuncts, which are longer than anyone here asks, it keeps together what joiners and marks join.
func graphemeSize(text string) int {
	last, size := utf8.DecodeRuneInString(text)
	kind := graphemeKind(last)
	joined := false // a joiner stands behind the last character
	for size < len(text) {
		r, w := utf8.DecodeRuneInString(text[size:])
		next := graphemeKind(r)
		if !graphemeJoins(kind, next, joined) {
			break
		}
		kind, joined = next, r == 0x200d
		size += w
	}
	return size
}

type graphemeClass uint8

const (
	graphemeAny graphemeClass = iota
	graphemeCR
	graphemeLF
	graphemeControl
	graphemeExtend
	graphemeSpacing
	graphemePrepend
	graphemeRegion
	graphemeL
	graphemeV
	graphemeT
	graphemeLV
	graphemeLVT
	graphemePicture
)

func graphemeJoins(a, b graphemeClass, joined bool) bool {
	switch {
	case a == graphemeCR && b == graphemeLF:
		return true
	case a == graphemeCR, a == graphemeLF, a == graphemeControl, b == graphemeCR, b == graphemeLF, b == graphemeControl:
		return false
	case a == graphemeL && (b == graphemeL || b == graphemeV || b == graphemeLV || b == graphemeLVT):
		return true
	case (a == graphemeLV || a == graphemeV) && (b == graphemeV || b == graphemeT):
		return true
	case (a == graphemeLVT || a == graphemeT) && b == graphemeT:
		return true
	case b == graphemeExtend, b == graphemeSpacing, a == graphemePrepend:
		return true
	case joined && b == graphemePicture:
		return true
	case a == graphemeRegion && b == graphemeRegion:
		return true
	}
	return false
}

func graphemeKind(r rune) graphemeClass {
	switch {
	case r == '\r':
		return graphemeCR
	case r == '\n':
		return graphemeLF
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return graphemeControl
	case r < 0x300:
		if r == 0xad {
			return graphemeControl
		}
		return graphemeAny
	case r >= 0x1100 && r <= 0x115f || r >= 0xa960 && r <= 0xa97c:
		return graphemeL
	case r >= 0x1160 && r <= 0x11a7 || r >= 0xd7b0 && r <= 0xd7c6:
		return graphemeV
	case r >= 0x11a8 && r <= 0x11ff || r >= 0xd7cb && r <= 0xd7fb:
		return graphemeT
	case r >= 0xac00 && r <= 0xd7a3:
		if (r-0xac00)%28 == 0 {
			return graphemeLV
		}
		return graphemeLVT
	case r >= 0x1f1e6 && r <= 0x1f1ff:
		return graphemeRegion
	case r == 0x200c || r == 0x200d || r >= 0x1f3fb && r <= 0x1f3ff || unicode.In(r, unicode.Mn, unicode.Me, unicode.Other_Grapheme_Extend):
		return graphemeExtend
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r) || isPrefixLetter(r):
		return graphemePrepend
	case r >= 0xe0000 && r <= 0xe0fff || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Cf):
		return graphemeControl
	case r == 0xe33 || r == 0xeb3 || unicode.Is(unicode.Mc, r) && !notSpacing(r):
		return graphemeSpacing
	case r >= 0x1f000 && r <= 0x1faff || r >= 0x2190 && r <= 0x2bff || r == 0x3030 || r == 0x303d || r == 0x3297 || r == 0x3299:
		return graphemePicture
	}
	return graphemeAny
}

// isPrefixLetter reports letters that join what follows (Indic_Syllabic_Category Consonant_Preceding_Repha and Consonant_Prefixed).
func isPrefixLetter(r rune) bool {
	switch r {
	case 0x0d4e, 0x111c2, 0x111c3, 0x113d1, 0x1193f, 0x11941, 0x11a84, 0x11a85, 0x11a86, 0x11a87, 0x11a88, 0x11a89, 0x11d46, 0x11f02:
		return true
	}
	return false
}

// notSpacing reports spacing marks that do not join what they follow.
func notSpacing(r rune) bool {
	switch r {
	case 0x102b, 0x102c, 0x1038, 0x1062, 0x1063, 0x1064, 0x1067, 0x1068, 0x1069, 0x106a, 0x106b, 0x106c, 0x106d, 0x1083, 0x1087, 0x1088, 0x1089, 0x108a,
		0x108b, 0x108c, 0x108f, 0x109a, 0x109b, 0x109c, 0x1a61, 0x1a63, 0x1a64, 0xaa7b, 0xaa7d, 0x11720, 0x11721:
		return true
	}
	return false
}
