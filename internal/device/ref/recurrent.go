package ref

import (
	"math"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
)

// conv evaluates graph.ConvAttr.
func (m *Machine) conv(a *graph.ConvAttr, in []*Value, b *batch.Batch, out *Value) error {
	x := in[0]
	w, err := m.vector(a.W)
	if err != nil {
		return err
	}
	if a.Taps > 0 {
		w = in[1].Row(0)
	}
	bias, err := m.vector(a.B)
	if err != nil {
		return err
	}
	d, taps := x.Width, a.Past()+1
	for i := range b.Seqs {
		q := &b.Seqs[i]
		past, err := m.Memory.State(a.Cache, q)
		if err != nil {
			return err
		}
		// The last taps−1 inputs, then those of this batch.
		line := append(make([]float32, 0, (taps-1+int(q.N))*d), past...)
		for r := q.Row; r < q.Row+q.N; r++ {
			line = append(line, x.Row(int(r))...)
		}
		for t := range int(q.N) {
			y := out.Row(int(q.Row) + t)
			if w == nil {
				if at := t + max(0, -a.Shift); at < len(line)/d {
					copy(y, line[at*d:(at+1)*d])
				}
				continue
			}
			for c := range d {
				sum := 0.0
				if bias != nil {
					sum = float64(bias[c])
				}
				for j := range taps {
					sum += float64(w[c*taps+j]) * float64(line[(t+j)*d+c])
				}
				y[c] = float32(sum)
			}
		}
		copy(past, line[int(q.N)*d:])
	}
	return nil
}

// scan evaluates graph.ScanAttr, a position after the other.
func (m *Machine) scan(n *graph.Node, a *graph.ScanAttr, in []*Value, b *batch.Batch, out *Value) error {
	heads, p := n.Shape[0], n.Shape[1]
	bm := m.Graph.Nodes[n.In[1]].Shape
	groups, size := bm[0], bm[1]
	rates := len(in[4].Row(0)) / heads // of a head: 1 or size
	return m.recur(a.Cache, heads, p*size, b, nil, func(h, row int, s []float32) {
		x, y := in[0].Row(row)[h*p:(h+1)*p], out.Row(row)[h*p:(h+1)*p]
		g := h / (heads / groups)
		bg, cg := in[1].Row(row)[g*size:(g+1)*size], in[2].Row(row)[g*size:(g+1)*size]
		dt, rate := float64(in[3].Row(row)[h]), in[4].Row(row)[h*rates:(h+1)*rates]
		for i := range p {
			add, sum := dt*float64(x[i]), 0.0
			si := s[i*size : (i+1)*size]
			for k := range si {
				v := math.Exp(dt*float64(rate[k%rates]))*float64(si[k]) + add*float64(bg[k])
				si[k] = float32(v)
				sum += v * float64(cg[k])
			}
			y[i] = float32(sum)
		}
	})
}

// delta evaluates graph.DeltaAttr, a position after the other.
func (m *Machine) delta(n *graph.Node, a *graph.DeltaAttr, in []*Value, b *batch.Batch, out *Value) error {
	heads, dv := n.Shape[0], n.Shape[1]
	qs := m.Graph.Nodes[n.In[0]].Shape
	keyHeads, dk := qs[0], qs[1]
	perChannel := len(m.Graph.Nodes[n.In[3]].Shape) == 2
	return m.recur(a.Cache, heads, dk*dv, b, nil, func(h, row int, s []float32) {
		kh := h / (heads / keyHeads)
		if a.Tile {
			kh = h % keyHeads
		}
		q, y := in[0].Row(row)[kh*dk:(kh+1)*dk], out.Row(row)[h*dv:(h+1)*dv]
		g := func(i int) float64 { return float64(in[3].Row(row)[h]) }
		if perChannel {
			g = func(i int) float64 { return float64(in[3].Row(row)[h*dk+i]) }
		}
		for j := range max(1, a.Steps) {
			at := j*keyHeads + kh
			k, v := in[1].Row(row)[at*dk:(at+1)*dk], in[2].Row(row)[(j*heads+h)*dv:][:dv]
			if j > 0 {
				g = func(int) float64 { return 0 } // the decay is that of the first step
			}
			if a.General {
				generalStep(s, q, k, v, y, g, in[4].Row(row)[at*dk:(at+1)*dk], in[5].Row(row)[at*dk:(at+1)*dk])
			} else {
				step(s, q, k, v, y, g, float64(in[4].Row(row)[j*heads+h]))
			}
		}
	})
}

// generalStep is one position of the general delta rule for one head: s [dk, dv].
func generalStep(s, q, k, v, y []float32, g func(int) float64, a, b []float32) {
	dv := len(v)
	read, out := make([]float64, dv), make([]float64, dv) // Sᵀa before the decay
	for i := range a {
		for j := range dv {
			read[j] += float64(a[i]) * float64(s[i*dv+j])
		}
	}
	for i := range k {
		keep := math.Exp(g(i))
		for j := range dv {
			x := keep*float64(s[i*dv+j]) + float64(b[i])*read[j] + float64(k[i])*float64(v[j])
			s[i*dv+j] = float32(x)
			out[j] += float64(q[i]) * x
		}
	}
	for j := range dv {
		y[j] = float32(out[j])
	}
}

// step is one position of the gated delta rule for one head: s [dk, dv].
func step(s, q, k, v, y []float32, g func(int) float64, beta float64) {
	dv := len(v)
	read := make([]float64, dv) // Sᵀk after the decay
	for i := range k {
		keep := math.Exp(g(i))
		for j := range dv {
			x := keep * float64(s[i*dv+j])
			s[i*dv+j] = float32(x)
			read[j] += float64(k[i]) * x
		}
	}
	out := make([]float64, dv)
	for i := range k {
		for j := range dv {
			x := float64(s[i*dv+j]) + float64(k[i])*beta*(float64(v[j])-read[j])
			s[i*dv+j] = float32(x)
			out[j] += float64(q[i]) * x
		}
	}
	for j := range dv {
		y[j] = float32(out[j])
	}
}

// recur walks the positions of every sequence for each head, whose state holds
// size values; begin, if not nil, changes the zeros of one that starts.
func (m *Machine) recur(cache, heads, size int, b *batch.Batch, begin func(s []float32), step func(h, row int, s []float32)) error {
	for i := range b.Seqs {
		q := &b.Seqs[i]
		s, err := m.Memory.State(cache, q)
		if err != nil {
			return err
		}
		err = m.parallel(heads, func(from, to int) error {
			for h := from; h < to; h++ {
				if begin != nil && q.Start == 0 {
					begin(s[h*size : (h+1)*size])
				}
				for t := range int(q.N) {
					step(h, int(q.Row)+t, s[h*size:(h+1)*size])
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
