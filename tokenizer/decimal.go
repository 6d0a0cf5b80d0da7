package tokenizer

import (
	"math"
	"strconv"
)

// maxTens is the largest power of ten that a double holds.
const maxTens = 308

// decimal reads a number of a JSON file as the reference does (serde_json without float_roundtrip): digits are gathered in 64 bits, those that do not fit are
// dropped, and the whole is multiplied or divided by a power of ten once. That may be off by the last bit, which decides between ways of a unigram model
// whose scores add up to the same. ok is false where the number is none or is not finite.
func decimal(s string) (v float64, ok bool) {
	if f, err := strconv.ParseFloat(s, 64); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, false
	}
	negative := s[0] == '-'
	if negative {
		s = s[1:]
	}
	digits, power, i, full := uint64(0), 0, 0, false
	for fraction := false; i < len(s) && s[i] != 'e' && s[i] != 'E'; i++ {
		d := uint64(s[i] - '0')
		switch {
		case s[i] == '.':
			fraction = true
			continue
		case full || digits > (math.MaxUint64-d)/10:
			full = true
			if !fraction {
				power++
			}
			continue
		}
		digits = 10*digits + d
		if fraction {
			power--
		}
	}
	if i < len(s) {
		n, err := strconv.Atoi(s[i+1:])
		if err != nil { // it is finite, so only an endless negative exponent or a zero is left
			n = -4 * maxTens
		}
		power = min(max(power+n, -4*maxTens), 4*maxTens)
	}
	v = scaled(float64(digits), power)
	if negative {
		v = -v
	}
	return v, !math.IsInf(v, 0)
}

// scaled is v times ten to the power.
func scaled(v float64, power int) float64 {
	for v != 0 && power < -maxTens {
		v, power = v/1e308, power+maxTens
	}
	switch {
	case v == 0:
		return v
	case power >= 0:
		return v * math.Pow10(power)
	}
	return v / math.Pow10(-power)
}
