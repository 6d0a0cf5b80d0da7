//go:build !noasm

package attn

import "github.com/inferflow/inferflow/internal/sys"

//go:generate go -C ../_gen run ./attn ../attn

func haveAVX2() bool { return sys.CPUTier() >= sys.AVX2 }

// scoresFast computes n rows of q against a tile in its own type.
func scoresFast(t Elem, logits, q []float32, qStride int, tile []byte, dk, n int) {
	switch t {
	case F16:
		scoresF16AVX2(&logits[0], &q[0], qStride, &halves(tile)[0], dk, n)
	case BF16:
		scoresBF16AVX2(&logits[0], &q[0], qStride, &halves(tile)[0], dk, n)
	default:
		scoresF32AVX2(&logits[0], &q[0], qStride, &floats(tile)[0], dk, n)
	}
}

// weighFast adds the first keys rows of v, values in their own type.
func weighFast(t Elem, acc []float32, stride int, p, alpha []float32, v []byte, dv, keys, n int) {
	switch t {
	case F16:
		weighF16AVX2(&acc[0], stride, &p[0], &alpha[0], &halves(v)[0], dv, dv, keys, n)
	case BF16:
		weighBF16AVX2(&acc[0], stride, &p[0], &alpha[0], &halves(v)[0], dv, dv, keys, n)
	default:
		weighF32AVX2(&acc[0], stride, &p[0], &alpha[0], &floats(v)[0], dv, dv, keys, n)
	}
}

// turnFast stores n keys, a multiple of 8, of dk components, another, as columns of a tile.
func turnFast(tile, k []float32, stride, dk, n int) {
	turnF32AVX2(&tile[0], &k[0], stride, dk, n)
}

// finishFast divides rows of dv values, a multiple of 8, by their sums l.
func finishFast(out []float32, outStride int, acc []float32, stride int, l []float32, dv int) {
	finishAVX2(&out[0], outStride, &acc[0], stride, &l[0], dv, len(l))
}
