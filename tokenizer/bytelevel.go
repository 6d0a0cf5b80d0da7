package tokenizer

import (
	"unicode/utf8"
)

// The byte alphabet (Radford et al. 2019) writes each byte as one printable rune: printable Latin-1 as itself, the other 68 bytes as U+0100 and on, in order.
var (
	byteRunes [256]rune  // byte → rune
	runeBytes [0x144]int // rune → byte, -1 where the rune is not of the alphabet
)

var _ = fillByteAlphabet()

func fillByteAlphabet() struct{} {
	for i := range runeBytes {
		runeBytes[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) {
			r = next
			next++
		}
		byteRunes[b] = r
		runeBytes[r] = b
	}
	return struct{}{}
}

// toByteLevel appends text written in the byte alphabet to dst.
func toByteLevel(dst []byte, text string) []byte {
	for i := range len(text) {
		dst = utf8.AppendRune(dst, byteRunes[text[i]])
	}
	return dst
}

// fromByteLevel appends the bytes that text spells in the byte alphabet to dst, or reports that a rune of it is not of the alphabet.
func fromByteLevel(dst []byte, text string) ([]byte, bool) {
	for i := 0; i < len(text); {
		r, w := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, w = utf8.DecodeRuneInString(text[i:])
		}
		if int(r) >= len(runeBytes) || runeBytes[r] < 0 {
			return dst, false
		}
		dst = append(dst, byte(runeBytes[r]))
		i += w
	}
	return dst, true
}
