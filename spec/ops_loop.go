package spec

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

const docRecur = `recur(step, start)
Any recurrence, one token after the other, for what no other word says: LSTM, GRU, sLSTM, states that learn by gradient. step is a function of the list of states that the token before
left; it returns the new states and what comes out. It is run once, when the model is opened, and reads the token's values where they stand around it.
Its operations run as they stand, one after the other for every token, on one core a sequence. What does not read the states belongs around the function, and a recurrence that one of the other words says is fast. docs/spec.md has examples.
- step: a function of the list of states, which returns (list of new states, result). In it may stand arithmetic, functions, dot, linear, head_linear, norms, reductions, softmax, where, gather
  and shapes; nothing that keeps a state itself, nor attention, experts, rope and embed.
- start: the list of states before the first token, the same for all texts: const(…), param(…).
Errors: other words in step, new states of another shape, states that begin with a value of the token.
`

// doRecur traces the step of a recurrence.
func doRecur(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var step starlark.Callable
	var start *starlark.List
	if err := starlark.UnpackArgs(name, args, kwargs, "step", &step, "start", &start); err != nil {
		return nil, err
	}
	var first []*graph.Node
	for i := range start.Len() {
		x, err := asValue(start.Index(i))
		if err != nil {
			return nil, fmt.Errorf("recur: start: %w", err)
		}
		if x.node == nil {
			return &value{t: t}, nil
		}
		first = append(first, x.node)
	}
	outer, unknown := t.b, false
	defer func() { t.b = outer }()
	n, err := outer.Loop(first, func(in *graph.Builder, states []*graph.Node) ([]*graph.Node, error) {
		t.b = in
		given := make([]starlark.Value, len(states))
		for i, s := range states {
			given[i] = &value{t: t, node: s}
		}
		out, err := starlark.Call(t.thread, step, starlark.Tuple{starlark.NewList(given)}, nil)
		if err != nil {
			return nil, err
		}
		nodes, err := stepResults(out, len(states))
		for _, n := range nodes {
			unknown = unknown || n == nil
		}
		if err == nil && unknown {
			err = fmt.Errorf("recur: a result is unknown")
		}
		return nodes, err
	})
	t.b = outer
	if unknown {
		return &value{t: t}, nil // a problem inside is told already
	}
	if _, inside := err.(*starlark.EvalError); inside {
		return nil, err
	}
	return t.made(n, err)
}

// stepResults reads what a step returns: the new states, then the result.
func stepResults(out starlark.Value, states int) ([]*graph.Node, error) {
	pair, ok := out.(starlark.Tuple)
	if !ok || len(pair) != 2 {
		return nil, fmt.Errorf("recur: step returns the list of new states and the result, got %s", cut(out.String()))
	}
	list, ok := pair[0].(starlark.Indexable)
	if !ok || list.Len() != states {
		return nil, fmt.Errorf("recur: step returns a list of %d new states first, got %s", states, cut(pair[0].String()))
	}
	var nodes []*graph.Node
	for i := range states + 1 {
		v := pair[1]
		if i < states {
			v = list.Index(i)
		}
		x, err := asValue(v)
		if err != nil {
			return nil, fmt.Errorf("recur: %w", err)
		}
		nodes = append(nodes, x.node)
	}
	return nodes, nil
}
