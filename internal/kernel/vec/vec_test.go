package vec

import (
	"math"
	"math/rand/v2"
	"testing"
)

func inf(sign int) float32 { return float32(math.Inf(sign)) }

var nan = float32(math.NaN())

// op is a kernel of one, two or three inputs with its meaning in float64.
type op struct {
	name string
	run  func(dst, a, b, c []float32)
	want func(a, b, c float64) float64
	rel  float64 // allowed error, relative to the result
	abs  float64 // and absolute
}

func sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func gelu64(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }

func geluTanh64(x float64) float64 { return x * sigmoid64(2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)) }

// The absolute parts cover far tails, where rounding the argument of exp shows.
var ops = []op{
	{"add", func(d, a, b, _ []float32) { Add(d, a, b) }, func(a, b, _ float64) float64 { return a + b }, 6e-8, 0},
	{"sub", func(d, a, b, _ []float32) { Sub(d, a, b) }, func(a, b, _ float64) float64 { return a - b }, 6e-8, 0},
	{"mul", func(d, a, b, _ []float32) { Mul(d, a, b) }, func(a, b, _ float64) float64 { return a * b }, 6e-8, 0},
	{"div", func(d, a, b, _ []float32) { Div(d, a, b) }, func(a, b, _ float64) float64 { return a / b }, 6e-8, 0},
	{"sigmoidMul", func(d, a, b, _ []float32) { SigmoidMul(d, a, b) }, func(a, b, _ float64) float64 { return sigmoid64(a) * b }, 3e-7, 0},
	{"geluQuick", func(d, a, _, _ []float32) { GELUQuick(d, a) },
		func(a, _, _ float64) float64 { return a * sigmoid64(float64(float32(1.702))*a) }, 4e-7, 1e-9},
	{"scale", func(d, a, _, _ []float32) { Scale(d, a, 0.3) }, func(a, _, _ float64) float64 { return a * float64(float32(0.3)) }, 6e-8, 0},
	{"axpy", func(d, a, b, _ []float32) { copy(d, a); AXPY(d, 0.3, b) },
		func(a, b, _ float64) float64 { return a + float64(float32(0.3))*b }, 6e-8, 1e-6},
	{"exp", func(d, a, _, _ []float32) { Exp(d, a) }, func(a, _, _ float64) float64 { return math.Exp(a) }, 1.5e-7, 0},
	{"sigmoid", func(d, a, _, _ []float32) { Sigmoid(d, a) }, func(a, _, _ float64) float64 { return sigmoid64(a) }, 2.5e-7, 0},
	{"tanh", func(d, a, _, _ []float32) { Tanh(d, a) }, func(a, _, _ float64) float64 { return math.Tanh(a) }, 2.5e-7, 0},
	{"softcap", func(d, a, _, _ []float32) { Softcap(d, a, 3) }, func(a, _, _ float64) float64 { return 3 * math.Tanh(a/3) }, 3e-7, 0},
	{"silu", func(d, a, _, _ []float32) { SiLU(d, a) }, func(a, _, _ float64) float64 { return a * sigmoid64(a) }, 3e-7, 0},
	{"siluMul", func(d, a, b, _ []float32) { SiLUMul(d, a, b) }, func(a, b, _ float64) float64 { return a * sigmoid64(a) * b }, 4e-7, 0},
	{"geluTanh", func(d, a, _, _ []float32) { GELUTanh(d, a) }, func(a, _, _ float64) float64 { return geluTanh64(a) }, 3e-7, 1e-7},
	{"geluTanhMul", func(d, a, b, _ []float32) { GELUTanhMul(d, a, b) }, func(a, b, _ float64) float64 { return geluTanh64(a) * b }, 4e-7, 1e-7},
	{"geluErf", func(d, a, _, _ []float32) { GELUErf(d, a) }, func(a, _, _ float64) float64 { return gelu64(a) }, 3e-7, 2e-7},
	{"geluErfMul", func(d, a, b, _ []float32) { GELUErfMul(d, a, b) }, func(a, b, _ float64) float64 { return gelu64(a) * b }, 4e-7, 1e-6},
	{"clampedSwiGLU", func(d, a, b, _ []float32) { ClampedSwiGLU(d, a, b, 1.702, 7) }, func(a, b, _ float64) float64 {
		a, b = min(a, 7), max(-7, min(b, 7))
		return a * sigmoid64(float64(float32(1.702))*a) * (b + 1)
	}, 4e-7, 1e-9},
	{"relu", func(d, a, _, _ []float32) { ReLU(d, a) }, func(a, _, _ float64) float64 { return max(a, 0) }, 0, 0},
	{"relu2", func(d, a, _, _ []float32) { ReLU2(d, a) }, func(a, _, _ float64) float64 { return max(a, 0) * max(a, 0) }, 6e-8, 0},
}

func random(r *rand.Rand, x []float32, scale float64) {
	for i := range x {
		x[i] = float32(r.NormFloat64() * scale)
	}
}

// near tells whether got is want within rel and abs; NaN is near NaN, and values
// below float32's normal numbers are near 0.
func near(got float32, want, rel, abs float64) bool {
	g := float64(got)
	if math.IsNaN(want) || math.IsInf(want, 0) {
		return math.IsNaN(g) == math.IsNaN(want) && (math.IsNaN(g) || g == want)
	}
	return math.Abs(g-want) <= rel*math.Abs(want)+abs+1.2e-38
}

func TestElementwise(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, o := range ops {
			t.Run(o.name, func(t *testing.T) { testElementwise(t, o) })
		}
	})
}

func testElementwise(t *testing.T, o op) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 70; n++ {
		front := n%2 == 0
		a, b, dst := guarded[float32](t, n, front), guarded[float32](t, n, front), guarded[float32](t, n, front)
		random(r, a, []float64{0.01, 1, 5, 20}[n%4])
		random(r, b, 2)
		o.run(dst, a, b, nil)
		for i := range dst {
			want := o.want(float64(a[i]), float64(b[i]), 0)
			if !near(dst[i], want, o.rel, o.abs) {
				t.Fatalf("n=%d: f(%v, %v) = %v, want %v (relative error %.2g)", n, a[i], b[i], dst[i], want,
					math.Abs(float64(dst[i])-want)/math.Abs(want))
			}
		}
		in := append([]float32(nil), a...)
		o.run(in, in, b, nil)
		for i := range in {
			if math.Float32bits(in[i]) != math.Float32bits(dst[i]) {
				t.Fatalf("n=%d: in place, element %d is %v, not %v", n, i, in[i], dst[i])
			}
		}
	}
	o.run(nil, nil, nil, nil)
}

// TestPlace shows that an element's bits do not depend on where in a vector it lies.
func TestPlace(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		a, b := make([]float32, 70), make([]float32, 70)
		random(r, a, 3)
		random(r, b, 3)
		for _, o := range ops {
			whole := make([]float32, len(a))
			o.run(whole, a, b, nil)
			for cut := 1; cut < len(a); cut++ {
				parts := make([]float32, len(a))
				o.run(parts[:cut], a[:cut], b[:cut], nil)
				o.run(parts[cut:], a[cut:], b[cut:], nil)
				for i := range parts {
					if math.Float32bits(parts[i]) != math.Float32bits(whole[i]) {
						t.Fatalf("%s cut at %d: element %d is %v, not %v", o.name, cut, i, parts[i], whole[i])
					}
				}
			}
		}
	})
}

func TestSpecialValues(t *testing.T) {
	big := float32(math.MaxFloat32)
	in := []float32{0, inf(1), inf(-1), nan, big, -big, 88.72, 89, 88.73, -87, -88, -103, -104, 100, -100, 1e-40, 1e-20, 0.7, -0.7, 5, -6}
	one := make([]float32, len(in))
	for i := range one {
		one[i] = 1
	}
	want := map[string]func(x float64) float64{
		"exp": math.Exp, "sigmoid": sigmoid64, "tanh": math.Tanh,
		"relu":    func(x float64) float64 { return max(x, 0) },
		"softcap": func(x float64) float64 { return 3 * math.Tanh(x/3) },
	}
	eachTier(t, func(t *testing.T) {
		for _, o := range ops {
			dst := make([]float32, len(in))
			o.run(dst, in, one, nil)
			if dst[3] == dst[3] {
				t.Errorf("%s of NaN is %v", o.name, dst[3])
			}
			f := want[o.name]
			for i, x := range in {
				if f != nil {
					w := float64(float32(f(float64(x))))
					if !near(dst[i], w, 3e-7, 0) {
						t.Errorf("%s(%v) = %v, want %v", o.name, x, dst[i], w)
					}
				}
			}
			for _, i := range []int{13, 14} { // ±100 must be finite
				if o.name != "exp" && (dst[i] != dst[i] || math.IsInf(float64(dst[i]), 0)) {
					t.Errorf("%s(%v) = %v", o.name, in[i], dst[i])
				}
			}
		}
	})
}

func TestNorms(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for n := 1; n <= 300; n++ {
			if n > 70 && n%37 != 0 {
				continue
			}
			x, w, b, dst := guarded[float32](t, n, false), guarded[float32](t, n, false), guarded[float32](t, n, false), guarded[float32](t, n, false)
			random(r, x, 2)
			random(r, w, 1)
			random(r, b, 1)
			var s, s2 float64
			for _, v := range x {
				s += float64(v)
				s2 += float64(v) * float64(v)
			}
			mean := s / float64(n)
			rms := math.Sqrt(s2/float64(n) + 1e-5)
			std := math.Sqrt(max(0, s2/float64(n)-mean*mean) + 1e-5)
			check := func(name string, f func(i int) float64) {
				for i := range dst {
					if !near(dst[i], f(i), 2e-6, 2e-5) {
						t.Fatalf("%s n=%d: element %d is %v, want %v", name, n, i, dst[i], f(i))
					}
				}
			}
			RMSNorm(dst, x, w, 1e-5, 1)
			check("rms offset", func(i int) float64 { return float64(x[i]) / rms * (1 + float64(w[i])) })
			RMSNorm(dst, x, nil, 1e-5, 1)
			check("rms nil", func(i int) float64 { return float64(x[i]) / rms })
			LayerNorm(dst, x, w, b, 1e-5)
			check("layer", func(i int) float64 { return (float64(x[i])-mean)/std*float64(w[i]) + float64(b[i]) })
			LayerNorm(dst, x, nil, nil, 1e-5)
			check("layer nil", func(i int) float64 { return (float64(x[i]) - mean) / std })
			var dot float64
			for i := range x {
				dot += float64(x[i]) * float64(w[i])
			}
			if got := Dot(x, w); !near(got, dot, 1e-6, 1e-4) {
				t.Fatalf("dot n=%d: %v, want %v", n, got, dot)
			}
			if got := Sum(x); !near(got, s, 1e-6, 1e-4) {
				t.Fatalf("sum n=%d: %v, want %v", n, got, s)
			}
			if got := SumSquares(x); !near(got, s2, 1e-6, 0) {
				t.Fatalf("squares n=%d: %v, want %v", n, got, s2)
			}
		}
		RMSNorm(nil, nil, nil, 1, 0)
		LayerNorm(nil, nil, nil, nil, 1)
		if Sum(nil) != 0 || Dot(nil, nil) != 0 {
			t.Error("sums of nothing")
		}
	})
}

func TestSoftmax(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for n := 1; n <= 1000; n++ {
			if n > 70 && n%101 != 0 {
				continue
			}
			x, dst := guarded[float32](t, n, false), guarded[float32](t, n, false)
			random(r, x, 5)
			if n > 3 {
				x[n/2] = inf(-1)
			}
			m, s := math.Inf(-1), 0.0
			for _, v := range x {
				m = max(m, float64(v))
			}
			for _, v := range x {
				s += math.Exp(float64(v) - m)
			}
			Softmax(dst, x)
			for i, v := range x {
				if !near(dst[i], math.Exp(float64(v)-m)/s, 1.5e-6, 1e-9) {
					t.Fatalf("n=%d: element %d is %v, want %v", n, i, dst[i], math.Exp(float64(v)-m)/s)
				}
			}
			if n > 3 && dst[n/2] != 0 {
				t.Fatalf("n=%d: a masked entry is %v", n, dst[n/2])
			}
			if n > 1 {
				x[n/3] = nan
				Softmax(dst, x)
				if dst[n-1] == dst[n-1] || dst[0] == dst[0] {
					t.Fatalf("n=%d: a NaN was lost", n)
				}
			}
			for i := range x {
				x[i] = inf(-1)
			}
			Softmax(dst, x)
			for i := range dst {
				if dst[i] != 0 {
					t.Fatalf("n=%d: all masked: %v", n, dst[i])
				}
			}
		}
	})
}

func TestMaxIndex(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for n := 1; n <= 70; n++ {
			x := guarded[float32](t, n, n%2 == 0)
			for i := range n {
				for j := range x {
					x[j] = -float32(j%5) - 3
				}
				x[i] = -1
				if i+3 < n {
					x[i+3] = -1 // a tie: the lowest wins
				}
				if got, ok := MaxIndex(x); got != i || !ok {
					t.Fatalf("n=%d: %d, %v; want %d", n, got, ok, i)
				}
				x[i] = inf(-1)
				if got := Max(x); n > 1 && (got != got || math.IsInf(float64(got), 0)) {
					t.Fatalf("n=%d: max %v", n, got)
				}
				for _, v := range []float32{nan, inf(1)} {
					x[i] = v
					if got, ok := MaxIndex(x); got != 0 || ok {
						t.Fatalf("n=%d, %v at %d: %d, %v", n, v, i, got, ok)
					}
				}
			}
		}
		if i, ok := MaxIndex(nil); i != -1 || ok {
			t.Errorf("of nothing: %d, %v", i, ok)
		}
		if i, ok := MaxIndex([]float32{inf(-1), inf(-1)}); i != 0 || ok {
			t.Errorf("of -Inf: %d, %v", i, ok)
		}
		if i, ok := MaxIndex([]float32{inf(-1), 0, 0}); i != 1 || !ok {
			t.Errorf("with -Inf: %d, %v", i, ok)
		}
	})
}

func TestRope(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		for h := 1; h <= 70; h++ {
			x, cos, sin := guarded[float32](t, 2*h, h%2 == 0), guarded[float32](t, h, h%2 == 0), guarded[float32](t, h, h%2 == 0)
			for _, pairs := range []bool{false, true} {
				random(r, x, 1)
				for i := range cos {
					s, c := math.Sincos(r.Float64() * 7)
					sin[i], cos[i] = float32(s), float32(c)
				}
				was := append([]float32(nil), x...)
				at := func(i int) (int, int) { return i, i + h }
				if pairs {
					at = func(i int) (int, int) { return 2 * i, 2*i + 1 }
					RopeInterleaved(x, cos, sin)
				} else {
					RopeHalf(x, cos, sin)
				}
				for i := range h {
					a, b := at(i)
					u, v, c, s := float64(was[a]), float64(was[b]), float64(cos[i]), float64(sin[i])
					if !near(x[a], u*c-v*s, 1e-7, 3e-7) || !near(x[b], v*c+u*s, 1e-7, 3e-7) {
						t.Fatalf("h=%d pairs=%v: pair %d is %v, %v; want %v, %v", h, pairs, i, x[a], x[b], u*c-v*s, v*c+u*s)
					}
				}
			}
		}
		RopeHalf(nil, nil, nil)
		RopeInterleaved(nil, nil, nil)
	})
}

func TestAllocs(t *testing.T) {
	a, b, c := make([]float32, 100), make([]float32, 100), make([]float32, 100)
	h := make([]uint16, 100)
	n := testing.AllocsPerRun(10, func() {
		for i := range ops {
			ops[i].run(a, b, c, nil)
		}
		RMSNorm(a, b, c, 1e-5, 0)
		LayerNorm(a, b, c, c, 1e-5)
		Softmax(a, b)
		MaxIndex(b)
		RopeHalf(a, b[:50], c[:50])
		F32ToF16(h, a)
		F16ToF32(a, h)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzFastAgainstPlain(f *testing.F) {
	f.Add(uint64(1), uint16(33), 3.0)
	f.Add(uint64(2), uint16(7), 100.0)
	f.Add(uint64(3), uint16(64), 1e-30)
	f.Fuzz(func(t *testing.T, seed uint64, size uint16, scale float64) {
		n := int(size)%300 + 1
		r := rand.New(rand.NewPCG(seed, 0))
		a, b := make([]float32, n), make([]float32, n)
		random(r, a, scale)
		random(r, b, 1)
		if n > 5 {
			a[r.IntN(n)], a[r.IntN(n)], a[r.IntN(n)] = nan, inf(1), inf(-1)
		}
		fast, slow := make([]float32, n), make([]float32, n)
		for _, o := range ops {
			o.run(fast, a, b, nil)
			plainly(func() { o.run(slow, a, b, nil) })
			for i := range fast {
				if math.IsNaN(o.want(float64(a[i]), float64(b[i]), 0)) || math.Abs(float64(a[i])) > 1e30 {
					continue // 0·∞ and overflow may be told in either way
				}
				if !near(fast[i], float64(slow[i]), 2*o.rel+4e-7, 2*o.abs+1e-37) {
					t.Fatalf("%s(%v, %v) = %v, plain %v", o.name, a[i], b[i], fast[i], slow[i])
				}
			}
		}
	})
}

func BenchmarkOps(b *testing.B) {
	x, y, d := make([]float32, 4096), make([]float32, 4096), make([]float32, 4096)
	random(rand.New(rand.NewPCG(1, 1)), x, 2)
	copy(y, x)
	for _, o := range ops {
		b.Run(o.name, func(b *testing.B) {
			b.SetBytes(4096 * 4)
			for b.Loop() {
				o.run(d, x, y, nil)
			}
		})
	}
	b.Run("rms", func(b *testing.B) {
		b.SetBytes(4096 * 4)
		for b.Loop() {
			RMSNorm(d, x, y, 1e-5, 0)
		}
	})
	b.Run("softmax", func(b *testing.B) {
		b.SetBytes(4096 * 4)
		for b.Loop() {
			Softmax(d, x)
		}
	})
	b.Run("max", func(b *testing.B) {
		b.SetBytes(4096 * 4)
		for b.Loop() {
			MaxIndex(x)
		}
	})
}

// TestFused holds the kernels that do several things at once against their
// parts, in bits.
func TestFused(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{0, 1, 7, 8, 9, 64, 100} {
		v := make([][]float32, 5)
		for i := range v {
			v[i] = make([]float32, n)
			for k := range v[i] {
				v[i][k] = float32(3 * rng.NormFloat64())
			}
		}
		got, want := v[3], v[4]
		check := func(what string) {
			t.Helper()
			for k := range want {
				if math.Float32bits(got[k]) != math.Float32bits(want[k]) {
					t.Errorf("%s of %d: value %d is %g, its parts give %g", what, n, k, got[k], want[k])
				}
			}
		}
		AddAdd(got, v[0], v[1], v[2])
		Add(want, v[0], v[1])
		Add(want, want, v[2])
		check("AddAdd")
		GELUErfAdd(got, v[0], v[1])
		Add(want, v[0], v[1])
		GELUErf(want, want)
		check("GELUErfAdd")
		LayerNorm(got, v[0], v[1], v[2], 1e-5)
		LayerNorm(want, v[0], nil, nil, 1e-5)
		Mul(want, want, v[1])
		Add(want, want, v[2])
		check("LayerNorm")
	}
}
