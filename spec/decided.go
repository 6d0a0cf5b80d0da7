package spec

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// sameName is what == and != of a specification ask first. No specification
// can say it: it is no identifier.
const sameName = "=="

// execute runs a specification's text as starlark.ExecFile does, but == and !=
// of a value, which the language would answer without asking it, are errors.
func execute(t *tracer, file, source string) (starlark.StringDict, error) {
	f, err := fileOptions.Parse(file, source, 0)
	if err != nil {
		return nil, err
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		if e, ok := n.(*syntax.BinaryExpr); ok && (e.Op == syntax.EQL || e.Op == syntax.NEQ) {
			ask := &syntax.Ident{NamePos: e.OpPos, Name: sameName}
			e.X = &syntax.CallExpr{Fn: ask, Lparen: e.OpPos, Args: []syntax.Expr{e.X, e.Y}, Rparen: e.OpPos}
			e.Y = &syntax.Literal{Token: syntax.INT, TokenPos: e.OpPos, Raw: "1", Value: int64(1)}
		}
		return true
	})
	known := starlark.StringDict{sameName: starlark.NewBuiltin(sameName, doSame)}
	for name, v := range predeclared {
		known[name] = v
	}
	p, err := starlark.FileProgram(f, known.Has)
	if err != nil {
		return nil, err
	}
	globals, err := p.Init(t.thread, known)
	globals.Freeze()
	return globals, err
}

// doSame is 1 if x == y, else 0, where neither is a value of the graph; one that is compared
// with None is not None.
func doSame(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	x, y := args[0], args[1]
	if x != starlark.None && y != starlark.None {
		for _, v := range args {
			if v, ok := v.(*value); ok && v.node != nil {
				return nil, fmt.Errorf("a value is compared with ==: %s", notDecided)
			}
		}
	}
	same, err := starlark.Equal(x, y)
	if !same || err != nil {
		return starlark.MakeInt(0), err
	}
	return starlark.MakeInt(1), nil
}

const notDecided = "its numbers are not known while the specification is traced; where(less(a, b), x, y) chooses between values for each token"

// CompareSameType refuses every comparison of two values but of one with itself.
func (v *value) CompareSameType(op syntax.Token, y starlark.Value, _ int) (bool, error) {
	if w, ok := y.(*value); ok && v == w && (op == syntax.EQL || op == syntax.NEQ) {
		return op == syntax.EQL, nil
	}
	return false, fmt.Errorf("two values are compared with %s: %s", op, notDecided)
}

// Truth cannot fail: that a value was asked for it is a problem of its line.
func (v *value) Truth() starlark.Bool {
	if v.node != nil {
		v.t.complain("a value is asked whether it is true (if, and, or, not): %s; \"x != None\" asks whether there is one", notDecided)
	}
	return true
}
