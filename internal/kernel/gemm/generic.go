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
				msum := halves[0]*int32(u.submin[0][r][0]) + halves[1]*int32(u.submin[1][r][0])
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
	var seg [segment * panelRows]float32
	for k := 0; k < w.k; k += segment {
		n := min(segment, w.k-k)
		w.widen(seg[:n*panelRows], p, k)
		for m := from; m < to; m++ {
			acc := (*[panelRows]float32)(dst[(m-from)*stride:])
			if k == 0 {
				*acc = [panelRows]float32{}
			}
			x := float32s(a.buf[m*a.stride:])[k : k+n]
			var sum [panelRows]float32
			for i, v := range x {
				for r, c := range (*[panelRows]float32)(seg[i*panelRows:]) {
					sum[r] += float32(v * c)
				}
			}
			for r, v := range sum {
				acc[r] += v
			}
		}
	}
}

// widen converts values k, k+1, … of all rows of panel p: dst is [n][16].
func (w *Matrix) widen(dst []float32, p, k int) {
	for i := range dst {
		dst[i] = w.floatAt(p, i%panelRows, k+i/panelRows)
	}
}
