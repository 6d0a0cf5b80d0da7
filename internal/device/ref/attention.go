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
// position i of a sequence with n positions sees, beside those below a.First.
func Visible(a *graph.AttentionAttr, i, n int) (lo, hi int) {
	if a.Ask > 0 && i >= a.Ask {
		return 0, 0
	}
	switch a.Mask {
	case graph.MaskChunk:
		return i / a.Window * a.Window, i + 1
	case graph.MaskFull:
		if a.Sides != nil && i >= a.First {
			return max(0, i-a.Sides[0]), min(n, i+a.Sides[1]+1)
		}
		if a.Window > 0 && i >= a.First {
			return max(0, i-a.Window), min(n, i+a.Window+1)
		}
		return 0, n
	}
	end := i + 1
	if a.Mask == graph.MaskBefore {
		end = i
	}
	if a.Window > 0 {
		return min(max(0, i-a.Window+1), end), end
	}
	return 0, end
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
			if err := s.append(a.Cache, c, &q, in); err != nil {
				return err
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
				r := int(q.Row) + i
				row := seenRow{a: a, c: c, pos: int(q.Start) + i, sinks: sinks, bias: bias, k: s.k[a.Cache], v: s.v[a.Cache]}
				row.table(in, r, int(q.Row))
				var allowed []float32
				if a.Allowed {
					allowed = in[len(in)-1].Row(r)
				}
				row.see(total, allowed)
				row.attend(in[0].Row(r), out.Row(r))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// append keeps the keys and values of the rows of q.
func (s *sequence) append(cache int, c graph.Cache, q *batch.Seq, in []*Value) error {
	kw, vw := c.Heads*c.KeyDim, c.Heads*c.ValueDim
	if len(s.k[cache]) < int(q.Start)*kw {
		return fmt.Errorf("sequence %d starts at position %d but holds %d", q.ID, q.Start, len(s.k[cache])/kw)
	}
	s.k[cache] = s.k[cache][:int(q.Start)*kw]
	if c.Kind == graph.CacheKV {
		s.v[cache] = s.v[cache][:int(q.Start)*vw]
	}
	for r := int(q.Row); r < int(q.Row+q.N); r++ {
		s.k[cache] = append(s.k[cache], in[1].Row(r)...)
		if c.Kind == graph.CacheKV {
			s.v[cache] = append(s.v[cache], in[2].Row(r)...)
		}
	}
	return nil
}

// seenRow is one row's attention: what it sees of the keys and values of its
// sequence.
type seenRow struct {
	a     *graph.AttentionAttr
	c     graph.Cache
	pos   int
	at    []int // positions seen, ascending
	k, v  []float32
	sinks []float32
	bias  *Distances

	ofQuery []float32             // [H·B], nil: none
	ofKey   func(j int) []float32 // by position
}

// table finds the numbers by distance of row r, whose sequence begins at row first.
func (s *seenRow) table(in []*Value, r, first int) {
	i := 3
	if s.a.Shared {
		i = 1
	} else if s.c.Kind == graph.CacheLatent {
		i = 2
	}
	if s.a.ByQuery {
		s.ofQuery = in[i].Row(r)
		i++
	}
	if s.a.ByKey {
		at := i
		s.ofKey = func(j int) []float32 { return in[at].Row(first + j) }
		i++
	}
	if s.a.SinkOf {
		s.sinks = in[i].Row(r)
	}
}

// near is what the distance of key j adds to its score for head h.
func (s *seenRow) near(h, j int) (x float64) {
	b := Bucket(s.a.Buckets, j-s.pos)
	if s.ofQuery != nil {
		x += float64(s.ofQuery[h*(len(s.ofQuery)/s.a.Heads)+b])
	}
	if s.ofKey != nil {
		row := s.ofKey(j)
		x += float64(row[h*(len(row)/s.a.Heads)+b])
	}
	return x
}

// Bucket is the bucket of a key's offset from its query.
func Bucket(buckets []int32, offset int) int {
	half := len(buckets) / 2
	return int(buckets[min(max(offset, -half), half)+half])
}

// see lists the positions that the row sees of a sequence of total.
func (s *seenRow) see(total int, allowed []float32) {
	if s.a.Allowed {
		for _, p := range allowed {
			if p >= 0 && int(p) <= s.pos {
				s.at = append(s.at, int(p))
			}
		}
		return
	}
	lo, hi := Visible(s.a, s.pos, total)
	for p := 0; p < min(lo, s.a.First); p++ {
		s.at = append(s.at, p)
	}
	for p := lo; p < hi; p++ {
		if s.a.Every == 0 || (p+1)%s.a.Every == 0 {
			s.at = append(s.at, p)
		}
	}
}

func (s *seenRow) attend(q, out []float32) {
	a, c := s.a, s.c
	p := make([]float64, len(s.at))
	group := a.Heads / a.KVHeads
	for h := 0; h < a.Heads; h++ {
		g := h / group
		if a.Tile {
			g = h % a.KVHeads
		}
		s.scores(p, q[h*c.KeyDim:(h+1)*c.KeyDim], h, g)
		last, sum := s.weights(p, h)
		o := out[h*(len(out)/a.Heads):]
		if a.Open {
			o[c.ValueDim] = last
		}
		s.mix(p, sum, g, o[:c.ValueDim])
	}
}

// scores computes the scores of query head h and key head g.
func (s *seenRow) scores(p []float64, q []float32, h, g int) {
	a, c := s.a, s.c
	for i, j := range s.at {
		o := (j*c.Heads + g) * c.KeyDim
		x := a.Scale * dot(q, s.k[o:o+c.KeyDim])
		if a.Softcap > 0 {
			x = a.Softcap * math.Tanh(x/a.Softcap)
		}
		if a.Slopes != nil {
			x += a.Slopes[h] * float64(j-s.pos)
		}
		if s.bias != nil {
			x += float64(s.bias.At(h, j-s.pos))
		}
		if a.Buckets != nil {
			x += s.near(h, j)
		}
		p[i] = x
	}
	if a.Counted {
		s.count(p, h)
	}
	if a.Faded {
		s.fade(p, g)
	}
}

// mix adds the values of head g, which in a latent cache begin each key.
func (s *seenRow) mix(p []float64, sum float64, g int, out []float32) {
	v, stride := s.v, s.c.ValueDim
	if s.c.Kind == graph.CacheLatent {
		v, stride = s.k, s.c.KeyDim
	}
	acc := make([]float64, s.c.ValueDim)
	for i, w := range p {
		o := (s.at[i]*s.c.Heads + g) * stride
		for d, x := range v[o : o+len(acc)] {
			acc[d] += w * float64(x)
		}
	}
	for i := range acc {
		if sum > 0 { // a row that sees nothing gives 0
			out[i] = float32(acc[i] / sum)
		}
	}
}
