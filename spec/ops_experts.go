package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

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
	if a.Groups <= 1 {
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
