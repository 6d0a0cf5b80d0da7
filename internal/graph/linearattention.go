package graph

import (
	"fmt"
	"slices"
)

// LinearAttentionAttr is attention without a softmax, read from a state: with a
// decay (retention, gated linear attention), a bonus for the token itself
// (receptance weighted key values), and a normaliser with exponential gates
// (extended long short-term memory; the first receptance weighted form).
//
// In: v [H, dv], the logarithm of the decay g [H] or [H, dk]; then, with Keys, q
// and k [Hk, dk], else both are 1 and dk is 1; then, with Gate, the logarithm of
// the input gate i [H]; then, with Bonus, u [H] or [H, dk], or [H] beside a gate.
// Head h reads key head h·Hk/H, or h mod Hk when Tile is set.
//
//	S ← e^g·S + k ⊗ v,   y = Sᵀq                   plain
//	y = Sᵀq + (q·(u∘k))·v,   S ← e^g·S + k ⊗ v     with Bonus
//
// With a Norm, n is what S is for a v of 1, and y is divided by
//
//	n·q + Eps                "sum"
//	max(|n·q|, 1) + Eps      "max"
//
// With a Gate, k stands for e^i·k and u for e^u. S and n are kept as S·e^−m and
// n·e^−m, m ← max(m + g, i), so that no exponential overflows; the 1 of "max" is
// e^−m then, and Eps is added to the scaled sum. m starts at NoMaximum for "sum",
// at 0 for "max".
//
// The state is S [H, dv, dk], and with a Norm for each head n [dk] and m: [H, (dv+1)·dk+1].
type LinearAttentionAttr struct {
	Cache             int
	Keys, Gate, Bonus bool
	Norm              string // "", "sum", "max"
	Eps               float64
	Tile              bool
}

// NoMaximum is the maximum of no logarithm at all, finite so that differences are numbers.
const NoMaximum = -1e38

// LinearAttentionIn are the inputs of a linear attention; nil: absent. Q and K
// come together.
type LinearAttentionIn struct{ Q, K, V, G, I, U *Node }

// HeadState is the number of values that a head of dv by dk keeps.
func (a *LinearAttentionAttr) HeadState(dv, dk int) int {
	if a.Norm == "" {
		return dv * dk
	}
	return (dv+1)*dk + 1
}

// Inputs sorts the inputs of a node by what they are; −1: absent.
func (a *LinearAttentionAttr) Inputs() (v, g, q, k, i, u int) {
	q, k, i, u = -1, -1, -1, -1
	next := 2
	take := func(has bool, at *int) {
		if has {
			*at = next
			next++
		}
	}
	take(a.Keys, &q)
	take(a.Keys, &k)
	take(a.Gate, &i)
	take(a.Bonus, &u)
	return 0, 1, q, k, i, u
}

func inferLinearAttention(g *Graph, a *LinearAttentionAttr, in []*Node) ([]int, error) {
	_, _, q, k, i, u := a.Inputs()
	if want := 2 + 2*count(a.Keys) + count(a.Gate) + count(a.Bonus); len(in) != want {
		return nil, fmt.Errorf("linear_attention: takes %d inputs, got %d", want, len(in))
	}
	v, decay := in[0].Shape, in[1].Shape
	if len(v) != 2 {
		return nil, fmt.Errorf("linear_attention: takes v [heads, dv], got %v", v)
	}
	heads, dk := v[:1], 1
	if a.Keys {
		s := in[q].Shape
		if len(s) != 2 || !slices.Equal(s, in[k].Shape) || s[0] < 1 || v[0]%s[0] != 0 {
			return nil, fmt.Errorf("linear_attention: takes q, k [key heads, dk] whose heads divide %d, got %v and %v", v[0], s, in[k].Shape)
		}
		dk = s[1]
	}
	wide := []int{v[0], dk}
	switch {
	case !slices.Equal(decay, heads) && (a.Gate || !slices.Equal(decay, wide)):
		return nil, fmt.Errorf("linear_attention: the decay g is %v%s, got %v", heads, orShape(!a.Gate, wide), decay)
	case a.Gate && (a.Norm == "" || !slices.Equal(in[i].Shape, heads)):
		return nil, fmt.Errorf("linear_attention: the input gate i is %v and needs a norm, got %v", heads, in[i].Shape)
	case a.Bonus && !slices.Equal(in[u].Shape, heads) && (a.Gate || !slices.Equal(in[u].Shape, wide)):
		return nil, fmt.Errorf("linear_attention: the bonus u is %v%s, got %v", heads, orShape(!a.Gate, wide), in[u].Shape)
	case a.Norm != "" && a.Norm != "sum" && a.Norm != "max":
		return nil, fmt.Errorf("linear_attention: no norm %q", a.Norm)
	}
	if err := checkSize([]int{v[0], v[1] + 1, dk + 1}); err != nil {
		return nil, fmt.Errorf("linear_attention: state: %w", err)
	}
	return v, state(g, "linear_attention", a.Cache, v[0], a.HeadState(v[1], dk))
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func orShape(ok bool, shape []int) string { return or(ok, fmt.Sprintf(" or %v", shape)) }

func or(ok bool, text string) string {
	if ok {
		return text
	}
	return ""
}

// LinearAttention runs the recurrence of LinearAttentionAttr; the flags of a
// that say which inputs there are come from in.
func (b *Builder) LinearAttention(in LinearAttentionIn, a LinearAttentionAttr) (*Node, error) {
	a.Keys, a.Gate, a.Bonus = in.Q != nil, in.I != nil, in.U != nil
	list := []*Node{in.V, in.G}
	dk := 1
	if a.Keys {
		list = append(list, in.Q, in.K)
		if n := len(in.Q.Shape); n > 0 {
			dk = in.Q.Shape[n-1]
		}
	}
	if a.Gate {
		list = append(list, in.I)
	}
	if a.Bonus {
		list = append(list, in.U)
	}
	size := 0
	if len(in.V.Shape) == 2 {
		size = in.V.Shape[0] * a.HeadState(in.V.Shape[1], dk)
	}
	a.Cache = b.keep(size)
	return b.stateful(OpLinearAttention, &a, a.Cache, list...)
}
