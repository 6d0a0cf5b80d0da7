package vec

import "math"

// The constants of the approximations. The AVX2 generator holds the same ones.
const (
	log2e = 1.44269504088896341
	// ln2 in two parts, the first with few bits, so that n·ln2Hi is exact.
	ln2Hi = 0.693359375
	ln2Lo = -2.12194440e-4
	// Adding and taking away 1.5·2²³ rounds to an integer, ties to even.
	roundMagic = 12582912
	// √(8/π) and its product with 0.044715: the tanh form's argument, doubled.
	geluA = 1.5957691216057308
	geluB = 0.07135481627159886
)

// expPoly is the polynomial of Cephes' expf: eʳ = 1 + r + r²·p(r) for |r| ≤ ln2/2.
var expPoly = [6]float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}

// erfcPoly approximates erfc(z)·exp(z²)/t in t = 1/(1+z/2), lowest power first, to
// 4.3e-8 relative for z ≥ 0 (least maximum error, by Lawson's iteration).
var erfcPoly = [9]float32{0.28208640217781067, 0.2823753356933594, 0.24310365319252014, 0.20268723368644714,
	-0.02662636525928974, 0.2780679166316986, -0.4872002899646759, 0.2845750153064728, -0.059068940579891205}

// tanhPoly approximates tanh(x)/x in x², lowest power first, to 1.4e-8 for |x| < 0.7.
var tanhPoly = [6]float32{1.0, -0.33333131670951843, 0.13328415155410767, -0.05352601408958435, 0.020024459809064865, -0.005088332574814558}

// exp is eˣ to about 1 unit in the last place. NaN stays NaN.
func exp(x float32) float32 {
	if x != x {
		return x
	}
	x = min(max(x, -104), 89)
	n := float32(x*log2e) + roundMagic
	n -= roundMagic
	r := x - float32(n*ln2Hi)
	r -= float32(n * ln2Lo)
	p := expPoly[0]
	for _, c := range expPoly[1:] {
		p = float32(p*r) + c
	}
	y := float32(float32(r*r)*p) + r
	y++
	// Two factors, for 2ⁿ alone may be below or above what float32 can hold.
	h := int32(n) >> 1
	return float32(y*pow2(h)) * pow2(int32(n)-h)
}

func pow2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }

func silu(x, alpha float32) float32 { return x / (1 + exp(-float32(alpha*x))) }

func geluTanh(x float32) float32 {
	u := float32(float32(x*x)*geluB) + geluA
	return x / (1 + exp(-float32(x*u)))
}

// geluErf is x·Φ(x), with Φ from erfc so that the left tail keeps its precision.
func geluErf(x float32) float32 {
	z := float32(math.Float32frombits(math.Float32bits(x)&^(1<<31)) * (1 / math.Sqrt2))
	t := 1 / (1 + float32(0.5*z))
	p := erfcPoly[8]
	for i := 7; i >= 0; i-- {
		p = float32(p*t) + erfcPoly[i]
	}
	e := float32(0.5*float32(p*t)) * exp(-float32(z*z))
	if x >= 0 {
		e = 1 - e
	}
	return x * e
}

func tanh(x float32) float32 {
	a := math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	if a < 0.7 {
		u := float32(x * x)
		p := tanhPoly[5]
		for i := 4; i >= 0; i-- {
			p = float32(p*u) + tanhPoly[i]
		}
		return p * x
	}
	y := 1 - 2/(exp(2*a)+1)
	return float32(math.Copysign(float64(y), float64(x)))
}

func relu(x float32) float32 {
	if x < 0 {
		return 0
	}
	return x
}

// atMost is min(x, limit), NaN where x is.
func atMost(x, limit float32) float32 {
	if x > limit {
		return limit
	}
	return x
}
