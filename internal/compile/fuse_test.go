package compile

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// sketch is a graph under construction whose errors end the test.
type sketch struct {
	*graph.Builder
	t *testing.T
	n int
}

func (s *sketch) must(x *graph.Node, err error) *graph.Node {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	return x
}

func (s *sketch) weight(shape ...int) *graph.Weight {
	s.n++
	return graph.Tensor("w", shape)
}

func (s *sketch) embed() *graph.Node { return s.must(s.Embed(s.Tokens(), s.weight(9, 32), 0)) }

func (s *sketch) linear(x *graph.Node, out int) *graph.Node {
	return s.must(s.Linear(x, s.weight(out, x.Shape[len(x.Shape)-1]), nil))
}

func (s *sketch) rms(x *graph.Node) *graph.Node {
	return s.must(s.Norm(x, graph.NormAttr{Kind: graph.RMS, Eps: 1e-5, W: s.weight(x.Shape[len(x.Shape)-1])}))
}

func (s *sketch) shape(x *graph.Node, shape ...int) *graph.Node { return s.must(s.Reshape(x, shape)) }

func (s *sketch) unary(f string, x *graph.Node, p float64) *graph.Node {
	return s.must(s.Unary(f, x, p, 0))
}

func (s *sketch) binary(f string, x, y *graph.Node) *graph.Node { return s.must(s.Binary(f, x, y)) }

// attend attends with heads of 8 after edit.
func (s *sketch) attend(x *graph.Node, edit func(y *graph.Node) *graph.Node) *graph.Node {
	q, k, v := s.shape(s.linear(x, 32), 4, 8), s.shape(s.linear(x, 16), 2, 8), s.shape(s.linear(x, 16), 2, 8)
	a := s.must(s.Attention(edit(q), edit(k), v, graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 1}))
	return s.shape(a, 32)
}

// TestPatterns pins which steps a form of network becomes, beside the goldens
// of whole families: what must fuse, and what looks alike and must not.
func TestPatterns(t *testing.T) {
	turn := func(s *sketch, y *graph.Node, dim int) *graph.Node {
		t := s.AddRope(&graph.RopeTable{Dim: dim, Freq: make([]float64, dim/2), Factor: 1})
		return s.must(s.Rope(y, graph.RopeAttr{Table: t}))
	}
	for _, c := range []struct {
		name  string
		want  string
		build func(s *sketch) *graph.Node
	}{
		{"a product with norm, activation and residual", "Embed Linear", func(s *sketch) *graph.Node {
			x := s.embed()
			return s.binary("add", x, s.unary("silu", s.linear(s.rms(x), 32), 0))
		}},
		{"the norm of a residual", "Embed Norm", func(s *sketch) *graph.Node {
			x := s.embed()
			return s.binary("add", x, s.unary("scale", s.rms(x), 0.5))
		}},
		{"a gated pair", "Embed Linear Linear", func(s *sketch) *graph.Node {
			x := s.embed()
			return s.linear(s.binary("mul", s.linear(x, 64), s.unary("gelu", s.linear(x, 64), 0)), 32)
		}},
		{"a pair of two values is not gated", "Embed Norm Elementwise Linear Linear Elementwise", func(s *sketch) *graph.Node {
			x := s.embed()
			y := s.unary("tanh", s.rms(x), 0)
			return s.binary("mul", s.linear(x, 64), s.unary("gelu", s.linear(y, 64), 0))
		}},
		{"a scalar gate is no gated pair", "Embed Linear Linear Elementwise", func(s *sketch) *graph.Node {
			x := s.embed()
			return s.binary("mul", s.linear(x, 32), s.unary("sigmoid", s.linear(x, 1), 0))
		}},
		{"an outer sum is no residual", "Embed Linear Linear Elementwise", func(s *sketch) *graph.Node {
			x := s.embed()
			return s.binary("add", s.shape(s.linear(x, 8), 8, 1), s.shape(s.linear(x, 8), 1, 8))
		}},
		{"nothing is left of a product times zero", "Embed Linear", func(s *sketch) *graph.Node {
			return s.unary("scale", s.linear(s.embed(), 32), 0)
		}},
		{"a value of two users is made once", "Embed Linear Linear Elementwise", func(s *sketch) *graph.Node {
			y := s.linear(s.embed(), 32)
			return s.binary("mul", y, s.linear(y, 32))
		}},
		{"queries, keys and values", "Embed QKV Attention Linear", func(s *sketch) *graph.Node {
			x := s.embed()
			return s.binary("add", x, s.linear(s.attend(s.rms(x), func(y *graph.Node) *graph.Node { return turn(s, s.rms(y), 8) }), 32))
		}},
		{"half a rotation", "Embed QKV Attention Linear", func(s *sketch) *graph.Node {
			return s.linear(s.attend(s.embed(), func(y *graph.Node) *graph.Node { return turn(s, y, 4) }), 32)
		}},
		{"a rotation over two heads", "Embed Linear Linear Linear Heads Heads Attention Linear", func(s *sketch) *graph.Node {
			return s.linear(s.attend(s.embed(), func(y *graph.Node) *graph.Node {
				return s.shape(turn(s, s.shape(y, y.Shape[0]/2, 16), 16), y.Shape...)
			}), 32)
		}},
		{"a whole norm after the rotation", "Embed Linear Linear Linear Heads Norm Heads Norm Attention Linear", func(s *sketch) *graph.Node {
			return s.linear(s.attend(s.embed(), func(y *graph.Node) *graph.Node {
				return s.shape(s.rms(s.shape(turn(s, y, 8), y.Width())), y.Shape...)
			}), 32)
		}},
		{"a fused projection cut apart", "Embed Linear", func(s *sketch) *graph.Node {
			y := s.linear(s.embed(), 64)
			return s.binary("mul", s.unary("silu", s.must(s.Slice(y, 0, 0, 32, 1)), 0), s.must(s.Slice(y, 0, 32, 64, 1)))
		}},
		{"a softmax at the end", "Embed Linear Op", func(s *sketch) *graph.Node {
			return s.must(s.Add(graph.OpSoftmax, nil, nil, s.linear(s.embed(), 32)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &sketch{graph.NewBuilder(), t, 0}
			y := c.build(s)
			s.G.Outputs = []graph.Output{{Name: "out", Node: y.ID}}
			p, err := Fuse(s.G, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := kinds(p); got != c.want {
				t.Errorf("compiled to\n%s\nwant\n%s\n%s", got, c.want, program.Text(p))
			}
			for _, st := range p.Steps {
				if st.Kind == program.KindOp && st.Why == "" {
					t.Errorf("an Op step does not say why:\n%s", program.Text(p))
				}
			}
		})
	}
}

// kinds lists the steps but Rows, which stand wherever wanted rows part.
func kinds(p *program.Program) string {
	var out []string
	for _, s := range p.Steps {
		if s.Kind != program.KindRows {
			out = append(out, string(s.Kind))
		}
	}
	return strings.Join(out, " ")
}

// TestSpread holds the broadcast of a load against indexing by hand.
func TestSpread(t *testing.T) {
	for _, c := range []struct{ in, out []int }{
		{[]int{6}, []int{6}}, {[]int{1}, []int{6}}, {[]int{}, []int{6}}, {[]int{4, 1}, []int{4, 6}}, {[]int{6}, []int{4, 6}},
		{[]int{1, 6}, []int{4, 6}}, {[]int{4, 1}, []int{3, 4, 6}}, {[]int{3, 1, 1}, []int{3, 4, 6}}, {[]int{1, 1, 1}, []int{3, 4, 6}},
		{[]int{3, 4, 1}, []int{3, 4, 6}}, {[]int{1, 4, 1}, []int{3, 4, 6}}, {[]int{3, 1, 6}, []int{3, 4, 6}}, {[]int{2, 1, 2, 1}, []int{2, 3, 2, 5}},
	} {
		div, mod, ok := spread(c.in, c.out)
		middle := len(c.in) >= 3 && c.in[0] > 1 && c.in[1] == 1 && c.in[2] > 1
		if ok == middle {
			t.Errorf("%v over %v: possible %v", c.in, c.out, ok)
		}
		if !ok {
			continue
		}
		for i := range graph.Product(c.out) {
			want, rest, stride := 0, i, 1
			for d := len(c.out) - 1; d >= 0; d-- {
				k := rest % c.out[d]
				rest /= c.out[d]
				if at := d - len(c.out) + len(c.in); at >= 0 {
					if c.in[at] > 1 {
						want += k * stride
					}
					stride *= c.in[at]
				}
			}
			if got := i / div % mod; got != want {
				t.Fatalf("%v over %v: value %d reads %d, want %d", c.in, c.out, i, got, want)
			}
		}
	}
}

// TestAssign holds that sharing buffers loses no value that is still to be
// read, on every golden program and its cuts.
func TestAssign(t *testing.T) {
	for _, name := range shapeNames(t) {
		p, _ := compiled(t, name, Options{})
		for _, cuts := range [][]int{nil, {1}, {1, 2}} {
			if len(cuts) > 0 && cuts[len(cuts)-1] >= p.Layers {
				continue
			}
			parts, err := program.Cut(p, cuts...)
			if errors.Is(err, program.ErrCut) && sharesKeys(p) {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, q := range parts {
				checkAssign(t, name, q)
			}
		}
	}
}

// TestCutBounds: a cut lies between two layers; before the first and behind the
// last one a stage would hold only the embedding or the head, or no encoder.
func TestCutBounds(t *testing.T) {
	for _, name := range shapeNames(t) {
		p, _ := compiled(t, name, Options{})
		for _, cuts := range [][]int{{-1}, {0}, {p.Layers}, {p.Layers + 1}, {1, 1}, {2, 1}, {1, p.Layers}} {
			if _, err := program.Cut(p, cuts...); !errors.Is(err, program.ErrCut) {
				t.Errorf("%s: cut before %d: %v", name, cuts, err)
			}
		}
	}
}

// sharesKeys says whether a layer reads the keys and values of another.
func sharesKeys(p *program.Program) bool {
	return slices.ContainsFunc(p.Steps, func(s program.Step) bool {
		a, ok := s.Body.(*program.Attention)
		return ok && a.Attr.Shared
	})
}

// checkAssign runs the program on names of values: every read must find the
// value that the unassigned program reads.
func checkAssign(t *testing.T, name string, p *program.Program) {
	t.Helper()
	var reads [][]program.Buf
	for i := range p.Steps {
		var r []program.Buf
		p.Steps[i].Visit(func(b *program.Buf, _ bool) { r = append(r, *b) })
		reads = append(reads, r)
	}
	in, logits := append([]program.Buf{}, p.In...), p.Logits
	program.Assign(p)
	holds := map[program.Buf]program.Buf{}
	for i, b := range p.In {
		holds[b] = in[i]
	}
	for i := range p.Steps {
		k := 0
		p.Steps[i].Visit(func(b *program.Buf, write bool) {
			v := reads[i][k]
			k++
			if write {
				holds[*b] = v
			} else if holds[*b] != v {
				t.Errorf("%s: step %d (%s) reads buffer %d for value %d, which holds %d", name, i, p.Steps[i].Kind, *b, v, holds[*b])
			}
		})
	}
	if logits != program.None && holds[p.Logits] != logits {
		t.Errorf("%s: the result's buffer holds value %d, not %d", name, holds[p.Logits], logits)
	}
}

// TestErrors gives graphs that have no program.
func TestErrors(t *testing.T) {
	s := &sketch{graph.NewBuilder(), t, 0}
	s.embed()
	if _, err := Fuse(s.G, Options{}); err == nil || !strings.Contains(err.Error(), "no output") {
		t.Errorf("a graph without an output: %v", err)
	}
}
