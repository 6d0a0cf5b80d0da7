package attn

import (
	"github.com/inferflow/inferflow/internal/kernel/vec"
)

// PutKey stores the key k, of dk elements, at slot 0 to 15 of a key tile [dk][16]. It
// rounds to nearest, ties to even. In F16 a finite value beyond ±65504 becomes
// ±65504; infinities and NaN stay what they are.
func PutKey(tile []byte, t Elem, dk, slot int, k []float32) {
	k = k[:dk]
	if t == F32 {
		out := floats(tile)[slot:]
		for d, f := range k {
			out[d*Tile] = f
		}
		return
	}
	out := halves(tile)[slot:]
	var buf [64]uint16
	for d := 0; d < dk; d += len(buf) {
		part := buf[:min(len(buf), dk-d)]
		narrow(part, k[d:d+len(part)], t)
		for i, h := range part {
			out[(d+i)*Tile] = h
		}
	}
}

// PutKeys stores n keys at the slots from the given one on, key i being
// k[i·stride:][:dk], as PutKey one after the other.
func PutKeys(tile []byte, t Elem, dk, slot, n int, k []float32, stride int) {
	i := 0
	if t == F32 && useAVX2 && dk%8 == 0 && n >= 8 {
		i = n &^ 7
		turnFast(floats(tile)[slot:][:(dk-1)*Tile+i], k[:(i-1)*stride+dk], stride, dk, i)
	}
	if t == F32 {
		for ; i+4 <= n; i += 4 {
			putFour(floats(tile)[slot+i:], k[i*stride:], stride, dk)
		}
	}
	for ; i < n; i++ {
		PutKey(tile, t, dk, slot+i, k[i*stride:])
	}
}

// putFour turns four neighbouring keys into columns.
func putFour(out, k []float32, stride, dk int) {
	k0, k1, k2, k3 := k[:dk], k[stride:][:dk], k[2*stride:][:dk], k[3*stride:][:dk]
	for d, f := range k0 {
		o := out[d*Tile:][:4]
		o[0], o[1], o[2], o[3] = f, k1[d], k2[d], k3[d]
	}
}

// GetKey reads slot of a key tile into k, of dk elements.
func GetKey(tile []byte, t Elem, dk, slot int, k []float32) {
	k = k[:dk]
	if t == F32 {
		in := floats(tile)[slot:]
		for d := range k {
			k[d] = in[d*Tile]
		}
		return
	}
	in := halves(tile)[slot:]
	var buf [64]uint16
	for d := 0; d < dk; d += len(buf) {
		part := buf[:min(len(buf), dk-d)]
		for i := range part {
			part[i] = in[(d+i)*Tile]
		}
		if t == F16 {
			vec.F16ToF32(k[d:d+len(part)], part)
		} else {
			vec.BF16ToF32(k[d:d+len(part)], part)
		}
	}
}

// PutValue stores the value v, of dv elements, at slot of a value tile [16][dv],
// rounding as PutKey.
func PutValue(tile []byte, t Elem, dv, slot int, v []float32) {
	row := tile[slot*dv*t.Size():][:dv*t.Size()]
	if t == F32 {
		copy(floats(row), v[:dv])
		return
	}
	narrow(halves(row), v[:dv], t)
}

// GetValue reads slot of a value tile into v, of dv elements.
func GetValue(tile []byte, t Elem, dv, slot int, v []float32) {
	expand(v[:dv], tile[slot*dv*t.Size():][:dv*t.Size()], t)
}

// CopyKeySlots copies slots from to to-1 of a key tile to the same slots of another,
// bits as they are: for a tile that two segments supply, and for forks.
func CopyKeySlots(dst, src []byte, t Elem, dk, from, to int) {
	size := t.Size()
	for d := range dk {
		lo, hi := (d*Tile+from)*size, (d*Tile+to)*size
		copy(dst[lo:hi], src[lo:hi])
	}
}

// CopyValueSlots is CopyKeySlots for value tiles.
func CopyValueSlots(dst, src []byte, t Elem, dv, from, to int) {
	size := t.Size()
	copy(dst[from*dv*size:to*dv*size], src[from*dv*size:to*dv*size])
}

func narrow(dst []uint16, src []float32, t Elem) {
	if t == F16 {
		vec.F32ToF16(dst, src)
		return
	}
	vec.F32ToBF16(dst, src)
}
