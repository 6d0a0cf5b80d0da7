package devicetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

const (
	vocab = 61
	width = 64
)

// net is a graph under construction with its random weights.
type net struct {
	*graph.Builder
	t   *testing.T
	rng *rand.Rand
	src source

	ref  *ref.Machine
	said [][][]float32 // the reference's answers to the batches run so far
}

// source gives the tensors of a net.
type source map[string]tensor.View

// Tensor implements weight.Source.
func (s source) Tensor(name string) (tensor.View, bool) {
	v, ok := s[name]
	return v, ok
}

func newNet(t *testing.T, seed uint64) *net {
	return &net{Builder: graph.NewBuilder(), t: t, rng: rand.New(rand.NewPCG(seed, 17)), src: source{}}
}

// finish makes x the result.
func (n *net) finish(x *graph.Node) {
	n.G.Outputs = []graph.Output{{Name: "logits", Node: x.ID}}
	n.G.Layers = n.Layer + 1
}

func (n *net) must(x *graph.Node, err error) *graph.Node {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
	return x
}

// floats draws values around mean.
func (n *net) floats(count int, mean, spread float64) []float32 {
	v := make([]float32, count)
	for i := range v {
		v[i] = float32(mean + spread*n.rng.NormFloat64())
	}
	return v
}

// store keeps values as a tensor of a type.
func (n *net) store(typ quant.Type, v []float32, shape ...int) *graph.Weight {
	n.t.Helper()
	size, ok := typ.RowBytes(shape[len(shape)-1])
	if !ok {
		n.t.Fatalf("rows of %v do not fit %s", shape, typ)
	}
	size *= len(v) / shape[len(shape)-1]
	b := make([]byte, size)
	if typ.CanEncode() {
		if err := typ.Encode(b, v); err != nil {
			n.t.Fatal(err)
		}
	} else {
		n.blocks(typ, b)
	}
	name := fmt.Sprintf("t%d", len(n.src))
	n.src[name] = tensor.View{Name: name, Type: typ, Shape: shape, Data: b}
	return graph.Tensor(name, shape)
}

// blocks fills a tensor of a type without an encoder: random codes under a
// random scale at the head of each block.
func (n *net) blocks(typ quant.Type, b []byte) {
	l, _ := typ.Layout()
	for i := range b {
		b[i] = byte(n.rng.Uint32())
	}
	for at := 0; at < len(b); at += l.Bytes {
		binary.LittleEndian.PutUint16(b[at:], quant.ToF16(float32(2e-5*(1+n.rng.Float64()))))
	}
}

// matrix is a random weight [.., in] whose products keep the size of their input.
func (n *net) matrix(typ quant.Type, shape ...int) *graph.Weight {
	count := graph.Product(shape)
	return n.store(typ, n.floats(count, 0, 1/math.Sqrt(float64(shape[len(shape)-1]))), shape...)
}

func (n *net) vector(mean float64, shape ...int) *graph.Weight {
	return n.store(quant.F32, n.floats(graph.Product(shape), mean, 0.2), shape...)
}

// embed is the beginning of most nets: random rows by token.
func (n *net) embed() *graph.Node {
	return n.must(n.Embed(n.Tokens(), n.store(quant.F32, n.floats(vocab*width, 0, 1), vocab, width), 0))
}

func (n *net) linear(x *graph.Node, out int) *graph.Node {
	return n.must(n.Linear(x, n.matrix(quant.F32, out, x.Shape[len(x.Shape)-1]), nil))
}

func (n *net) biased(x *graph.Node, out int) *graph.Node {
	return n.must(n.Linear(x, n.matrix(quant.F32, out, x.Shape[len(x.Shape)-1]), n.vector(0, out)))
}

func (n *net) rms(x *graph.Node) *graph.Node {
	return n.norm(x, graph.NormAttr{Kind: graph.RMS, Eps: 1e-5, W: n.vector(1, x.Shape[len(x.Shape)-1])})
}

func (n *net) norm(x *graph.Node, a graph.NormAttr) *graph.Node { return n.must(n.Norm(x, a)) }

func (n *net) reshape(x *graph.Node, shape ...int) *graph.Node { return n.must(n.Reshape(x, shape)) }

func (n *net) unary(f string, x *graph.Node, p ...float64) *graph.Node {
	p = append(p, 0, 0)
	return n.must(n.Unary(f, x, p[0], p[1]))
}

func (n *net) binary(f string, x, y *graph.Node) *graph.Node { return n.must(n.Binary(f, x, y)) }

func (n *net) add(x, y *graph.Node) *graph.Node { return n.binary("add", x, y) }

// table numbers a plain rotary table of dim components.
func (n *net) table(dim int) int {
	t := &graph.RopeTable{Dim: dim, Factor: 1}
	for j := 0; j < dim/2; j++ {
		t.Freq = append(t.Freq, math.Pow(100, -2*float64(j)/float64(dim)))
	}
	return n.AddRope(t)
}

func (n *net) rope(x *graph.Node, a graph.RopeAttr) *graph.Node { return n.must(n.Rope(x, a)) }

// head sizes of an attention block.
type heads struct{ q, kv, dim, value int }

// attend is a whole attention block with a residual; edit changes q, k and v
// before they are used, attr the attention itself.
func (n *net) attend(x *graph.Node, h heads, attr graph.AttentionAttr, edit func(i int, y *graph.Node) *graph.Node) *graph.Node {
	if h.value == 0 {
		h.value = h.dim
	}
	if edit == nil {
		edit = func(_ int, y *graph.Node) *graph.Node { return y }
	}
	if attr.Mask == "" {
		attr.Mask = graph.MaskCausal
	}
	if attr.Scale == 0 {
		attr.Scale = 1 / math.Sqrt(float64(h.dim))
	}
	in := n.rms(x)
	q := edit(0, n.reshape(n.linear(in, h.q*h.dim), h.q, h.dim))
	k := edit(1, n.reshape(n.linear(in, h.kv*h.dim), h.kv, h.dim))
	v := edit(2, n.reshape(n.linear(in, h.kv*h.value), h.kv, h.value))
	a := n.must(n.Attention(q, k, v, attr))
	return n.add(x, n.linear(n.reshape(a, h.q*h.value), x.Width()))
}

// ffn is a gated feed-forward block with a residual.
func (n *net) ffn(x *graph.Node, act string) *graph.Node {
	h := n.rms(x)
	return n.add(x, n.linear(n.binary("mul", n.unary(act, n.linear(h, 96)), n.linear(h, 96)), x.Width()))
}

// head is the end of most nets.
func (n *net) head(x *graph.Node) *graph.Node { return n.linear(n.rms(x), vocab) }
