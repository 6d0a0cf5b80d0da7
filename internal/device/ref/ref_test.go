package ref

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// points are the arguments of the functions below.
var points = []float64{-30, -4, -1, -0.25, 0, 0.5, 1.75, 6, 25}

// functions are values by PyTorch 2 in float64 (torch.nn.functional).
var functions = []struct {
	f    string
	a, b float64
	want []float64
}{
	{"sigmoid", 0, 0, []float64{9.35762296884e-14, 0.0179862099621, 0.26894142137, 0.437823499114, 0.5, 0.622459331202, 0.851952801968, 0.997527376843, 0.999999999986}},
	{"tanh", 0, 0, []float64{-1, -0.999329299739, -0.761594155956, -0.244918662404, 0, 0.46211715726, 0.941375538497, 0.999987711651, 1}},
	{"softplus", 0, 0, []float64{9.35762296884e-14, 0.0181499279178, 0.313261687518, 0.575939419879, 0.69314718056, 0.97407698418, 1.91022415044, 6.00247568514, 25}},
	{"relu", 0, 0, []float64{0, 0, 0, 0, 0, 0.5, 1.75, 6, 25}},
	{"relu2", 0, 0, []float64{0, 0, 0, 0, 0, 0.25, 3.0625, 36, 625}},
	{"silu", 0, 0, []float64{-2.80728689065e-12, -0.0719448398484, -0.26894142137, -0.109455874779, 0, 0.311229665601, 1.49091740344, 5.98516426106, 24.9999999997}},
	{"gelu", 0, 0, []float64{0, -0.000126684967332, -0.158655253931, -0.100323418579, 0, 0.345731230637, 1.67989647549, 5.99999999408, 25}},
	{"gelu_tanh", 0, 0, []float64{0, -7.02459481923e-05, -0.158808009392, -0.100324649298, 0, 0.345714009825, 1.67979538234, 5.99999999992, 25}},
	{"gelu_quick", 0, 0, []float64{-2.0046797745e-21, -0.00441472413958, -0.154204234067, -0.0988003500998, 0, 0.350388436606, 1.665288315, 5.99977964645, 25}},
	{"expm1", 0, 0, []float64{-1, -0.981684361111, -0.632120558829, -0.221199216929, 0, 0.6487212707, 4.75460267601, 402.428793493, 72004899336.4}},
	{"neg", 0, 0, []float64{30, 4, 1, 0.25, 0, -0.5, -1.75, -6, -25}},
	{"abs", 0, 0, []float64{30, 4, 1, 0.25, 0, 0.5, 1.75, 6, 25}},
	{"square", 0, 0, []float64{900, 16, 1, 0.0625, 0, 0.25, 3.0625, 36, 625}},
	{"floor", 0, 0, []float64{-30, -4, -1, -1, 0, 0, 1, 6, 25}},
	{"round", 0, 0, []float64{-30, -4, -1, 0, 0, 0, 2, 6, 25}},
	{"sin", 0, 0, []float64{0.988031624093, 0.756802495308, -0.841470984808, -0.247403959255, 0, 0.479425538604, 0.983985946874, -0.279415498199, -0.132351750098}},
	{"cos", 0, 0, []float64{0.154251449888, -0.653643620864, 0.540302305868, 0.968912421711, 1, 0.87758256189, -0.178246055649, 0.96017028665, 0.991202811863}},
	{"exp", 0, 0, []float64{9.35762296884e-14, 0.0183156388887, 0.367879441171, 0.778800783071, 1, 1.6487212707, 5.75460267601, 403.428793493, 72004899337.4}},
	{"elu", 0.7, 0, []float64{-0.7, -0.687179052778, -0.44248439118, -0.15483945185, 0, 0.5, 1.75, 6, 25}},
	{"clamp", -0.5, 2, []float64{-0.5, -0.5, -0.5, -0.25, 0, 0.5, 1.75, 2, 2}},
	{"softcap", 3, 0, []float64{-2.99999998763, -2.61018498523, -0.964538212595, -0.249422899301, 0, 0.495421238774, 1.57525182994, 2.89208274023, 2.99999965334}},
	{"scale", -2, 0, []float64{60, 8, 2, 0.5, 0, -1, -3.5, -12, -50}},
	{"add", 1.5, 0, []float64{-28.5, -2.5, 0.5, 1.25, 1.5, 2, 3.25, 7.5, 26.5}},
}

// positive are functions of positive arguments only.
var positive = []struct {
	f    string
	a    float64
	want []float64 // at 0.25, 1, 2.5, 40
}{
	{"log", 0, []float64{-1.38629436112, 0, 0.916290731874, 3.68887945411}},
	{"log1p", 0, []float64{0.223143551314, 0.69314718056, 1.2527629685, 3.7135720667}},
	{"sqrt", 0, []float64{0.5, 1, 1.58113883008, 6.32455532034}},
	{"rsqrt", 0, []float64{2, 1, 0.632455532034, 0.158113883008}},
	{"pow", 1.5, []float64{0.125, 1, 3.95284707521, 252.982212813}},
}

func TestUnary(t *testing.T) {
	tested := map[string]bool{}
	value := func(name string, f func(float64) float64, x, want float64) {
		if got := f(x); math.Abs(got-want) > 1e-9*math.Abs(want)+1e-13 {
			t.Errorf("%s(%g) is %.12g, want %.12g", name, x, got, want)
		}
	}
	for _, c := range functions {
		f, err := Unary(&graph.UnaryAttr{F: c.f, A: c.a, B: c.b})
		if err != nil {
			t.Fatal(err)
		}
		tested[c.f] = true
		for i, x := range points {
			value(c.f, f, x, c.want[i])
		}
	}
	for _, c := range positive {
		f, err := Unary(&graph.UnaryAttr{F: c.f, A: c.a})
		if err != nil {
			t.Fatal(err)
		}
		tested[c.f] = true
		for i, x := range []float64{0.25, 1, 2.5, 40} {
			value(c.f, f, x, c.want[i])
		}
	}
	for name := range graph.UnaryFuncs {
		if !tested[name] {
			t.Errorf("no value of %s is known", name)
		}
	}
	if _, err := Unary(&graph.UnaryAttr{F: "nonsense"}); err == nil {
		t.Error("an unknown function has a meaning")
	}
}

func TestBinary(t *testing.T) {
	for name, want := range map[string][2]float64{ // at (3, −2) and (−2, −2)
		"add": {1, -4}, "sub": {5, 0}, "mul": {-6, 4}, "div": {-1.5, 1}, "max": {3, -2}, "min": {-2, -2}, "pow": {1.0 / 9, 0.25}, "less": {0, 0},
	} {
		f, err := Binary(name)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := f(3, -2), f(-2, -2); math.Abs(a-want[0]) > 1e-15 || b != want[1] {
			t.Errorf("%s: %g and %g, want %v", name, a, b, want)
		}
	}
	if f, _ := Binary("less"); f(1, 2) != 1 {
		t.Error("1 < 2 is not 1")
	}
	for name := range graph.BinaryFuncs {
		if _, err := Binary(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := Binary("nonsense"); err == nil {
		t.Error("an unknown operation has a meaning")
	}
}

func TestVisible(t *testing.T) {
	for _, c := range []struct {
		a      graph.AttentionAttr
		i, n   int
		lo, hi int
	}{
		{graph.AttentionAttr{Mask: graph.MaskCausal}, 5, 9, 0, 6},
		{graph.AttentionAttr{Mask: graph.MaskCausal, Window: 3}, 5, 9, 3, 6},
		{graph.AttentionAttr{Mask: graph.MaskCausal, Window: 1}, 5, 9, 5, 6},
		{graph.AttentionAttr{Mask: graph.MaskCausal, Window: 30}, 5, 9, 0, 6},
		{graph.AttentionAttr{Mask: graph.MaskChunk, Window: 4}, 3, 9, 0, 4},
		{graph.AttentionAttr{Mask: graph.MaskChunk, Window: 4}, 4, 9, 4, 5},
		{graph.AttentionAttr{Mask: graph.MaskChunk, Window: 4}, 7, 9, 4, 8},
		{graph.AttentionAttr{Mask: graph.MaskFull}, 2, 9, 0, 9},
		{graph.AttentionAttr{Mask: graph.MaskFull, Window: 3}, 4, 9, 1, 8},
		{graph.AttentionAttr{Mask: graph.MaskFull, Window: 3}, 8, 9, 5, 9},
		{graph.AttentionAttr{Mask: graph.MaskFull, Window: 3}, 0, 9, 0, 4},
	} {
		if lo, hi := Visible(&c.a, c.i, c.n); lo != c.lo || hi != c.hi {
			t.Errorf("%s window %d: %d of %d sees %d … %d, want %d … %d", c.a.Mask, c.a.Window, c.i, c.n, lo, hi, c.lo, c.hi)
		}
	}
}

func TestRoute(t *testing.T) {
	sig := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	logits := []float32{1, 3, -2, 3, 0.5, 2}
	for _, c := range []struct {
		name string
		a    graph.RouteAttr
		bias []float32
		per  []float32
		idx  []int32
		w    []float64
	}{
		{"bare", graph.RouteAttr{Score: "none"}, nil, nil, []int32{1, 3}, []float64{3, 3}},
		{"one of equals", graph.RouteAttr{Score: "none"}, []float32{0, 0, 0, 0, 0, 2}, nil, []int32{1, 5}, []float64{3, 2}},
		{"sigmoid", graph.RouteAttr{Score: "sigmoid", Scale: 2}, nil, nil, []int32{1, 3}, []float64{2 * sig(3), 2 * sig(3)}},
		{"bias counts for the choice alone", graph.RouteAttr{Score: "sigmoid", Renorm: true}, []float32{0, 0, 9, 0, 0, 9}, nil,
			[]int32{2, 5}, []float64{sig(-2) / (sig(-2) + sig(2)), sig(2) / (sig(-2) + sig(2))}},
		{"softmax of the chosen", graph.RouteAttr{Score: "none", ChosenSoftmax: true}, []float32{9, 0, 0, 0, 0, 9}, nil,
			[]int32{0, 5}, []float64{sig(-1), sig(1)}},
		{"sigmoid of the chosen", graph.RouteAttr{Score: "none", ChosenSigmoid: true}, nil, nil, []int32{1, 3}, []float64{sig(3), sig(3)}},
		{"factor", graph.RouteAttr{Score: "none", Renorm: true, RenormEps: 2, Scale: 4}, nil, []float32{1, 2, 1, 0.5, 1, 1},
			[]int32{1, 3}, []float64{2 * 4 * 3.0 / 8, 0.5 * 4 * 3.0 / 8}},
		{"norm of power 2", graph.RouteAttr{Score: "none", Renorm: true, NormPow: 2}, nil, nil, []int32{1, 3}, []float64{math.Sqrt(0.5), math.Sqrt(0.5)}},
		{"best group", graph.RouteAttr{Score: "none", Groups: 3, TopGroups: 1, GroupScore: "max", GroupFill: math.Inf(-1)}, nil, nil,
			[]int32{0, 1}, []float64{1, 3}},
		{"best pair", graph.RouteAttr{Score: "none", Groups: 2, TopGroups: 1, GroupScore: "top2", GroupFill: math.Inf(-1)}, nil, nil,
			[]int32{3, 5}, []float64{3, 2}},
	} {
		c.a.TopK = 2
		idx, w := make([]int32, 2), make([]float32, 2)
		if err := Route(&c.a, logits, c.bias, c.per, idx, w); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(idx, c.idx) || math.Abs(float64(w[0])-c.w[0]) > 1e-6 || math.Abs(float64(w[1])-c.w[1]) > 1e-6 {
			t.Errorf("%s: %v %v, want %v %v", c.name, idx, w, c.idx, c.w)
		}
	}
	if err := Route(&graph.RouteAttr{Score: "nonsense"}, logits, nil, nil, make([]int32, 1), make([]float32, 1)); err == nil {
		t.Error("an unknown score has a meaning")
	}
}

type shelf map[string]tensor.View

func (s shelf) Tensor(name string) (tensor.View, bool) {
	v, ok := s[name]
	return v, ok
}

// model is one attention over a table, whose reading is easy to say again.
type model struct {
	b   *graph.Builder
	src shelf
	rng *rand.Rand
}

func (m *model) weight(t *testing.T, name string, shape ...int) *graph.Weight {
	t.Helper()
	v := make([]float32, graph.Product(shape))
	for i := range v {
		v[i] = float32(m.rng.NormFloat64())
	}
	data := make([]byte, 4*len(v))
	if err := quant.F32.Encode(data, v); err != nil {
		t.Fatal(err)
	}
	m.src[name] = tensor.View{Name: name, Type: quant.F32, Shape: shape, Data: data}
	return graph.Tensor(name, shape)
}

const (
	heads, kvHeads, dim, rows = 6, 2, 4, 11
)

func attend(t *testing.T, attr graph.AttentionAttr, sinks bool) *Machine {
	t.Helper()
	m := &model{graph.NewBuilder(), shelf{}, rand.New(rand.NewPCG(1, 2))}
	part := func(name string, n int) *graph.Node {
		x, err := m.b.Embed(m.b.Tokens(), m.weight(t, name, rows, n*dim), 0)
		if err == nil {
			x, err = m.b.Reshape(x, []int{n, dim})
		}
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if sinks {
		attr.Sinks = m.weight(t, "sinks", heads)
	}
	y, err := m.b.Attention(part("q", heads), part("k", kvHeads), part("v", kvHeads), attr)
	if err != nil {
		t.Fatal(err)
	}
	m.b.G.Outputs = []graph.Output{{Name: "out", Node: y.ID}}
	return New(m.b.G, m.src)
}

// naive is attention with an explicit matrix of scores and masks.
func naive(t *testing.T, m *Machine, a graph.AttentionAttr, ids []int32, sinks bool) [][]float64 {
	t.Helper()
	get := func(name string) []float32 {
		v := m.src.(shelf)[name]
		out := make([]float32, v.Shape.Elements())
		if err := quant.F32.Decode(out, v.Data); err != nil {
			t.Fatal(err)
		}
		return out
	}
	q, k, v := get("q"), get("k"), get("v")
	out := make([][]float64, len(ids))
	for i := range ids {
		out[i] = make([]float64, heads*dim)
		for h := range heads {
			g := h / (heads / kvHeads)
			if a.Tile {
				g = h % kvHeads
			}
			var weights []float64
			sum := 0.0
			for j := range ids {
				s := 0.0
				for d := range dim {
					s += float64(q[int(ids[i])*heads*dim+h*dim+d]) * float64(k[int(ids[j])*kvHeads*dim+g*dim+d])
				}
				s *= a.Scale
				if a.Softcap > 0 {
					s = a.Softcap * math.Tanh(s/a.Softcap)
				}
				if a.Slopes != nil {
					s += a.Slopes[h] * float64(j-i)
				}
				hidden := j > i || a.Mask == graph.MaskCausal && a.Window > 0 && i-j >= a.Window || a.Mask == graph.MaskChunk && i/a.Window != j/a.Window
				if a.Mask == graph.MaskFull {
					hidden = a.Window > 0 && (i-j > a.Window || j-i > a.Window)
				}
				w := math.Exp(s)
				if hidden {
					w = 0
				}
				weights = append(weights, w)
				sum += w
			}
			if sinks {
				sum += math.Exp(float64(get("sinks")[h]))
			}
			for j, w := range weights {
				for d := range dim {
					out[i][h*dim+d] += w / sum * float64(v[int(ids[j])*kvHeads*dim+g*dim+d])
				}
			}
		}
	}
	return out
}

func seq(ids []int32, at, n int) *batch.Batch {
	b := &batch.Batch{Seqs: []batch.Seq{{ID: 4, N: int32(n), Start: int32(at)}}}
	for i := range n {
		b.Tokens, b.Pos, b.Out = append(b.Tokens, ids[at+i]), append(b.Pos, int32(at+i)), append(b.Out, int32(i))
	}
	return b
}

func TestAttention(t *testing.T) {
	ids := []int32{3, 7, 0, 10, 3, 1, 1, 9, 4, 5, 2, 8, 6, 7}
	for i, a := range []graph.AttentionAttr{
		{Mask: graph.MaskCausal, Scale: 0.5},
		{Mask: graph.MaskCausal, Scale: 0.5, Window: 4, Tile: true},
		{Mask: graph.MaskChunk, Scale: 0.7, Window: 5},
		{Mask: graph.MaskCausal, Scale: 0.5, Softcap: 1.5, Slopes: []float64{0.5, 0.25, 0.125, 0.1, 0.05, 0}},
		{Mask: graph.MaskFull, Scale: 0.5},
		{Mask: graph.MaskFull, Scale: 0.5, Window: 3},
	} {
		for _, sinks := range []bool{false, true} {
			m := attend(t, a, sinks)
			want := naive(t, m, a, ids, sinks)
			for _, chunk := range []int{len(ids), 5, 1} {
				if a.Mask == graph.MaskFull && chunk < len(ids) {
					continue
				}
				m.Forget(4)
				for at := 0; at < len(ids); at += chunk {
					out, err := m.Run(seq(ids, at, min(chunk, len(ids)-at)))
					if err != nil {
						t.Fatal(err)
					}
					for r, row := range out {
						for k, v := range row {
							if math.Abs(float64(v)-want[at+r][k]) > 1e-5 {
								t.Fatalf("form %d, sinks %v, chunks of %d: position %d, value %d is %g, want %g", i, sinks, chunk, at+r, k, v, want[at+r][k])
							}
						}
					}
				}
			}
		}
	}
}

// TestThreads holds that splitting rows changes no bit.
func TestThreads(t *testing.T) {
	ids := []int32{3, 7, 0, 10, 3, 1, 1, 9}
	m := attend(t, graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.5}, true)
	m.Threads = 1
	want, err := m.Run(seq(ids, 0, len(ids)))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3, 64} {
		m.Threads = n
		m.Forget(4)
		got, err := m.Run(seq(ids, 0, len(ids)))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d threads give other values", n)
		}
	}
}

func TestMachineErrors(t *testing.T) {
	m := attend(t, graph.AttentionAttr{Mask: graph.MaskCausal, Scale: 0.5}, false)
	if _, err := m.Run(seq([]int32{1, 2, 3, 4}, 2, 2)); err == nil || !strings.Contains(err.Error(), "position 2") {
		t.Errorf("a sequence that begins in the middle: %v", err)
	}
	for _, id := range []int32{rows, -1} {
		if _, err := m.Run(seq([]int32{1, id}, 0, 2)); err == nil || !strings.Contains(err.Error(), fmt.Sprint(id)) {
			t.Errorf("token %d: %v", id, err)
		}
	}
	delete(m.src.(shelf), "k")
	if _, err := New(m.Graph, m.src).Run(seq([]int32{1}, 0, 1)); err == nil || !strings.Contains(err.Error(), "k") {
		t.Errorf("a missing tensor: %v", err)
	}
}

// TestAngle holds the rotation against complex multiplication, both layouts.
func TestAngle(t *testing.T) {
	f := []float32{1, 0.1, 0.01}
	for _, interleaved := range []bool{false, true} {
		x := []float32{1, 2, 3, 4, 5, 6}
		y := slices.Clone(x)
		rotate(y, 1234, f, 1.5, interleaved)
		for j := range f {
			p, q := j, j+3
			if interleaved {
				p, q = 2*j, 2*j+1
			}
			a := float64(float32(1234) * f[j])
			re, im := float64(x[p])*math.Cos(a)-float64(x[q])*math.Sin(a), float64(x[p])*math.Sin(a)+float64(x[q])*math.Cos(a)
			if math.Abs(float64(y[p])-1.5*re) > 1e-5 || math.Abs(float64(y[q])-1.5*im) > 1e-5 {
				t.Errorf("interleaved %v: pair %d is %g, %g, want %g, %g", interleaved, j, y[p], y[q], 1.5*re, 1.5*im)
			}
		}
	}
}
