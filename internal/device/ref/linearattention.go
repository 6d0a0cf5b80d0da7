package ref

import (
	"math"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
)

// linearAttention evaluates graph.LinearAttentionAttr, a position after the
// other. A row of a head's state is what one component of v has gathered; with
// a norm one more row gathers 1, and the maximum follows it.
func (m *Machine) linearAttention(n *graph.Node, a *graph.LinearAttentionAttr, in []*Value, b *batch.Batch, out *Value) error {
	heads, dv := n.Shape[0], n.Shape[1]
	at := [6]int{}
	at[0], at[1], at[2], at[3], at[4], at[5] = a.Inputs()
	dk, keyHeads := 1, 1
	if a.Keys {
		s := m.Graph.Nodes[n.In[at[2]]].Shape
		keyHeads, dk = s[0], s[1]
	}
	size := a.HeadState(dv, dk)
	var begin func(s []float32)
	if a.Norm == "sum" {
		begin = func(s []float32) { s[size-1] = graph.NoMaximum }
	}
	return m.recur(a.Cache, heads, size, b, begin, func(h, row int, s []float32) {
		kh := h / (heads / keyHeads)
		if a.Tile {
			kh = h % keyHeads
		}
		// part is what head h reads of an input: its one number, or one of each channel.
		part := func(i, h int) func(int) float64 {
			if at[i] < 0 {
				return func(int) float64 { return 1 }
			}
			x := in[at[i]].Row(row)
			if s := m.Graph.Nodes[n.In[at[i]]].Shape; len(s) == 1 {
				return func(int) float64 { return float64(x[h]) }
			}
			return func(c int) float64 { return float64(x[h*dk+c]) }
		}
		l := linear{a: a, dk: dk, g: part(1, h), q: part(2, kh), k: part(3, kh), u: part(5, h), keep: 1, take: 1}
		if a.Gate {
			l.gate(float64(in[at[4]].Row(row)[h]), &s[size-1])
		}
		v, y := in[0].Row(row)[h*dv:(h+1)*dv], out.Row(row)[h*dv:(h+1)*dv]
		div := 1.0
		if a.Norm != "" {
			div = l.row(s[dv*dk:(dv+1)*dk], 1)
			if a.Norm == "max" {
				div = max(math.Abs(div), math.Exp(-l.seen))
			}
			div += a.Eps
		}
		for i := range v {
			y[i] = float32(l.row(s[i*dk:(i+1)*dk], float64(v[i])) / div)
		}
	})
}

// linear is one position of one head.
type linear struct {
	a          *graph.LinearAttentionAttr
	dk         int
	g, q, k, u func(int) float64
	// Without a gate 1, 1, and what the decay and the bonus are. With one: what
	// the state and the token count for when the state goes on (keep, take), and
	// when a bonus is read (old, now); seen is the maximum that the output is scaled by.
	keep, take, old, now, seen float64
}

// gate moves the running maximum and says what state and token count for.
func (l *linear) gate(i float64, at *float32) {
	before, g := float64(*at), l.g(0)
	after := max(before+g, i)
	l.keep, l.take, l.seen = math.Exp(before+g-after), math.Exp(i-after), after
	if l.a.Bonus {
		l.seen = max(before, i+l.u(0))
		l.old, l.now = math.Exp(before-l.seen), math.Exp(i+l.u(0)-l.seen)
	}
	*at = float32(after)
}

// row moves a row of the state on by k·v and reads it with q.
func (l *linear) row(s []float32, v float64) float64 {
	sum := 0.0
	for c := range l.dk {
		keep, old, now := l.keep, 1.0, l.u(c)
		if l.a.Gate {
			old, now = l.old, l.now
		} else {
			keep = math.Exp(l.g(c))
		}
		add := l.k(c) * v
		x := keep*float64(s[c]) + l.take*add
		if l.a.Bonus {
			sum += l.q(c) * (old*float64(s[c]) + now*add)
		} else {
			sum += l.q(c) * x
		}
		s[c] = float32(x)
	}
	return sum
}
