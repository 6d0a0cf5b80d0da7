package ref

import (
	"math"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
)

// Frequencies gives the Dim/2 angle frequencies of a table for a request of
// length tokens. div and longDiv are the decoded divisors or nil.
func Frequencies(t *graph.RopeTable, length int, div, longDiv []float32) []float32 {
	f := append([]float64{}, t.Freq...)
	switch {
	case t.Kind == "longrope" && length > t.Original:
		f = append([]float64{}, t.LongFreq...)
		if longDiv != nil {
			div = longDiv
		}
	case t.Kind == "dynamic" && length > t.Original:
		d := float64(t.Dim)
		theta := t.Theta * math.Pow(t.NTKFactor*float64(length)/float64(t.Original)-(t.NTKFactor-1), d/(d-2))
		for j := range f {
			f[j] = math.Pow(theta, -2*float64(j)/d)
		}
	}
	out := make([]float32, len(f))
	for j := range f {
		if div != nil {
			f[j] /= float64(div[j])
		}
		out[j] = float32(f[j])
	}
	return out
}

// Angle is the cosine and sine of position·frequency, times the table's
// factor. The product is rounded to float32 as the reference does.
func Angle(pos int32, freq float32, factor float64) (c, s float32) {
	a := float64(float32(pos) * freq)
	return float32(math.Cos(a) * factor), float32(math.Sin(a) * factor)
}

func (m *Machine) rope(n *graph.Node, x *Value, b *batch.Batch, out *Value) error {
	a := n.Attr.(*graph.RopeAttr)
	t := m.Graph.Ropes[a.Table]
	div, err := m.vector(t.Divisors)
	if err != nil {
		return err
	}
	long, err := m.vector(t.LongDiv)
	if err != nil {
		return err
	}
	for r := range out.Rows {
		copy(out.Row(r), x.Row(r))
	}
	d := n.Shape[len(n.Shape)-1]
	for _, q := range b.Seqs {
		f := Frequencies(t, int(q.Length), div, long)
		for r := int(q.Row); r < int(q.Row+q.N); r++ {
			row := out.Row(r)
			for o := 0; o < len(row); o += d {
				rotate(row[o+a.At:o+a.At+t.Dim], b.Pos[r], f, t.Factor, a.Interleaved)
			}
		}
	}
	return nil
}

func rotate(x []float32, pos int32, f []float32, factor float64, interleaved bool) {
	for j := range f {
		p, q := j, j+len(f)
		if interleaved {
			p, q = 2*j, 2*j+1
		}
		c, s := Angle(pos, f[j], factor)
		u, v := float64(x[p]), float64(x[q])
		x[p], x[q] = float32(u*float64(c)-v*float64(s)), float32(v*float64(c)+u*float64(s))
	}
}
