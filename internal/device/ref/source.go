package ref

import (
	"fmt"
	"math"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
)

// keep stores what a cross attention will read of the sources just encoded.
func (m *Machine) keep(n *graph.Node, in []*Value, b *batch.Batch) {
	a, ok := n.Attr.(*graph.AttentionAttr)
	if !ok || !a.Cross || a.Shared {
		return
	}
	for _, q := range b.Seqs {
		s := m.sequence(q.ID)
		s.k[a.Cache], s.v[a.Cache] = s.k[a.Cache][:0], s.v[a.Cache][:0]
		for r := int(q.Row); r < int(q.Row+q.N); r++ {
			s.k[a.Cache] = append(s.k[a.Cache], in[1].Row(r)...)
			s.v[a.Cache] = append(s.v[a.Cache], in[2].Row(r)...)
		}
	}
}

// blockOf is the block of row i of a source of n rows, and the number of blocks.
func blockOf(i, n, size int) (block, blocks int) {
	blocks = n / size
	return min(i/size, blocks-1), blocks
}

func blockSum(size int, x *Value, b *batch.Batch, out *Value) {
	for _, q := range b.Seqs {
		n := int(q.N)
		blocks := n / size
		for c := 0; c < blocks; c++ {
			from, to := c*size, (c+1)*size
			if c == blocks-1 {
				to = n
			}
			sum := make([]float64, x.Width)
			for i := from; i < to; i++ {
				for k, v := range x.Row(int(q.Row) + i) {
					sum[k] += float64(v)
				}
			}
			for i := from; i < to; i++ {
				y := out.Row(int(q.Row) + i)
				for k, v := range sum {
					y[k] = float32(v)
				}
			}
		}
	}
}

func (m *Machine) blockAttention(n *graph.Node, in []*Value, b *batch.Batch, out *Value) error {
	a := n.Attr.(*graph.BlockAttnAttr)
	near, err := m.bias(a.Relative, a.Farthest, true)
	if err != nil {
		return err
	}
	side, err := m.bias(a.Side, a.Farthest, true)
	if err != nil {
		return err
	}
	for _, q := range b.Seqs {
		if q.Start != 0 {
			return fmt.Errorf("block_attention: a source is encoded whole, this one starts at %d", q.Start)
		}
		r := &blockReader{a: a, q: q, in: in, near: near, side: side, dk: in[0].Width / a.Heads, dv: in[2].Width / a.KVHeads}
		err := m.parallel(int(q.N), func(from, to int) error {
			for i := from; i < to; i++ {
				r.row(i, out.Row(int(q.Row)+i))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// blockReader computes block attention of one source.
type blockReader struct {
	a          *graph.BlockAttnAttr
	q          batch.Seq
	in         []*Value
	near, side *Distances
	dk, dv     int
}

func (r *blockReader) row(i int, out []float32) {
	n, first := int(r.q.N), int(r.q.Row)
	lo, hi := 0, n
	if r.a.Window > 0 {
		lo, hi = max(0, i-r.a.Window), min(n, i+r.a.Window+1)
	}
	own, blocks := blockOf(i, n, r.a.Size)
	acc := make([]float64, r.dv)
	for h := 0; h < r.a.Heads; h++ {
		g := h / (r.a.Heads / r.a.KVHeads)
		x := r.in[0].Row(first + i)[h*r.dk : (h+1)*r.dk]
		s := make([]float64, 0, hi-lo+blocks)
		for j := lo; j < hi; j++ {
			v := r.a.Scale * dot(x, r.in[1].Row(first + j)[g*r.dk:(g+1)*r.dk])
			if r.near != nil {
				v += float64(r.near.At(h, j-i))
			}
			s = append(s, v)
		}
		for c := 0; c < blocks; c++ {
			v := r.a.Scale * dot(x, r.in[3].Row(first + c*r.a.Size)[g*r.dk:(g+1)*r.dk])
			if r.side != nil {
				v += float64(r.side.At(h, c-own))
			}
			s = append(s, v)
		}
		top, sum := math.Inf(-1), 0.0
		for _, v := range s {
			top = math.Max(top, v)
		}
		clear(acc)
		for k, v := range s {
			p := math.Exp(v - top)
			sum += p
			from, j := r.in[2], lo+k
			if j >= hi {
				from, j = r.in[4], (j-hi)*r.a.Size
			}
			for c, y := range from.Row(first + j)[g*r.dv : (g+1)*r.dv] {
				acc[c] += p * float64(y)
			}
		}
		for c := range acc {
			out[h*r.dv+c] = float32(acc[c] / sum)
		}
	}
}
