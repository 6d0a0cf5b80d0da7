package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/quant"
)

func TestHalvesToFloat(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		all, dst := make([]uint16, 1<<16), make([]float32, 1<<16)
		for i := range all {
			all[i] = uint16(i)
		}
		F16ToF32(dst, all)
		for i, h := range all {
			want := quant.FromF16(h)
			if math.Float32bits(dst[i]) != math.Float32bits(want) && !(want != want && dst[i] != dst[i]) {
				t.Fatalf("f16 %#x: %v, want %v", h, dst[i], want)
			}
		}
		back := make([]uint16, 1<<16)
		F32ToF16(back, dst)
		for i, h := range all {
			if back[i] != h && !(h&0x7c00 == 0x7c00 && back[i] == h|0x200) {
				t.Fatalf("f16 %#x came back as %#x", h, back[i])
			}
		}
		BF16ToF32(dst, all)
		F32ToBF16(back, dst)
		for i, h := range all {
			if math.Float32bits(dst[i]) != uint32(h)<<16 {
				t.Fatalf("bf16 %#x: %v", h, dst[i])
			}
			if back[i] != h && dst[i] == dst[i] {
				t.Fatalf("bf16 %#x came back as %#x", h, back[i])
			}
		}
	})
}

func TestFloatToF16(t *testing.T) {
	cases := map[float32]uint16{65504: 0x7bff, 65519: 0x7bff, 65520: 0x7bff, 1e30: 0x7bff, -1e30: 0xfbff, -65504: 0xfbff,
		inf(1): 0x7c00, inf(-1): 0xfc00, math.MaxFloat32: 0x7bff, 0: 0, 1: 0x3c00, 1e-10: 0, 6e-8: 1}
	eachTier(t, func(t *testing.T) {
		for f, want := range cases {
			for n := 1; n < 20; n++ {
				src, dst := make([]float32, n), make([]uint16, n)
				for i := range src {
					src[i] = f
				}
				F32ToF16(dst, src)
				for i := range dst {
					if dst[i] != want {
						t.Fatalf("%v (n=%d): %#x, want %#x", f, n, dst[i], want)
					}
				}
			}
		}
		got := make([]uint16, 1)
		if F32ToF16(got, []float32{nan}); got[0]&0x7fff <= 0x7c00 {
			t.Errorf("NaN became %#x", got[0])
		}
	})
}

func TestConvertTails(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		for n := 1; n <= 70; n++ {
			for _, front := range []bool{false, true} {
				f, h, g := guarded[float32](t, n, front), guarded[uint16](t, n, front), guarded[float32](t, n, front)
				random(r, f, 1000)
				F32ToF16(h, f)
				F16ToF32(g, h)
				for i := range f {
					if h[i] != saturate(f[i]) || g[i] != quant.FromF16(h[i]) {
						t.Fatalf("n=%d: %v became %#x, %v", n, f[i], h[i], g[i])
					}
				}
				BF16ToF32(g, h)
				for i := range g {
					if math.Float32bits(g[i]) != uint32(h[i])<<16 {
						t.Fatalf("n=%d: bf16 %#x became %v", n, h[i], g[i])
					}
				}
			}
		}
	})
}
