package ref

import (
	"fmt"
	"math"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
)

// sequence is what the machine keeps of one sequence: for each cache the keys
// and values of positions 0, 1, …
type sequence struct{ k, v [][]float32 } // by cache: [n·heads·dim]

func (m *Machine) sequence(id int32) *sequence {
	s := m.state[id]
	if s == nil {
		s = &sequence{k: make([][]float32, len(m.Graph.Caches)), v: make([][]float32, len(m.Graph.Caches))}
		m.state[id] = s
	}
	return s
}

// Visible is the range of absolute key positions [lo, hi) that a query at
// position i of a sequence with n positions sees.
func Visible(a *graph.AttentionAttr, i, n int) (lo, hi int) {
	switch a.Mask {
	case graph.MaskChunk:
		return i / a.Window * a.Window, i + 1
	case graph.MaskFull:
		if a.Window > 0 {
			return max(0, i-a.Window), min(n, i+a.Window+1)
		}
		return 0, n
	}
	if a.Window > 0 {
		return max(0, i-a.Window+1), i + 1
	}
	return 0, i + 1
}

func (m *Machine) attention(n *graph.Node, in []*Value, b *batch.Batch, out *Value) error {
	a := n.Attr.(*graph.AttentionAttr)
	c := m.Graph.Caches[a.Cache]
	sinks, err := m.vector(a.Sinks)
	if err != nil {
		return err
	}
	bias, err := m.bias(a.Relative, a.Farthest, a.TwoSided)
	if err != nil {
		return err
	}
	for _, q := range b.Seqs {
		s := m.sequence(q.ID)
		if !a.Shared && !a.Cross {
			kw, vw := c.Heads*c.KeyDim, c.Heads*c.ValueDim
			if len(s.k[a.Cache]) < int(q.Start)*kw {
				return fmt.Errorf("sequence %d starts at position %d but holds %d", q.ID, q.Start, len(s.k[a.Cache])/kw)
			}
			s.k[a.Cache], s.v[a.Cache] = s.k[a.Cache][:int(q.Start)*kw], s.v[a.Cache][:int(q.Start)*vw]
			for r := int(q.Row); r < int(q.Row+q.N); r++ {
				s.k[a.Cache] = append(s.k[a.Cache], in[1].Row(r)...)
				s.v[a.Cache] = append(s.v[a.Cache], in[2].Row(r)...)
			}
		}
		total := int(q.Start + q.N)
		if a.Cross {
			if total = len(s.k[a.Cache]) / (c.Heads * c.KeyDim); total == 0 {
				return fmt.Errorf("sequence %d has no encoded source", q.ID)
			}
		}
		err := m.parallel(int(q.N), func(from, to int) error {
			for i := from; i < to; i++ {
				attendRow(a, c, s, int(q.Start)+i, total, sinks, bias, in[0].Row(int(q.Row)+i), out.Row(int(q.Row)+i))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func attendRow(a *graph.AttentionAttr, c graph.Cache, s *sequence, pos, total int, sinks []float32, bias *Distances, q, out []float32) {
	lo, hi := Visible(a, pos, total)
	p := make([]float64, hi-lo)
	group := a.Heads / a.KVHeads
	for h := 0; h < a.Heads; h++ {
		g := h / group
		if a.Tile {
			g = h % a.KVHeads
		}
		qh := q[h*c.KeyDim : (h+1)*c.KeyDim]
		top := math.Inf(-1)
		if sinks != nil {
			top = float64(sinks[h])
		}
		for j := lo; j < hi; j++ {
			o := (j*c.Heads + g) * c.KeyDim
			x := a.Scale * dot(qh, s.k[a.Cache][o:o+c.KeyDim])
			if a.Softcap > 0 {
				x = a.Softcap * math.Tanh(x/a.Softcap)
			}
			if a.Slopes != nil {
				x += a.Slopes[h] * float64(j-pos)
			}
			if bias != nil {
				x += float64(bias.At(h, j-pos))
			}
			p[j-lo] = x
			top = math.Max(top, x)
		}
		sum := 0.0
		if sinks != nil {
			sum = math.Exp(float64(sinks[h]) - top)
		}
		for j := range p {
			p[j] = math.Exp(p[j] - top)
			sum += p[j]
		}
		mix(p, sum, s.v[a.Cache], lo, g, c, out[h*c.ValueDim:(h+1)*c.ValueDim])
	}
}

func mix(p []float64, sum float64, v []float32, lo, g int, c graph.Cache, out []float32) {
	acc := make([]float64, c.ValueDim)
	for j, w := range p {
		o := ((lo+j)*c.Heads + g) * c.ValueDim
		for i, x := range v[o : o+c.ValueDim] {
			acc[i] += w * float64(x)
		}
	}
	for i := range acc {
		out[i] = float32(acc[i] / sum)
	}
}
