package attn

import (
	"math"

	"github.com/inferflow/inferflow/internal/kernel/vec"
)

var negInf = float32(math.Inf(-1))

// scores writes q·k of rows r to r+n with tile t to logits, [n][16]. Positions that a
// row does not see get values of no meaning.
func (s *Scratch) scores(c *Call, t, r, n int, logits []float32) {
	tile := c.Keys[c.TileK[t-c.FirstTile]:][:KeyTileBytes(c.KeyType, c.DK)]
	q := c.Q[r*c.QStride:]
	if s.avx2 {
		scoresFast(c.KeyType, logits, q, c.QStride, tile, c.DK, n)
		return
	}
	k := s.keys[:c.DK*Tile]
	if s.keysOf != t {
		expand(k, tile, c.KeyType)
		s.keysOf = t
	}
	for i := range n {
		scoresRow(logits[i*Tile:][:Tile], q[i*c.QStride:][:c.DK], k)
	}
}

// scoresRow goes over the keys in four groups of four, whose sums stay in registers.
func scoresRow(out, q, k []float32) {
	for j := 0; j < Tile; j += 4 {
		var s0, s1, s2, s3 float32
		group := k[j:]
		for d, f := range q {
			v := group[d*Tile:][:4]
			s0 += float32(f * v[0])
			s1 += float32(f * v[1])
			s2 += float32(f * v[2])
			s3 += float32(f * v[3])
		}
		out[j], out[j+1], out[j+2], out[j+3] = s0, s1, s2, s3
	}
}

// adjust turns q·k into the logits of Call, scale included.
func (c *Call) adjust(logits []float32, t, r, n int) {
	vec.Scale(logits, logits, c.Scale)
	if c.Softcap != 0 {
		vec.Softcap(logits, logits, c.Softcap)
	}
	for i := range n {
		row := logits[i*Tile:][:Tile]
		if c.Slopes != nil {
			slope, p := c.Slopes[r+i], t*Tile-int(c.Hi[r+i])+1
			if c.At != nil {
				p = t*Tile - int(c.At[r+i])
			}
			for j := range row {
				row[j] += float32(slope * float32(p+j))
			}
		}
		if c.Bias != nil {
			at := (r+i)*c.BiasStride + (t-c.FirstTile)*Tile
			from := max(0, int(c.Lo[r+i])-t*Tile)
			to := min(Tile, int(c.Hi[r+i])-t*Tile)
			bias := c.Bias[at+from : at+to]
			for j, b := range bias {
				row[from+j] += b
			}
		}
	}
}

// softmax turns the logits of n rows into exp(scale·logit - M), 0 where a row does
// not see the position, updates M and L of the states and leaves in alpha the factor
// that Acc is still to be multiplied by.
func (s *Scratch) softmax(logits []float32, scale float32, from, to []int32, st *State, at, n int) {
	if s.avx2 {
		softmaxAVX2(&logits[0], &st.M[at], &st.L[at], &s.alpha[0], &s.ref[0], &from[0], &to[0], scale, n)
		return
	}
	for i := range n {
		row := logits[i*Tile:][:Tile]
		top := st.M[at+i]
		for j, v := range row {
			v *= scale
			if j < int(from[i]) || j >= int(to[i]) {
				v = negInf
			}
			row[j] = v
			if v > top {
				top = v
			}
		}
		ref := top
		if ref == negInf {
			ref = 0
		}
		for j, v := range row {
			row[j] = expNeg(v - ref)
		}
		alpha := expNeg(st.M[at+i] - ref)
		st.M[at+i], s.alpha[i] = top, alpha
		st.L[at+i] = float32(st.L[at+i]*alpha) + total(row)
	}
}

// total adds the 16 elements of a row as a tree.
func total(row []float32) float32 {
	var p [8]float32
	for j := range p {
		p[j] = row[j] + row[j+8]
	}
	for h := 4; h > 0; h /= 2 {
		for j := range h {
			p[j] += p[j+h]
		}
	}
	return p[0]
}

// weigh adds slots from to to-1 of value tile t, weighted by the logits' rows i to
// i+n, to the states' Acc.
func (s *Scratch) weigh(c *Call, t, i, n, from, to int, st *State, at int) {
	p := s.logits[i*Tile+from:]
	acc := st.Acc[at*st.Stride:][:n*st.Stride]
	wide, row := stride(c.DV), c.DV*c.ValueType.Size()
	var tile []byte
	if !c.ValuesOfKeys {
		tile = c.Values[c.TileV[t-c.FirstTile]:][:ValueTileBytes(c.ValueType, c.DV)]
	}
	if s.avx2 && wide == c.DV && !c.ValuesOfKeys {
		weighFast(c.ValueType, acc, st.Stride, p, s.alpha[i:], tile[from*row:], wide, to-from, n)
		return
	}
	if s.valuesOf != t && c.ValuesOfKeys {
		s.valuesOfKeys(c, t, wide)
	}
	if s.valuesOf != t {
		// Expanded as a whole, for other rows may see more; what lies at positions not
		// written yet is never added.
		for j := range Tile {
			expand(s.values[j*wide:][:c.DV], tile[j*row:][:row], c.ValueType)
		}
		s.valuesOf = t
	}
	v := s.values[from*wide:]
	if s.avx2 {
		weighF32AVX2(&acc[0], st.Stride, &p[0], &s.alpha[i], &v[0], wide, wide, to-from, n)
		return
	}
	for k := range n {
		weighRow(acc[k*st.Stride:][:c.DV], p[k*Tile:][:to-from], s.alpha[i+k], v, wide)
	}
}

// valuesOfKeys turns the first components of a key tile, [DV][16], to values, [16][DV].
func (s *Scratch) valuesOfKeys(c *Call, t, wide int) {
	k := s.keys[:c.DV*Tile]
	if s.keysOf != t {
		expand(k, c.Keys[c.TileK[t-c.FirstTile]:][:KeyTileBytes(c.KeyType, c.DV)], c.KeyType)
	}
	for d := range c.DV {
		v := s.values[d:]
		for j, x := range k[d*Tile:][:Tile] {
			v[j*wide] = x
		}
	}
	s.valuesOf = t
}

// weighRow adds four keys in one pass over acc, in ascending order as ever.
func weighRow(acc, p []float32, alpha float32, v []float32, wide int) {
	for d := range acc {
		acc[d] *= alpha
	}
	for len(p) >= 4 {
		w0, w1, w2, w3 := p[0], p[1], p[2], p[3]
		v0, v1 := v[:len(acc)], v[wide:][:len(acc)]
		v2, v3 := v[2*wide:][:len(acc)], v[3*wide:][:len(acc)]
		for d, a := range acc {
			a += float32(w0 * v0[d])
			a += float32(w1 * v1[d])
			a += float32(w2 * v2[d])
			acc[d] = a + float32(w3*v3[d])
		}
		p = p[4:]
		if len(p) > 0 {
			v = v[4*wide:]
		}
	}
	for j, w := range p {
		for d, f := range v[j*wide:][:len(acc)] {
			acc[d] += float32(w * f)
		}
	}
}

// finish writes Out of rows r to r+n from states at, at+1, ….
func (c *Call) finish(st *State, r, n, at int) {
	if useAVX2 && !c.Open && c.Sinks == nil && c.DV%8 == 0 && n > 0 {
		finishFast(c.Out[r*c.OutStride:][:(n-1)*c.OutStride+c.DV], c.OutStride, st.Acc[at*st.Stride:][:(n-1)*st.Stride+c.DV], st.Stride, st.L[at:at+n], c.DV)
		return
	}
	for i := range n {
		out := c.Out[(r+i)*c.OutStride:][:c.DV]
		m, l, factor := st.M[at+i], st.L[at+i], float32(1)
		if c.Open {
			c.Out[(r+i)*c.OutStride+c.DV] = c.sum(m, l, r+i)
		}
		if l == 0 {
			clear(out)
			continue
		}
		if c.Sinks != nil {
			sink := c.Sinks[r+i]
			top := max(m, sink)
			factor = expNeg(m - top)
			l = float32(l*factor) + expNeg(sink-top)
		}
		vec.Scale(out, st.Acc[(at+i)*st.Stride:][:c.DV], factor/l)
	}
}

// Nothing is the logarithm of an empty sum: finite, so that differences of two are numbers.
const Nothing = -math.MaxFloat32

// sum is the logarithm of the sum that row r's weights are divided by, of a
// state with the maximum m and the sum l.
func (c *Call) sum(m, l float32, r int) float32 {
	if l == 0 {
		m = negInf
	}
	if c.Sinks != nil {
		top := max(m, c.Sinks[r])
		if m != negInf {
			l = float32(l * expNeg(m-top))
		}
		m, l = top, l+expNeg(c.Sinks[r]-top)
	}
	if l == 0 {
		return Nothing
	}
	return m + float32(math.Log(float64(l)))
}

// expand converts stored elements to float32.
func expand(dst []float32, src []byte, t Elem) {
	switch t {
	case F16:
		vec.F16ToF32(dst, halves(src))
	case BF16:
		vec.BF16ToF32(dst, halves(src))
	default:
		copy(dst, floats(src))
	}
}

// expNeg is eˣ for x ≤ 0 to about 1 unit in the last place, 0 below -87.3 (where
// float32 has no normal numbers), NaN for NaN. The polynomial is that of Cephes' expf.
func expNeg(x float32) float32 {
	if x < -87.33654 {
		return 0
	}
	if x != x {
		return x
	}
	const magic = 12582912 // 1.5·2²³: adding it rounds to an integer
	n := float32(x*math.Log2E) + magic
	n -= magic
	r := x - float32(n*0.693359375)
	r -= float32(n * -2.12194440e-4)
	p := float32(1.9875691500e-4)
	for _, c := range [...]float32{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		p = float32(p*r) + c
	}
	y := float32(float32(r*r)*p) + r
	y++
	return y * math.Float32frombits(uint32(int32(n)+127)<<23)
}
