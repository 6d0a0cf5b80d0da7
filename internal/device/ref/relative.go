package ref

import (
	"github.com/inferflow/inferflow/internal/graph"
)

// Distances is a relative bias unrolled by distance, so that the biases of
// neighbouring keys are neighbours in memory.
type Distances struct {
	Farthest int         // distances beyond it are treated as it
	Head     [][]float32 // by head, [2·Farthest + 1]: the bias of offset −Farthest … Farthest
}

// Unroll computes the biases of all distances from a table [buckets, heads],
// given flat.
func Unroll(table []float32, heads, farthest int, twoSided bool) *Distances {
	d := &Distances{Farthest: farthest, Head: make([][]float32, heads)}
	for h := range d.Head {
		d.Head[h] = make([]float32, 2*farthest+1)
	}
	for r := -farthest; r <= farthest; r++ {
		b := graph.Bucket(r, len(table)/heads, farthest, twoSided)
		for h := range d.Head {
			d.Head[h][r+farthest] = table[b*heads+h]
		}
	}
	return d
}

// At is the bias of a head for the offset of a key from its query.
func (d *Distances) At(h, offset int) float32 {
	return d.Head[h][min(max(offset, -d.Farthest), d.Farthest)+d.Farthest]
}

// Fill writes the biases of keys from, from+1, … for a query at position pos.
func (d *Distances) Fill(dst []float32, h, pos, from int) {
	head := d.Head[h]
	at := from - pos + d.Farthest // of dst[0] in head
	i := 0
	for ; i < len(dst) && at+i < 0; i++ {
		dst[i] = head[0]
	}
	if at+i < len(head) && i < len(dst) {
		i += copy(dst[i:], head[at+i:])
	}
	for ; i < len(dst); i++ {
		dst[i] = head[len(head)-1]
	}
}

type distanceKey struct {
	table    *graph.Weight
	farthest int
	twoSided bool
}

func (m *Machine) bias(table *graph.Weight, farthest int, twoSided bool) (*Distances, error) {
	if table == nil {
		return nil, nil
	}
	key := distanceKey{table, farthest, twoSided}
	if d := m.distances[key]; d != nil {
		return d, nil
	}
	v, err := m.vector(table)
	if err != nil {
		return nil, err
	}
	d := Unroll(v, table.Shape[1], farthest, twoSided)
	m.distances[key] = d
	return d, nil
}
