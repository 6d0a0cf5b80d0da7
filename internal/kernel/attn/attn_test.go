package attn

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// seq is one key-value head's cache of a test, with its queries.
type seq struct {
	call   Call
	k, v   [][]float32 // as stored, position by position
	tokens int
}

type shape struct {
	dk, dv, heads, keys int
	kt, vt              Elem
	window              int // 0: none
	first               int // FirstTile
	extra               string
}

func (s shape) String() string {
	return fmt.Sprintf("dk%d dv%d heads%d keys%d %v/%v window%d first%d %s", s.dk, s.dv, s.heads, s.keys, s.kt, s.vt, s.window, s.first, s.extra)
}

func normal(r *rand.Rand, n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * scale)
	}
	return x
}

// build makes a cache of s.keys positions, in which each of the last tokens queries
// the keys up to its own, with s.heads rows a token. Unwritten slots hold NaN.
func build(s shape, tokens int, seed uint64) *seq {
	r := rand.New(rand.NewPCG(seed, 99))
	q := &seq{tokens: tokens}
	tiles := (s.keys+Tile-1)/Tile - s.first
	kb, vb := KeyTileBytes(s.kt, s.dk), ValueTileBytes(s.vt, s.dv)
	c := Call{DK: s.dk, DV: s.dv, KeyType: s.kt, ValueType: s.vt, FirstTile: s.first,
		Keys: dirty(tiles*kb, s.kt), Values: dirty(tiles*vb, s.vt)}
	for _, t := range r.Perm(tiles) { // tiles lie in any order
		c.TileK, c.TileV = append(c.TileK, t*kb), append(c.TileV, t*vb)
	}
	for p := range s.keys {
		k, v := normal(r, s.dk, 1), normal(r, s.dv, 1)
		q.k, q.v = append(q.k, k), append(q.v, v)
		if p < s.first*Tile {
			continue
		}
		t := p/Tile - s.first
		PutKey(c.Keys[c.TileK[t]:][:kb], s.kt, s.dk, p%Tile, k)
		PutValue(c.Values[c.TileV[t]:][:vb], s.vt, s.dv, p%Tile, v)
		GetKey(c.Keys[c.TileK[t]:][:kb], s.kt, s.dk, p%Tile, k)
		GetValue(c.Values[c.TileV[t]:][:vb], s.vt, s.dv, p%Tile, v)
	}
	n := tokens * s.heads
	c.Rows, c.QStride, c.OutStride = n, s.dk+3, s.dv+2
	c.Q, c.Out = normal(r, n*c.QStride, 1.5), normal(r, n*c.OutStride, 1)
	c.Scale = float32(1 / math.Sqrt(float64(s.dk)))
	for i := range n {
		pos := s.keys - tokens + i/s.heads
		lo := s.first * Tile
		if s.window > 0 {
			lo = max(lo, pos+1-s.window)
		}
		c.Lo, c.Hi = append(c.Lo, int32(lo)), append(c.Hi, int32(pos+1))
	}
	switch s.extra {
	case "softcap":
		c.Softcap = 2
	case "sinks":
		c.Sinks = normal(r, n, 2)
	case "slopes":
		c.Slopes = make([]float32, n)
		for i := range c.Slopes {
			c.Slopes[i] = 0.3 / float32(i%s.heads+1)
		}
	case "bias":
		c.BiasStride = s.keys - s.first*Tile
		c.Bias = normal(r, n*c.BiasStride, 1)
		for i := range c.Bias {
			if i%7 == 3 {
				c.Bias[i] = negInf
			}
		}
	}
	q.call = c
	return q
}

func dirty(n int, t Elem) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 0xff // NaN in each type
	}
	return b
}

// want is the attention of row r in float64.
func (q *seq) want(r int) []float64 {
	c := &q.call
	var logits []float64
	top := math.Inf(-1)
	for p := int(c.Lo[r]); p < int(c.Hi[r]); p++ {
		var s float64
		for d := range c.DK {
			s += float64(c.Q[r*c.QStride+d]) * float64(q.k[p][d])
		}
		s *= float64(c.Scale)
		if c.Softcap != 0 {
			s = float64(c.Softcap) * math.Tanh(s/float64(c.Softcap))
		}
		if c.Slopes != nil {
			s += float64(c.Slopes[r]) * float64(p)
		}
		if c.Bias != nil {
			s += float64(c.Bias[r*c.BiasStride+p-c.FirstTile*Tile])
		}
		logits = append(logits, s)
		top = math.Max(top, s)
	}
	var l float64
	if c.Sinks != nil {
		top = math.Max(top, float64(c.Sinks[r]))
		l = math.Exp(float64(c.Sinks[r]) - top)
	}
	out := make([]float64, c.DV)
	for i, s := range logits {
		e := math.Exp(s - top)
		l += e
		for d := range out {
			out[d] += e * float64(q.v[int(c.Lo[r])+i][d])
		}
	}
	for d := range out {
		if l != 0 {
			out[d] /= l
		}
	}
	return out
}

var shapes = []shape{
	{64, 64, 4, 100, F16, F16, 0, 0, ""},
	{64, 64, 1, 1200, F16, F16, 0, 0, ""},
	{128, 128, 7, 530, F16, F16, 200, 4, ""},
	{8, 8, 2, 40, F32, F32, 0, 0, ""},
	{1, 1, 1, 33, F32, F16, 0, 0, ""},
	{80, 96, 3, 600, F16, F32, 0, 0, ""},
	{13, 7, 5, 70, F16, F16, 0, 0, ""},
	{40, 20, 6, 50, BF16, BF16, 0, 0, ""},
	{32, 24, 8, 90, BF16, F16, 33, 1, ""},
	{64, 64, 4, 1100, F16, F16, 0, 0, "softcap"},
	{64, 64, 4, 600, F16, F16, 128, 0, "sinks"},
	{64, 64, 4, 600, F32, F32, 0, 0, "slopes"},
	{32, 48, 2, 600, F16, F16, 0, 2, "bias"},
	{576, 512, 9, 40, F16, F16, 0, 0, ""},
}

func TestAgainstFloat64(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for i, s := range shapes {
			for _, tokens := range []int{1, 2, 23} {
				q := build(s, tokens, uint64(i))
				guard := append([]float32(nil), q.call.Out...)
				q.call.Run(NewScratch(q.call.Rows, s.dk, s.dv))
				for r := range q.call.Rows {
					want := q.want(r)
					for d := range want {
						got := float64(q.call.Out[r*q.call.OutStride+d])
						if !(math.Abs(got-want[d]) <= 3e-6*(1+math.Abs(want[d]))) {
							t.Fatalf("%v, %d tokens: row %d, element %d is %v, want %v", s, tokens, r, d, got, want[d])
						}
					}
					for d := s.dv; d < q.call.OutStride; d++ {
						if q.call.Out[r*q.call.OutStride+d] != guard[r*q.call.OutStride+d] {
							t.Fatalf("%v: row %d wrote beyond its end", s, r)
						}
					}
				}
			}
		}
	})
}

// rows gives the call for some of the rows only.
func (c Call) rows(from, to int) Call {
	cut := func(x []float32, stride int) []float32 {
		if x == nil {
			return nil
		}
		return x[from*stride:]
	}
	c.Q, c.Out, c.Bias = cut(c.Q, c.QStride), cut(c.Out, c.OutStride), cut(c.Bias, c.BiasStride)
	c.Sinks, c.Slopes = cut(c.Sinks, 1), cut(c.Slopes, 1)
	c.Lo, c.Hi, c.Rows = c.Lo[from:], c.Hi[from:], to-from
	return c
}

func same(t *testing.T, what string, c *Call, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(c.Out[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: row %d, element %d is %v, want %v", what, i/c.OutStride, i%c.OutStride, c.Out[i], want[i])
		}
	}
}

// TestCompany holds the promise of bits: groups of every size, tiles that are not
// needed, queries in another order, and chunks apart all give the same.
func TestCompany(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for i, s := range shapes {
			tokens := 23
			if s.dk > 128 {
				tokens = 3
			}
			q := build(s, tokens, uint64(i))
			c := &q.call
			c.Run(NewScratch(64, s.dk, s.dv))
			want := append([]float32(nil), c.Out...)
			for _, group := range []int{1, 2, 3, 4, 5, 6, 7, 9, 13, 17} {
				clear(c.Out)
				scr := NewScratch(group, s.dk, s.dv)
				for r := 0; r < c.Rows; r += group {
					part := c.rows(r, min(r+group, c.Rows))
					part.Run(scr)
				}
				for r := range c.Rows {
					copy(c.Out[r*c.OutStride+s.dv:(r+1)*c.OutStride], want[r*c.OutStride+s.dv:(r+1)*c.OutStride])
				}
				same(t, fmt.Sprintf("%v in groups of %d", s, group), c, want)
			}
			testFewerTiles(t, s, c, want)
			testChunksApart(t, s, c, want)
			testShuffled(t, s, c, want)
		}
	})
}

// testFewerTiles lists only the tiles that each row needs.
func testFewerTiles(t *testing.T, s shape, c *Call, want []float32) {
	for r := 0; r < c.Rows; r += 5 {
		part := c.rows(r, r+1)
		skip := int(part.Lo[0])/Tile - c.FirstTile
		end := (int(part.Hi[0])+Tile-1)/Tile - c.FirstTile
		part.TileK, part.TileV, part.FirstTile = c.TileK[skip:end], c.TileV[skip:end], c.FirstTile+skip
		if part.Bias != nil {
			part.Bias = part.Bias[skip*Tile:]
		}
		part.Run(NewScratch(1, s.dk, s.dv))
		same(t, fmt.Sprintf("%v row %d, fewer tiles", s, r), c, want)
	}
}

func testChunksApart(t *testing.T, s shape, c *Call, want []float32) {
	scr := NewScratch(64, s.dk, s.dv)
	lo, hi := c.Chunks()
	total := StateOf(make([]float32, StateFloats(c.Rows, s.dv)), c.Rows, s.dv)
	var states []State
	for range hi - lo {
		states = append(states, StateOf(make([]float32, StateFloats(c.Rows, s.dv)), c.Rows, s.dv))
	}
	for k := hi - 1; k >= lo; k-- {
		c.RunChunk(scr, k, &states[k-lo])
	}
	for k := range states {
		total.Merge(&states[k])
	}
	c.Finish(&total)
	same(t, fmt.Sprintf("%v by chunks", s), c, want)
}

func testShuffled(t *testing.T, s shape, c *Call, want []float32) {
	if c.Bias != nil {
		return
	}
	r := rand.New(rand.NewPCG(1, 1))
	other := *c
	perm := r.Perm(c.Rows)
	other.Q, other.Out = make([]float32, len(c.Q)), make([]float32, len(c.Out))
	other.Lo, other.Hi = make([]int32, c.Rows), make([]int32, c.Rows)
	for _, f := range []*[]float32{&other.Sinks, &other.Slopes} {
		if *f != nil {
			old := *f
			*f = make([]float32, c.Rows)
			for i, p := range perm {
				(*f)[i] = old[p]
			}
		}
	}
	for i, p := range perm {
		copy(other.Q[i*c.QStride:][:s.dk], c.Q[p*c.QStride:])
		other.Lo[i], other.Hi[i] = c.Lo[p], c.Hi[p]
	}
	other.Run(NewScratch(64, s.dk, s.dv))
	for i, p := range perm {
		copy(c.Out[p*c.OutStride:][:s.dv], other.Out[i*c.OutStride:])
	}
	same(t, fmt.Sprintf("%v shuffled", s), c, want)
}

func TestEmptyAndFaulty(t *testing.T) {
	nan := float32(math.NaN())
	eachTier(t, func(t *testing.T) {
		q := build(shape{16, 16, 1, 40, F16, F16, 0, 0, "sinks"}, 8, 1)
		c := &q.call
		c.Lo[2], c.Hi[3] = 39, 0
		c.Lo[2] = c.Hi[2] // empty
		scr := NewScratch(8, 16, 16)
		c.Run(scr)
		for _, r := range []int{2, 3} {
			for d := range 16 {
				if c.Out[r*c.OutStride+d] != 0 {
					t.Fatalf("an empty row gives %v", c.Out[r*c.OutStride+d])
				}
			}
		}
		clean := append([]float32(nil), c.Out...)
		// A NaN, or an infinity, in a query shows in its own row only.
		for _, bad := range []float32{nan, float32(math.Inf(1))} {
			was := c.Q[5*c.QStride+3]
			c.Q[5*c.QStride+3] = bad
			c.Run(scr)
			c.Q[5*c.QStride+3] = was
			for d := range 16 {
				if got := c.Out[5*c.OutStride+d]; got == got {
					t.Fatalf("a fault in the query gives %v", got)
				}
			}
			copy(c.Out[5*c.OutStride:][:16], clean[5*c.OutStride:])
			same(t, "a neighbour's NaN", c, clean)
		}
		c.Rows = 0
		c.Run(scr)
	})
}

// TestFaultyKey: a NaN key is seen by those rows only that see its position.
func TestFaultyKey(t *testing.T) {
	eachTier(t, func(t *testing.T) {
		for _, value := range []bool{false, true} {
			q := build(shape{24, 24, 1, 40, F16, F16, 0, 0, ""}, 12, 1)
			c := &q.call
			scr := NewScratch(12, 24, 24)
			c.Run(scr)
			clean := append([]float32(nil), c.Out...)
			bad := normal(rand.New(rand.NewPCG(1, 2)), 24, 1)
			for i := range bad {
				bad[i] = float32(math.NaN())
			}
			if value {
				PutValue(c.Values[c.TileV[35/Tile]:], F16, 24, 35%Tile, bad)
			} else {
				PutKey(c.Keys[c.TileK[35/Tile]:], F16, 24, 35%Tile, bad)
			}
			c.Run(scr)
			for r := range c.Rows {
				row := c.Out[r*c.OutStride:][:24]
				for d, got := range row {
					if c.Hi[r] > 35 {
						if got == got {
							t.Fatalf("row %d hides a NaN", r)
						}
						row[d] = clean[r*c.OutStride+d]
					}
				}
			}
			same(t, "rows before the NaN", c, clean)
		}
	})
}

func TestChecks(t *testing.T) {
	for name, spoil := range map[string]func(c *Call){
		"dk": func(c *Call) { c.DK = 17 }, "dv": func(c *Call) { c.DV = 0 }, "q": func(c *Call) { c.Q = c.Q[:20] },
		"lo": func(c *Call) { c.Lo = nil }, "sinks": func(c *Call) { c.Sinks = c.Sinks[:1] }, "rows": func(c *Call) { c.Rows = 9 },
		"tiles": func(c *Call) { c.TileK = c.TileK[:1] }, "keys": func(c *Call) { c.Keys = c.Keys[:100] },
	} {
		q := build(shape{16, 16, 1, 40, F16, F16, 0, 0, "sinks"}, 8, 1)
		spoil(&q.call)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: want a panic", name)
				}
			}()
			q.call.Run(NewScratch(8, 16, 16))
		}()
	}
}

func TestAllocs(t *testing.T) {
	for _, s := range shapes[:2] {
		q := build(s, 5, 1)
		scr := NewScratch(64, s.dk, s.dv)
		k := make([]float32, s.dk)
		if n := testing.AllocsPerRun(5, func() {
			q.call.Run(scr)
			PutKey(q.call.Keys, F16, s.dk, 3, k)
			GetKey(q.call.Keys, F16, s.dk, 3, k)
		}); n != 0 {
			t.Errorf("%v: %v allocations", s, n)
		}
	}
}

func TestTiles(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, e := range []Elem{F32, F16, BF16} {
		for _, d := range []int{1, 3, 8, 64, 65, 200} {
			a, b := make([]byte, KeyTileBytes(e, d)), make([]byte, KeyTileBytes(e, d))
			va, vb := make([]byte, ValueTileBytes(e, d)), make([]byte, ValueTileBytes(e, d))
			for slot := range Tile {
				x := normal(r, d, 1)
				PutKey(a, e, d, slot, x)
				PutValue(va, e, d, slot, x)
				got, gotV := make([]float32, d), make([]float32, d)
				GetKey(a, e, d, slot, got)
				GetValue(va, e, d, slot, gotV)
				for i := range x {
					if got[i] != gotV[i] || math.Abs(float64(got[i]-x[i])) > math.Abs(float64(x[i]))/200 {
						t.Fatalf("%v d=%d: %v stored as %v, %v", e, d, x[i], got[i], gotV[i])
					}
				}
			}
			CopyKeySlots(b, a, e, d, 3, 9)
			CopyValueSlots(vb, va, e, d, 3, 9)
			for slot := range Tile {
				got, gotV, want := make([]float32, d), make([]float32, d), make([]float32, d)
				if slot >= 3 && slot < 9 {
					GetKey(a, e, d, slot, want)
				}
				GetKey(b, e, d, slot, got)
				GetValue(vb, e, d, slot, gotV)
				for i := range want {
					if got[i] != want[i] || gotV[i] != want[i] {
						t.Fatalf("%v d=%d slot %d: copied %v, %v, want %v", e, d, slot, got[i], gotV[i], want[i])
					}
				}
			}
		}
	}
	b := make([]byte, KeyTileBytes(F16, 3))
	PutKey(b, F16, 3, 0, []float32{1e30, float32(math.Inf(-1)), float32(math.NaN())})
	k := make([]float32, 3)
	if GetKey(b, F16, 3, 0, k); k[0] != 65504 || !math.IsInf(float64(k[1]), -1) || k[2] == k[2] {
		t.Errorf("1e30, -Inf, NaN stored as %v", k)
	}
}

func TestExpNeg(t *testing.T) {
	for x := float32(0); x > -87.3; x -= 0.00137 {
		if want := math.Exp(float64(x)); math.Abs(float64(expNeg(x))-want) > 1.5e-7*want {
			t.Fatalf("exp(%v) = %v, want %v", x, expNeg(x), want)
		}
	}
	if expNeg(0) != 1 || expNeg(negInf) != 0 || expNeg(-88) != 0 || expNeg(float32(math.NaN())) == 0 {
		t.Error("special values")
	}
}

// Keys stored together lie as keys stored one by one.
func TestPutKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, e := range []Elem{F32, F16, BF16} {
		for _, dk := range []int{1, 7, 8, 32, 72} {
			for slot := range Tile {
				n := 1 + rng.IntN(Tile-slot)
				stride := dk + rng.IntN(9)
				k := make([]float32, n*stride)
				for i := range k {
					k[i] = float32(rng.NormFloat64())
				}
				got, want := make([]byte, KeyTileBytes(e, dk)), make([]byte, KeyTileBytes(e, dk))
				PutKeys(got, e, dk, slot, n, k, stride)
				for i := range n {
					PutKey(want, e, dk, slot+i, k[i*stride:])
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("%s keys of %d at slots %d to %d differ", e, dk, slot, slot+n-1)
				}
			}
		}
	}
}

// What is finished at once has the bits of plain Go, and nothing lies beside it.
func TestFinishFast(t *testing.T) {
	if !haveAVX2() {
		t.Skip("needs AVX2")
	}
	rng := rand.New(rand.NewPCG(6, 6))
	nan := float32(math.NaN())
	for _, dv := range []int{8, 32, 72} {
		for n := 1; n < 9; n++ {
			st := StateOf(make([]float32, StateFloats(n+1, dv)), n+1, dv)
			for i := range st.Acc {
				st.Acc[i] = float32(rng.NormFloat64())
			}
			for i := range st.L {
				st.M[i], st.L[i] = 1, []float32{0, 1, 3.7, nan, float32(math.Inf(1)), 1e-30}[rng.IntN(6)]
			}
			st.L[1], st.Acc[st.Stride+3] = 0, nan
			out := [2][]float32{make([]float32, n*(dv+5)), make([]float32, n*(dv+5))}
			for k, fast := range []bool{false, true} {
				useAVX2 = fast
				c := Call{Out: out[k], OutStride: dv + 5, DV: dv, Rows: n}
				c.finish(&st, 0, n, 1)
			}
			useAVX2 = true
			for i := range out[0] {
				a, b := out[0][i], out[1][i]
				if math.Float32bits(a) != math.Float32bits(b) && (a == a || b == b) {
					t.Fatalf("%d rows of %d: value %d is %v, in plain Go %v", n, dv, i, b, a)
				}
			}
		}
	}
}
