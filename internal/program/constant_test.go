package program

import (
	"errors"
	"math"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
)

// withConstant is a program whose attention reads the constant 0 as queries and keys.
func withConstant() *Program {
	return &Program{Graph: &graph.Graph{}, Logits: 3, Buffers: []Buffer{{Width: 4, Const: true}, {Width: 4}, {Width: 4}, {Width: 4, Out: true}},
		Steps: []Step{
			{Kind: KindOp, Rows: graph.RowsConst, Body: &OpStep{Out: 0}},
			{Kind: KindEmbed, Body: &Embed{Out: 1}},
			{Kind: KindAttention, Layer: 2, Body: &Attention{Q: 0, K: 0, V: 1, Allow: None, ByQuery: None, ByKey: 0, Sinks: None, Out: 2}},
			{Kind: KindRows, Body: &Rows{In: 2, Out: 3}},
		}}
}

func TestSpread(t *testing.T) {
	p := withConstant()
	if err := CheckConstants(p); !errors.Is(err, ErrConstant) {
		t.Fatalf("queries that are a constant pass: %v", err)
	}
	Spread(p)
	if err := CheckConstants(p); err != nil {
		t.Fatal(err)
	}
	if len(p.Steps) != 5 || p.Steps[2].Kind != KindElementwise || p.Steps[2].Layer != 2 {
		t.Fatalf("one step spreads the constant, before the attention: %v", p.Steps)
	}
	a := p.Steps[3].Body.(*Attention)
	if a.Q != 4 || a.K != 4 || a.V != 1 || a.ByKey != 0 || p.Buffers[4] != (Buffer{Width: 4}) {
		t.Fatalf("the attention reads %+v; buffer 4 is %+v", a, p.Buffers[4])
	}
}

func TestCheckConstants(t *testing.T) {
	for name, spoil := range map[string]func(p *Program){
		"never made":              func(p *Program) { p.Steps = p.Steps[1:] },
		"made of a token's value": func(p *Program) { p.Steps[0].Body = &OpStep{In: []Buf{1}, Out: 0} },
		"made every time":         func(p *Program) { p.Steps[0].Rows = graph.RowsToken },
		"made by a fused step":    func(p *Program) { p.Steps[0] = Step{Kind: KindEmbed, Rows: graph.RowsConst, Body: &Embed{Out: 0}} },
		"the output":              func(p *Program) { p.Logits = 0 },
		"keys of each token": func(p *Program) {
			p.Steps = append(p.Steps, Step{Kind: KindStored, Body: &Stored{Q: 1, K: 1, V: 0, Out: 2}})
		},
		"a matrix of each token": func(p *Program) {
			p.Steps = append(p.Steps, Step{Kind: KindHeads, Body: &Heads{Heads: 1, Parts: []HeadPart{{In: 0, M: 1}}, Out: 2}})
		},
		"wanted rows of one": func(p *Program) {
			p.Steps = append(p.Steps, Step{Kind: KindRows, Body: &Rows{In: 0, Out: 3}})
		},
	} {
		p := withConstant()
		Spread(p)
		spoil(p)
		if err := CheckConstants(p); !errors.Is(err, ErrConstant) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestConstantBytes counts values, packed copies and the largest matrix.
func TestConstantBytes(t *testing.T) {
	p := withConstant()
	p.Graph.Nodes = []*graph.Node{{}}
	if n := ConstantBytes(p); n != 4*4 {
		t.Errorf("%d bytes for 4 numbers", n)
	}
	w := graph.Tensor("w", []int{6, 5})
	p.Graph.Nodes = []*graph.Node{{Attr: &graph.LinearAttr{W: w}}}
	p.Steps = append(p.Steps, Step{Kind: KindHeads, Body: &Heads{Parts: []HeadPart{{In: 1, M: 0}}, Out: 2}})
	if n := ConstantBytes(p); n != 4*(4+4+30) {
		t.Errorf("%d bytes, want those of 4, 4 and 30 numbers", n)
	}
	p.Buffers[0].Width = math.MaxInt
	if n := ConstantBytes(p); n <= 0 {
		t.Errorf("%d bytes", n)
	}
}
