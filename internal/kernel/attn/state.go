package attn

import "github.com/inferflow/inferflow/internal/kernel/vec"

// State is the running softmax of rows: the maximum M, the sum L of exp(logit - M)
// and the same sum of the values, Acc, row r at Acc[r·Stride:][:dv].
type State struct {
	M, L, Acc []float32
	Stride    int
}

// stride is dv rounded up to whole vectors.
func stride(dv int) int { return (dv + 7) &^ 7 }

// StateFloats is the number of float32 that a state of rows by dv takes.
func StateFloats(rows, dv int) int { return rows * (2 + stride(dv)) }

// StateOf makes an empty state in buf, of at least StateFloats(rows, dv) elements.
func StateOf(buf []float32, rows, dv int) State {
	st := State{Stride: stride(dv), Acc: buf[: rows*stride(dv) : rows*stride(dv)]}
	buf = buf[len(st.Acc):]
	st.M, st.L = buf[:rows:rows], buf[rows:2*rows:2*rows]
	st.Clear()
	return st
}

// Clear makes all rows empty.
func (st *State) Clear() { st.clear(len(st.M)) }

func (st *State) clear(n int) { st.clearRange(0, n) }

func (st *State) clearRange(at, n int) {
	for i := at; i < at+n; i++ {
		st.M[i], st.L[i] = negInf, 0
	}
	clear(st.Acc[at*st.Stride : (at+n)*st.Stride])
}

// Merge adds the rows of p, states over positions that follow those of st.
func (st *State) Merge(p *State) { st.merge(p, len(st.M)) }

func (st *State) merge(p *State, n int) {
	for i := range n {
		if p.M[i] == negInf && p.L[i] == 0 {
			continue
		}
		acc, add := st.Acc[i*st.Stride:][:st.Stride], p.Acc[i*p.Stride:][:st.Stride]
		if st.M[i] == negInf && st.L[i] == 0 {
			st.M[i], st.L[i] = p.M[i], p.L[i]
			copy(acc, add)
			continue
		}
		top := max(st.M[i], p.M[i])
		a, b := expNeg(st.M[i]-top), expNeg(p.M[i]-top)
		st.M[i], st.L[i] = top, float32(st.L[i]*a)+float32(p.L[i]*b)
		vec.Scale(acc, acc, a)
		vec.AXPY(acc, b, add)
	}
}
