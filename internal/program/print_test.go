package program

import (
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
)

func TestRanges(t *testing.T) {
	for _, x := range []struct {
		in   []int
		want string
	}{{nil, ""}, {[]int{3}, "3"}, {[]int{3, 4}, "3, 4"}, {[]int{0, 1, 2, 3, 4, 6, 7, 8, 12}, "0–4, 6–8, 12"}} {
		if got := Ranges(x.in); got != x.want {
			t.Errorf("Ranges(%v) = %q, want %q", x.in, got, x.want)
		}
	}
}

// toy is a program of an embedding, layers of a norm with a residual and the
// given scales, and a head.
func toy(scales ...float64) *Program {
	line := func(n int) graph.Line { return graph.Line{File: "toy.star", Line: n} }
	g := &graph.Graph{Layers: len(scales), Nodes: []*graph.Node{{Line: line(1)}, {Line: line(3)}, {Line: line(2)}, {Line: line(4)}}}
	p := &Program{Graph: g, Layers: len(scales)}
	buf := func() Buf {
		p.Buffers = append(p.Buffers, Buffer{Width: 4})
		return Buf(len(p.Buffers) - 1)
	}
	x := buf()
	p.Steps = []Step{{Kind: KindEmbed, Layer: -1, Nodes: []int{0}, Body: &Embed{Table: graph.Tensor("table", []int{9, 4}), Scale: 2, Out: x}}}
	for i, s := range scales {
		name := "layers." + string(rune('0'+i)) + ".parts.0.norm"
		y := buf()
		p.Steps = append(p.Steps, Step{Kind: KindNorm, Layer: i, Nodes: []int{1, 2}, Body: &Norm{In: x, Out: y, Residual: x, Scale: s,
			Norm: &graph.NormAttr{Kind: graph.RMS, Eps: 1e-5, W: graph.Tensor(name, []int{4})}}})
		x = y
	}
	out := buf()
	code := []Instr{{Op: "load", Buf: x, Div: 1, Mod: 4}, {Op: "const", Dst: 1, P: 3}, {Op: "add", Args: 2, Dst: 2, A: 0, B: 1},
		{Op: "add", Args: 1, Dst: 3, A: 2, P: 5}, {Op: "where", Args: 3, Dst: 4, A: 3, B: 0, C: 1}}
	p.Steps = append(p.Steps, Step{Kind: KindElementwise, Layer: len(scales), Nodes: []int{3}, Why: "a reason", Body: &Elementwise{Code: code, Width: 4, Out: out}})
	p.Logits = out
	return p
}

func TestText(t *testing.T) {
	want := `6 steps, 4 layers
before the layers, 1 step
  Embed       t0[4] = table[9,4] by token × 2
layers 0, 1, 3, 1 step
  Norm        t0[4] = rms(x0[4]; layers.#.parts.0.norm[4], eps 1e-05) + x0[4]
layer 2, 1 step
  Norm        t0[4] = rms(x0[4]; layers.#.parts.0.norm[4], eps 1e-05) × 0.5 + x0[4]
after the layers, 1 step
  Elementwise t0[4] = where(add[5](add(x0[4], 3)), x0[4], 3)
    not fused: a reason
`
	if got := Text(toy(1, 1, 0.5, 1)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTextOfBuffers checks that numbers of buffers do not matter.
func TestTextOfBuffers(t *testing.T) {
	p := toy(1, 1)
	a := Text(p)
	n := len(p.Buffers)
	p.Buffers = append(p.Buffers, p.Buffers...)
	seen := map[*Buf]bool{}
	for i := range p.Steps {
		p.Steps[i].Visit(func(b *Buf, _ bool) {
			if !seen[b] {
				seen[b] = true
				*b += Buf(n)
			}
		})
	}
	if b := Text(p); a != b {
		t.Errorf("other numbers, other text:\n%s\n%s", a, b)
	}
}

func TestGroups(t *testing.T) {
	g := Groups(toy(1, 0.5, 1, 1))
	var titles []string
	for _, x := range g {
		titles = append(titles, x.Title)
	}
	if got, want := strings.Join(titles, "|"), "before the layers|layers 0, 2, 3|layer 1|after the layers"; got != want {
		t.Fatalf("groups %s, want %s", got, want)
	}
	if f := g[1].First; len(f) != 3 || f[0] != 1 || f[1] != 3 || f[2] != 4 {
		t.Errorf("first steps %v", f)
	}
}

func TestLines(t *testing.T) {
	p := toy(1)
	if l := p.Steps[1].Lines(p.Graph); len(l) != 2 || l[0].Line != 2 || l[1].Line != 3 {
		t.Errorf("lines %v", l)
	}
}
