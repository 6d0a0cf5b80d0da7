package devicetest

import (
	"math"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
)

const (
	experts = 12
	inner   = 48
)

// moe is an expert block with a residual over a norm of x. edit changes the
// attributes before the nodes are made; typ is the type of the experts.
func (n *net) moe(x *graph.Node, typ quant.Type, edit func(r *graph.RouteAttr, e *graph.ExpertsAttr)) *graph.Node {
	h := n.rms(x)
	return n.add(x, n.mixture(h, h, typ, edit))
}

// mixture routes by the value from and gives x to the experts.
func (n *net) mixture(x, from *graph.Node, typ quant.Type, edit func(r *graph.RouteAttr, e *graph.ExpertsAttr)) *graph.Node {
	w := x.Width()
	r := graph.RouteAttr{TopK: 3, Score: "softmax"}
	e := graph.ExpertsAttr{Experts: experts, Act: "silu"}
	if edit != nil {
		edit(&r, &e)
	}
	k := inner
	if l, _ := typ.Layout(); k%l.Block != 0 {
		k = max(64, l.Block)
	}
	e.Up, e.Down = n.matrix(typ, e.Experts, k, w), n.matrix(typ, e.Experts, w, k)
	if e.Gate == ungated {
		e.Gate = nil
	} else {
		e.Gate = n.matrix(typ, e.Experts, k, w)
	}
	for _, b := range []struct {
		at    **graph.Weight
		shape int
	}{{&e.GateBias, k}, {&e.UpBias, k}, {&e.DownBias, w}} {
		if *b.at != nil {
			*b.at = n.vector(0, e.Experts, b.shape)
		}
	}
	scores := n.must(n.Linear(from, n.store(quant.F32, n.floats((e.Experts+r.Identity)*w, 0, 2/math.Sqrt(float64(w))), e.Experts+r.Identity, w), nil))
	route := n.must(n.Add(graph.OpRoute, &r, nil, scores))
	return n.must(n.Add(graph.OpExperts, &e, nil, x, route))
}

// wanted marks a bias that mixture is to make, ungated a gate that it leaves out.
var wanted, ungated = &graph.Weight{}, &graph.Weight{}

func moeCase(name string, edit func(n *net, r *graph.RouteAttr, e *graph.ExpertsAttr)) testCase {
	return testCase{name: "moe/" + name, has: []program.Kind{program.KindMoE}, build: func(n *net) *graph.Node {
		x := n.embed()
		for n.Layer = 0; n.Layer < 2; n.Layer++ {
			x = n.attend(x, heads{q: 2, kv: 1, dim: 16}, graph.AttentionAttr{}, nil)
			x = n.moe(x, quant.F32, func(r *graph.RouteAttr, e *graph.ExpertsAttr) { edit(n, r, e) })
		}
		n.Layer--
		return n.head(x)
	}}
}

type routing = graph.RouteAttr

func routeCase(name string, r routing) testCase {
	return moeCase(name, func(_ *net, a *graph.RouteAttr, _ *graph.ExpertsAttr) { *a = r })
}

func actCase(act string) testCase {
	return moeCase(act, func(_ *net, _ *graph.RouteAttr, e *graph.ExpertsAttr) { e.Act = act })
}

var moeCases = []testCase{
	routeCase("softmax", routing{TopK: 2, Score: "softmax"}),
	routeCase("softmax, renormalised", routing{TopK: 3, Score: "softmax", Renorm: true}),
	routeCase("one expert", routing{TopK: 1, Score: "softmax"}),
	routeCase("all experts", routing{TopK: experts, Score: "softmax"}),
	routeCase("sigmoid", routing{TopK: 3, Score: "sigmoid", Scale: 2.5}),
	routeCase("sigmoid, renormalised", routing{TopK: 3, Score: "sigmoid", Renorm: true, RenormEps: 1e-2, Scale: 1.5}),
	routeCase("softmax of the chosen", routing{TopK: 3, Score: "none", ChosenSoftmax: true}),
	routeCase("sigmoid of the chosen", routing{TopK: 1, Score: "none", ChosenSigmoid: true}),
	routeCase("bare scores", routing{TopK: 3, Score: "none"}),
	routeCase("norm of power 2", routing{TopK: 4, Score: "softmax", Renorm: true, NormPow: 2}),
	routeCase("groups by the best", routing{TopK: 3, Score: "softmax", Groups: 4, TopGroups: 2, GroupScore: "max"}),
	routeCase("groups by the best two", routing{TopK: 3, Score: "sigmoid", Groups: 3, TopGroups: 1, GroupScore: "top2", Renorm: true}),
	routeCase("groups filled with the lowest", routing{TopK: 4, Score: "none", Groups: 6, TopGroups: 2, GroupScore: "top2", GroupFill: math.Inf(-1)}),
	moeCase("bias of the choice", func(n *net, r *graph.RouteAttr, _ *graph.ExpertsAttr) {
		*r = routing{TopK: 3, Score: "sigmoid", Bias: n.vector(0, experts), Groups: 4, TopGroups: 2, GroupScore: "top2", Renorm: true, Scale: 2}
	}),
	moeCase("factor of each expert", func(n *net, r *graph.RouteAttr, _ *graph.ExpertsAttr) {
		r.PerExpert, r.Renorm = n.vector(1, experts), true
	}),
	moeCase("weighted input", func(_ *net, r *graph.RouteAttr, e *graph.ExpertsAttr) {
		*r, e.WeightInput = routing{TopK: 2, Score: "none", ChosenSigmoid: true}, true
	}),
	moeCase("identities", func(_ *net, r *graph.RouteAttr, _ *graph.ExpertsAttr) { r.TopK, r.Identity, r.Scale = 5, 4, 1.5 }),
	moeCase("ungated", func(_ *net, _ *graph.RouteAttr, e *graph.ExpertsAttr) { e.Gate, e.Act = ungated, "relu2" }),
	moeCase("ungated, biased", func(_ *net, _ *graph.RouteAttr, e *graph.ExpertsAttr) {
		e.Gate, e.UpBias, e.DownBias, e.Act = ungated, wanted, wanted, "gelu"
	}),
	moeCase("biased", func(_ *net, _ *graph.RouteAttr, e *graph.ExpertsAttr) {
		e.GateBias, e.UpBias, e.DownBias = wanted, wanted, wanted
	}),
	moeCase("clamped", func(_ *net, _ *graph.RouteAttr, e *graph.ExpertsAttr) { e.Limit = 0.4 }),
	moeCase("clamped swiglu", func(_ *net, r *graph.RouteAttr, e *graph.ExpertsAttr) {
		*r = routing{TopK: 3, Score: "none", ChosenSoftmax: true}
		e.Act, e.Alpha, e.Limit = "swiglu_clamp", 1.702, 0.8
		e.GateBias, e.UpBias, e.DownBias = wanted, wanted, wanted
	}),
	actCase("gelu_tanh"), actCase("gelu"), actCase("relu"),
	{name: "moe/router of another value", has: []program.Kind{program.KindMoE}, build: func(n *net) *graph.Node {
		x := n.embed()
		return n.head(n.add(x, n.mixture(n.rms(x), n.rms(n.unary("tanh", x)), quant.F32, nil)))
	}},
	{name: "moe/router before the norm", has: []program.Kind{program.KindMoE}, build: func(n *net) *graph.Node {
		x := n.embed()
		return n.head(n.add(x, n.unary("scale", n.mixture(n.rms(x), x, quant.F32, nil), 0.5)))
	}},
	{name: "moe/beside a shared expert", has: []program.Kind{program.KindMoE}, build: func(n *net) *graph.Node {
		x := n.embed()
		h := n.rms(x)
		shared := n.linear(n.binary("mul", n.unary("silu", n.linear(h, 96)), n.linear(h, 96)), width)
		gate := n.unary("sigmoid", n.linear(h, 1))
		return n.head(n.add(x, n.add(n.mixture(h, h, quant.F32, nil), n.binary("mul", gate, shared))))
	}},
	{name: "moe/one route for two layers", has: []program.Kind{program.KindOp, program.KindRows}, build: func(n *net) *graph.Node {
		n.Layer = 0
		e := n.embed()
		first := n.mixture(e, e, quant.F32, nil)
		route := n.G.Nodes[first.In[1]]
		x := n.attend(n.add(e, first), heads{q: 2, kv: 1, dim: 16}, graph.AttentionAttr{}, nil)
		again := n.must(n.Add(graph.OpExperts, first.Attr, nil, x, route))
		return n.head(n.add(x, again))
	}},
	{name: "moe/narrow output of weighted inputs", has: []program.Kind{program.KindMoE}, build: func(n *net) *graph.Node {
		x := n.embed()
		r := n.must(n.Add(graph.OpRoute, &graph.RouteAttr{TopK: 2, Score: "sigmoid"}, nil, n.linear(x, experts)))
		a := &graph.ExpertsAttr{Experts: experts, Act: "silu", WeightInput: true, Gate: n.matrix(quant.F32, experts, inner, width),
			Up: n.matrix(quant.F32, experts, inner, width), Down: n.matrix(quant.F32, experts, 8, inner)}
		return n.linear(n.must(n.Add(graph.OpExperts, a, nil, x, r)), vocab)
	}},
	{name: "moe/an activation after it", has: []program.Kind{program.KindMoE, program.KindElementwise}, build: func(n *net) *graph.Node {
		x := n.embed()
		return n.head(n.unary("tanh", n.mixture(x, x, quant.F32, nil)))
	}},
}
