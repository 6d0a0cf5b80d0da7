package program

import "github.com/inferflow/inferflow/internal/graph"

// Join makes one softmax of open attentions, as graph.JoinAttr says: In are
// values of Heads parts each, which end with the logarithm of their sum.
type Join struct {
	In    []Buf
	Heads int
	Out   Buf
}

// Stored is attention of Q to K and V, constants of Keys rows for KVHeads heads.
type Stored struct {
	Q, K, V, Out         Buf
	Keys, Heads, KVHeads int
	Attr                 *graph.StoredAttr
}

func (q *printer) join(x *Join) string {
	s := q.buf(x.Out) + " = one softmax of"
	for i, b := range x.In {
		if i > 0 {
			s += ","
		}
		s += " " + q.buf(b)
	}
	return s
}
