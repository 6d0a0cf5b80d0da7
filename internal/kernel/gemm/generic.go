package gemm

// The plain Go kernels: the meaning of the assembly, up to the rounding of
// products, and what runs where there is none.

// intPanelGo computes rows [from, to) of panel p for the integer classes.
func (w *Matrix) intPanelGo(dst []float32, stride int, a *Acts, from, to, p int, s *Scratch) {
	pl := w.planes(p)
	for b := 0; b < w.blocks; b += sliceBlocks {
		end := min(b+sliceBlocks, w.blocks)
		w.unpackGo(s, &pl, b, end)
		for m := from; m < to; m++ {
			acc := (*[panelRows]float32)(dst[(m-from)*stride:])
			if b == 0 {
				*acc = [panelRows]float32{}
			}
			row := a.buf[m*a.stride+b*recordBytes : (m+1)*a.stride]
			for i := range end - b {
				w.addBlockGo(acc, row, i, &s.slice[i])
			}
		}
	}
}

// addBlockGo adds an unpacked block, times block i of a prepared row, to the 16
// sums.
func (w *Matrix) addBlockGo(acc *[panelRows]float32, row []byte, i int, u *wideBlock) {
	x, sx, sum, halves := record(row, i)
	offset := int32(w.form.offset)
	for r := range acc {
		h0 := dotGo(u.codes[4*r:], (*[16]int8)(x[:16])) - offset*halves[0]
		h1 := dotGo(u.codes[4*unit+4*r:], (*[16]int8)(x[16:])) - offset*halves[1]
		switch w.form.class {
		case classOffset:
			acc[r] += float32(float32(u.scale[r]*sx) * float32(h0+h1))
		case classMin:
			acc[r] += float32(float32(u.scale[r]*sx) * float32(h0+h1))
			acc[r] += float32(u.min[r] * sum)
		case classSub, classSubMin:
			if w.form.class == classSubMin {
				msum := halves[0]*int32(u.submin[r][0]) + halves[1]*int32(u.submin[r][1])
				acc[r] -= float32(float32(u.min[r]*sx) * float32(msum))
			}
			isum := h0*int32(u.sub[0][r][0]) + h1*int32(u.sub[1][r][0])
			acc[r] += float32(float32(u.scale[r]*sx) * float32(isum))
		}
	}
}

// dotGo is the product of 16 activations with the codes of one row: 4 of each
// of 4 units.
func dotGo(codes []byte, x *[16]int8) (sum int32) {
	_ = codes[3*unit+3]
	for g := range 4 {
		c := (*[4]byte)(codes[g*unit:])
		sum += int32(c[0])*int32(x[4*g]) + int32(c[1])*int32(x[4*g+1]) +
			int32(c[2])*int32(x[4*g+2]) + int32(c[3])*int32(x[4*g+3])
	}
	return sum
}

// floatPanelGo computes rows [from, to) of panel p for float weights.
func (w *Matrix) floatPanelGo(dst []float32, stride int, a *Acts, from, to, p int) {
	var seg [panelRows][segment]float32
	for k := 0; k < w.k; k += segment {
		n := min(segment, w.k-k)
		for r := range seg {
			w.decodeFloats(seg[r][:n], p, r, k)
		}
		for m := from; m < to; m++ {
			acc := (*[panelRows]float32)(dst[(m-from)*stride:])
			if k == 0 {
				*acc = [panelRows]float32{}
			}
			x := float32s(a.buf[m*a.stride:])[k : k+n]
			for r := 0; r < panelRows; r += 4 {
				addChains((*[4]float32)(acc[r:]), x, seg[r][:n], seg[r+1][:n], seg[r+2][:n], seg[r+3][:n])
			}
		}
	}
}

// addChains adds the products of x with four rows to acc: each a chain from zero.
func addChains(acc *[4]float32, x, a, b, c, d []float32) {
	var s0, s1, s2, s3 float32
	a, b, c, d = a[:len(x)], b[:len(x)], c[:len(x)], d[:len(x)]
	for i, v := range x {
		s0 += float32(v * a[i])
		s1 += float32(v * b[i])
		s2 += float32(v * c[i])
		s3 += float32(v * d[i])
	}
	acc[0] += s0
	acc[1] += s1
	acc[2] += s2
	acc[3] += s3
}
