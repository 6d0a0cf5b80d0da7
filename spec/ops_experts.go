package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

const docRoute = `route(scores, k, score="softmax", chosen_softmax=False, chosen_sigmoid=False, renorm=False, renorm_eps=0, norm_pow=0, scale=1, bias=None, groups=0, top_groups=0, group_score="max", group_fill=0, per_expert=None, identity=0)
Chooses k of the experts and their weights. In this order: score maps all scores; bias is added for the choice; groups are thinned; the k largest are chosen (a tie goes
to the lower index); their weights are the mapped scores without bias; chosen_softmax or chosen_sigmoid maps the chosen; renorm divides; scale and per_expert multiply.
Its only use is in experts.
- scores: a value [experts], the router's linear.
- k: how many are chosen.
- score: "softmax" (over all), "sigmoid", "none".
- chosen_softmax: softmax over the chosen scores.
- chosen_sigmoid: sigmoid of the chosen scores.
- renorm: divides by the sum of the chosen weights.
- renorm_eps: is added to that sum.
- norm_pow: p of a p-norm that takes the place of the sum (0: the sum).
- scale: multiplies the weights (routed_scaling_factor).
- bias: a tensor [experts] (e_score_correction_bias) that counts for the choice only.
- groups: the experts stand in so many equal groups, of which
- top_groups: so many are kept,
- group_score: by their "max" or the sum of their "top2".
- group_fill: the score that the experts of the other groups get.
- per_expert: a tensor [experts] of factors.
- identity: the last so many experts return their input.
Errors: k beyond the experts, groups that do not divide them or hold fewer than k, a bias of another size, an unknown score.
`

func doRoute(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value
	a := graph.RouteAttr{Score: "softmax", GroupScore: "max", Scale: 1}
	var renormEps, normPow, fill number
	scale := number(1)
	var bias, perExpert starlark.Value
	err := starlark.UnpackArgs(name, args, kwargs, "scores", &x, "k", &a.TopK, "score?", &a.Score, "chosen_softmax?", &a.ChosenSoftmax,
		"chosen_sigmoid?", &a.ChosenSigmoid, "renorm?", &a.Renorm, "renorm_eps?", &renormEps, "norm_pow?", &normPow, "scale?", &scale,
		"bias?", &bias, "groups?", &a.Groups, "top_groups?", &a.TopGroups, "group_score?", &a.GroupScore, "group_fill?", &fill,
		"per_expert?", &perExpert, "identity?", &a.Identity)
	if err != nil {
		return nil, err
	}
	a.RenormEps, a.NormPow, a.Scale, a.GroupFill = float64(renormEps), float64(normPow), float64(scale), float64(fill)
	if a.Groups <= 1 || a.TopGroups == a.Groups { // all may be chosen
		a.Groups, a.TopGroups, a.GroupScore = 0, 0, ""
	}
	known := x.node != nil
	if err := t.optionalWeight(bias, &a.Bias, &known); err != nil {
		return nil, err
	}
	if err := t.optionalWeight(perExpert, &a.PerExpert, &known); err != nil {
		return nil, err
	}
	if !known {
		return &value{t: t}, nil
	}
	return t.apply(graph.OpRoute, &a, x)
}

// optionalWeight reads a weight or name, or None; known becomes false where
// the weight is unknown.
func (t *tracer) optionalWeight(v starlark.Value, dst **graph.Weight, known *bool) error {
	if isNone(v) {
		return nil
	}
	w, err := t.named(v)
	if err != nil {
		return err
	}
	*dst = w.w
	*known = *known && w.w != nil
	return nil
}

const docExperts = `experts(x, route, up, down, gate=None, act="silu", gate_bias=None, up_bias=None, down_bias=None, alpha=0, limit=0, weight_input=False)
Σ w_e · down_e(act(gate_e x) · up_e x) over the chosen experts, in ascending order; without gate, down_e(act(up_e x)). [width] gives [width].
- x: a value [width].
- route: of route(…).
- up: a weight [experts, inner, width]; stacked(…) makes one of tensors stored one by one.
- down: a weight [experts, width, inner].
- gate: as up; None: not gated.
- act: a name that activation knows, or "swiglu_clamp": (clamp(u, −limit, limit) + 1) · g · sigmoid(alpha·g) with g = min(gate, limit).
- gate_bias, up_bias: tensors [experts, inner].
- down_bias: a tensor [experts, width].
- alpha: of swiglu_clamp.
- limit: with another act, a limit above 0 clamps gate from above and up to ±limit.
- weight_input: the weight multiplies the expert's input, not its output.
Errors: shapes that do not fit each other or the route.
`

func doExperts(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x, route *value
	var a graph.ExpertsAttr
	var gate, up, down, gateBias, upBias, downBias starlark.Value
	act := "silu"
	alpha, limit := number(0), number(0)
	err := starlark.UnpackArgs(name, args, kwargs, "x", &x, "route", &route, "up", &up, "down", &down, "gate?", &gate, "act?", &act,
		"gate_bias?", &gateBias, "up_bias?", &upBias, "down_bias?", &downBias, "alpha?", &alpha, "limit?", &limit, "weight_input?", &a.WeightInput)
	if err != nil {
		return nil, err
	}
	a.Act = act
	if act != "swiglu_clamp" {
		if a.Act, err = activationOf(act); err != nil {
			return nil, err
		}
	}
	a.Alpha, a.Limit = float64(alpha), float64(limit)
	known := x.node != nil && route.node != nil
	for _, o := range []struct {
		v   starlark.Value
		dst **graph.Weight
	}{{gate, &a.Gate}, {up, &a.Up}, {down, &a.Down}, {gateBias, &a.GateBias}, {upBias, &a.UpBias}, {downBias, &a.DownBias}} {
		if err := t.optionalWeight(o.v, o.dst, &known); err != nil {
			return nil, err
		}
	}
	if !known {
		return &value{t: t}, nil
	}
	if len(a.Up.Shape) == 0 {
		return nil, fmt.Errorf("experts: up is [experts, inner, width], got %v", a.Up.Shape)
	}
	a.Experts = a.Up.Shape[0]
	return t.apply(graph.OpExperts, &a, x, route)
}
