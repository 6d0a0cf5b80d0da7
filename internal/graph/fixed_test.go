package graph

import (
	"strings"
	"testing"
)

// TestTokenWork bounds what each token multiplies, within recur too.
func TestTokenWork(t *testing.T) {
	many := func(times int) func(b *Builder) (*Node, error) {
		return func(b *Builder) (*Node, error) {
			x, err := b.Embed(b.Tokens(), Tensor("embed", []int{8, 512}), 0)
			if err != nil {
				return nil, err
			}
			square, err := b.Const(make([]float64, 512*512), []int{512, 512})
			if err == nil {
				square, err = b.Binary("add", square, x)
			}
			for range times {
				if err == nil {
					square, err = b.Add(OpDot, &DotAttr{}, nil, square, square)
				}
			}
			return square, err
		}
	}
	inside := func(times int) func(b *Builder) (*Node, error) {
		return func(b *Builder) (*Node, error) {
			x, err := many(0)(b)
			if err != nil {
				return nil, err
			}
			zero, err := b.Const(make([]float64, 4), []int{4})
			if err != nil {
				return nil, err
			}
			return b.Loop([]*Node{zero}, func(body *Builder, s []*Node) ([]*Node, error) {
				y := x
				for range times {
					if y, err = body.Add(OpDot, &DotAttr{}, nil, y, x); err != nil {
						return nil, err
					}
				}
				return []*Node{s[0], y}, nil
			})
		}
	}
	for what, c := range map[string]struct {
		make func(b *Builder) (*Node, error)
		say  string
	}{
		"few": {many(100), ""}, "many": {many(200), "each token takes 1.731e+10 products"},
		"few inside": {inside(100), ""}, "many inside": {inside(200), "each token takes 1.731e+10 products"},
	} {
		b := NewBuilder()
		x, err := c.make(b)
		if err == nil {
			b.G.Outputs = []Output{{"logits", x.ID}}
			err = Validate(b.G)
		}
		if c.say == "" && err != nil || c.say != "" && (err == nil || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%s: %v, want %q", what, err, c.say)
		}
	}
}

// TestFixed bounds what a model computes once at load; nothing is computed to
// find that out.
func TestFixed(t *testing.T) {
	square := func(b *Builder, n int) *Node {
		x, err := b.Param(Tensor("w", []int{n, n}))
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for what, c := range map[string]struct {
		make func(b *Builder) (*Node, error)
		say  string // "" where it is to be served
	}{
		"positions of 48 layers": {func(b *Builder) (x *Node, err error) {
			r, err := b.Param(Tensor("positions", []int{512, 1536}))
			for range 2 * 48 {
				if err == nil {
					x, err = b.Linear(r, Tensor("p", []int{1536, 1536}), nil)
				}
				if err == nil {
					x, err = b.Reshape(x, []int{512, 24, 64})
				}
				if err == nil {
					x, err = b.Add(OpTranspose, &TransposeAttr{Perm: []int{1, 0, 2}}, nil, x)
				}
				if err == nil {
					x, err = b.Unary("clamp", x, -1, 1)
				}
			}
			return x, err
		}, ""},
		"one product": {func(b *Builder) (*Node, error) {
			return b.Add(OpDot, &DotAttr{}, nil, square(b, 1024), square(b, 1024))
		}, ""},
		"large product": {func(b *Builder) (*Node, error) {
			return b.Add(OpDot, &DotAttr{}, nil, square(b, 4096), square(b, 4096))
		}, "products"},
		"many products": {func(b *Builder) (x *Node, err error) {
			x = square(b, 1024)
			for range 30 {
				if x, err = b.Add(OpDot, &DotAttr{}, nil, x, x); err != nil {
					break
				}
			}
			return x, err
		}, "products"},
		"many matrices": {func(b *Builder) (x *Node, err error) {
			x = square(b, 4096)
			for range 10 {
				if x, err = b.Linear(x, Tensor("p", []int{4096, 4096}), nil); err != nil {
					break
				}
			}
			return x, err
		}, "products"},
		"many values": {func(b *Builder) (x *Node, err error) {
			x = square(b, 4096)
			for range 100 {
				if x, err = b.Unary("exp", x, 0, 0); err != nil {
					break
				}
			}
			return x, err
		}, "values"},
		"many sums": {func(b *Builder) (x *Node, err error) {
			w := square(b, 1<<16)
			for range 10 {
				if x, err = b.Add(OpReduce, &ReduceAttr{F: "sum"}, nil, w); err != nil {
					break
				}
			}
			return x, err
		}, "products"},
		"doubled": {func(b *Builder) (x *Node, err error) {
			x = square(b, 8)
			for range 32 {
				if x, err = b.Add(OpConcat, &ConcatAttr{}, nil, x, x); err != nil {
					break
				}
			}
			return x, err
		}, "values"},
	} {
		b := NewBuilder()
		x, err := c.make(b)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		b.G.Outputs = []Output{{"logits", x.ID}}
		err = Validate(b.G)
		if (err == nil) != (c.say == "") || err != nil && !strings.Contains(err.Error(), "same for all tokens") || err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: got %v, want an error of %q", what, err, c.say)
		}
	}
}
