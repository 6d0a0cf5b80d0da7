package spec

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

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

// wordHints are what a message of the interpreter means here.
var wordHints = []struct{ says, hint string }{
	{"got weight, want value", "param(w) makes a value of a weight"},
	{"got string, want value", "a tensor's name is not its value: param(NAME) for a vector, embed and linear for matrices"},
	{"got value, want weight", "a weight is what is stored: tensor(NAME), stacked(…) and expressions of those"},
	{"weight + weight", "param(w) makes a value of a weight"},
	{"weight - weight", "param(w) makes a value of a weight"},
	{"weight * weight", "param(w) makes a value of a weight"},
	{"weight / weight", "param(w) makes a value of a weight"},
	{"value < ", notDecided}, {"value > ", notDecided}, {"value <= ", notDecided}, {"value >= ", notDecided},
	{" < value", notDecided}, {" > value", notDecided}, {" <= value", notDecided}, {" >= value", notDecided},
	{"value // ", "floor(x / y) is the whole part of a quotient"},
	{"value % ", "x - n * floor(x / n) is the remainder"},
	{"unhandled index operation value[", "slice(x, from, to, axis = …) and split(…) take parts of a value"},
}

// hinted adds what is meant to a message.
func hinted(msg string) string {
	for _, h := range wordHints {
		if strings.Contains(msg, h.says) {
			return msg + " (" + h.hint + ")"
		}
	}
	return msg
}

var formatted = regexp.MustCompile(`\b[fF]["']`)

// hintedSyntax adds what stands for Python's words that the language lacks.
func hintedSyntax(err error, source string) error {
	var at syntax.Error
	if !errors.As(err, &at) {
		return err
	}
	lines := strings.Split(source, "\n")
	if at.Pos.Line < 1 || int(at.Pos.Line) > len(lines) {
		return err
	}
	text := lines[at.Pos.Line-1]
	switch {
	case formatted.MatchString(text):
		return fmt.Errorf("%w (there are no f-strings: \"layers.%%d.\" %% i)", err)
	case strings.Contains(text, "**"):
		return fmt.Errorf("%w (there is no **: math.pow(a, b) for numbers, square(x) and power(x, p) for values)", err)
	}
	for _, word := range []string{"class", "try", "import", "from", "with", "yield", "raise", "assert", "global", "is"} {
		if strings.Contains(" "+text+" ", " "+word+" ") {
			return fmt.Errorf("%w (the language has no %q; it is Python without it: docs/spec.md)", err, word)
		}
	}
	return err
}
