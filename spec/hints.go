package spec

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"
)

// wordHints are what a message of the interpreter means here. The first that fits is told.
var wordHints = []struct{ says, hint string }{
	{"got weight, want value", "param(w) makes a value of a weight"},
	{"got string, want value", "a tensor's name is not its value: param(NAME) for a vector, embed and linear for matrices"},
	{"got int, want value", numberHint}, {"got float, want value", numberHint},
	{"got value, want float or int", "math.… is of numbers; sqrt, exp, log and so on without math. are of values"},
	{"got value, want weight", weightHint}, {"a tensor or a weight, got value", weightHint + "; a product of two values is x * y, dot(x, y) or head_linear"},
	{"weight + weight", "param(w) makes a value of a weight"},
	{"weight - weight", "param(w) makes a value of a weight"},
	{"weight * weight", "param(w) makes a value of a weight"},
	{"weight / weight", "param(w) makes a value of a weight"},
	{"max: int > value", twoHint}, {"max: float > value", twoHint}, {"max: value > ", twoHint}, {"min: int < value", twoHint}, {"min: float < value", twoHint}, {"min: value < ", twoHint},
	{"unexpected keyword argument \"scores\"", "it is score"},
	{"value < ", notDecided}, {"value > ", notDecided}, {"value <= ", notDecided}, {"value >= ", notDecided},
	{" < value", notDecided}, {" > value", notDecided}, {" <= value", notDecided}, {" >= value", notDecided},
	{"value // ", "floor(x / y) is the whole part of a quotient"},
	{"value % ", "x - n * floor(x / n) is the remainder"},
	{"unhandled index operation value[", partsHint}, {"invalid slice operand value", partsHint},
	{"value does not support item assignment", "values do not change: concat, where and x += y make new ones"},
	{"unhandled index operation weight[", "rows(w, from, to), slice(w, from, to, axis = …) take parts of a weight"},
	{"unhandled index operation config[", "c.KEY, c.get(KEY, default), or c.key(KEY) for a name that is no word of the language"},
	{"got value in sequence assignment", "split(x, [n, m], axis = …) gives a list of parts; a value is none"},
	{"min: value value is not iterable", "smallest(x) is over the last axis, minimum(x, y) of two values"},
	{"max: value value is not iterable", "largest(x) is over the last axis, maximum(x, y) of two values"},
	{"value value is not iterable", "split(x, [n, m], axis = …) gives a list of parts; tokens and batches are the engine's"},
	{"value of type value has no len", "x.shape is a tuple, x.width the count of its numbers"},
	{"cannot convert value to int", notDecided}, {"float got value", notDecided},
	{"has no .T field", "transpose(x) lets the last two axes change places"},
	{"value has no .", "what is done to a value is a function: reshape(x, shape), heads(x, d), softmax(x); it has only x.shape and x.width"},
	{"unexpected keyword argument \"axis\"", axisHint}, {"unexpected keyword argument \"dim\"", axisHint},
	{"unexpected keyword argument \"keepdim\"", axisHint},
}

const (
	numberHint = "of numbers it is math.sqrt, math.exp, math.log and so on; const([n]) makes a value of numbers"
	weightHint = "a weight is what is stored: tensor(NAME), stacked(…) and expressions of those"
	partsHint  = "slice(x, from, to, axis = …) and split(…) take parts of a value"
	twoHint    = "maximum(x, y) and minimum(x, y) are of two values or of a value and a number"
	axisHint   = "it is over the last axis, which stays with size 1 where it sums up: transpose(x) brings another there; slice, split and concat take axis"
)

// otherWords are words of other languages and libraries, and what stands for them.
var otherWords = map[string]string{
	"sum": "total(x) is the sum over the last axis; of a list, a loop", "cumsum": "linear_scan(x, 0) is the sum over the tokens so far", "prod": "exp(total(log(x))) is a product of positive numbers",
	"cumprod": "exp(linear_scan(log(x), 0))", "erf": "gelu(x) is x · Φ(x), exact; erf itself is 2 * gelu(z) / z - 1 with z = math.sqrt(2) * x",
	"topk": "order(x) gives places from the largest on, so gather(x, slice(order(x), 0, k)) is the k largest; route(scores, k) chooses experts, index_topk(…) positions", "argmax": "slice(order(x), 0, 1) is the place of the largest, largest(x) the largest itself", "sort": "gather(x, order(x)) is x from the largest on", "argsort": "order(x) gives places from the largest on",
	"einsum": "dot, head_linear and x * y with total(…)", "matmul": "linear(x, NAME) is a product with a stored matrix, dot(x, y) one of values", "bmm": "dot(x, y) is a product of values, head_linear(x, W) one by head",
	"cat": "concat([a, b], axis = …)", "chunk": "split(x, [n, n], axis = …)", "unsqueeze": "reshape(x, [-1, 1])", "squeeze": "reshape(x, [n])", "view": "reshape(x, shape), heads(x, d), merge(x)",
	"permute_dims": "transpose(x, axes)", "roll": "shift(x, n) is the value of n tokens ago", "pad": "shift(x, n) is the value of n tokens ago, zeros before the first",
	"zeros": "const([0] * n)", "ones": "const([1] * n)", "arange": "const(range(n)) along a row, positions() along the tokens", "full": "const([a] * n)",
	"var": "square(std(x)) is the variance of the population", "norm": "l2_norm(x, eps), rms_norm, layer_norm; its length is sqrt(total(square(x)))", "masked_fill": "where(cond, x, y)",
	"leaky_relu": "elu, or where(less(x, 0), a * x, x)", "swish": "silu(x)", "mish": "x * tanh(softplus(x))", "sign": "where(less(x, 0), -1, where(less(0, x), 1, 0))", "ceil": "-floor(-x)", "tan": "sin(x) / cos(x)",
	"lstm": noLoop, "gru": noLoop, "dropout": "it changes nothing: leave it out",
	"torch": noLibrary, "F": noLibrary, "nn": noLibrary, "np": noLibrary, "numpy": noLibrary, "jnp": noLibrary, "jax": noLibrary, "tf": noLibrary,
}

const (
	noLibrary = "there are no libraries but math and @std: what PyTorch says stands in the tables of docs/spec.md"
	noLoop    = "recur(step, start) is any recurrence over the tokens: docs/spec.md, \"Any other recurrence\""
)

// hinted adds what is meant to a message.
func hinted(msg string) string {
	for _, h := range wordHints {
		if strings.Contains(msg, h.says) {
			msg, _, _ = strings.Cut(msg, " (did you mean") // what is meant follows
			return msg + " (" + h.hint + ")"
		}
	}
	return msg
}

var formatted = regexp.MustCompile(`\b[fF]["']`)

// hintedSyntax adds what stands for words that the language lacks.
func hintedSyntax(err error, source string) error {
	var list resolve.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		return undefined(list[0])
	}
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
	case strings.Contains(at.Msg, "'@'"):
		return fmt.Errorf("%w (there is no @: linear(x, NAME) is a product with a stored matrix, dot(x, y) one of values)", err)
	case strings.Contains(text, "..."):
		return fmt.Errorf("%w (there is no x[..., a:b]: %s)", err, partsHint)
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
