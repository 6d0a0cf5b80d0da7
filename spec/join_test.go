package spec

import (
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
)

// joinSource is a specification over the shapes of a small encoder-decoder whose
// decoder ends with some lines; q, k and v are [8, 4], m the source's.
func joinSource(lines string) string {
	return readsSource + `
def decoder(c, memory):
    x = embed("shared")
    d = x.width // 8
    q, k, v, m = heads(x, d), heads(x, d), heads(x, d), heads(memory, d)
    one = param(tensor("encoder.final_layer_norm.weight"))
    rows = reshape(one, [2, 4, d]) if d * 8 == one.width else None
` + lines + `
    return linear(merge(a), "shared")
`
}

// TestJoin traces what is said of several sources of keys, and what is none.
func TestJoin(t *testing.T) {
	f := loadShapes(t, "t5.hf")
	for _, c := range []struct{ name, lines, says string }{
		{"two sources", "    a = join(attention(q, k, v, window = 3, open = True), attention(q, m, m, open = True))", ""},
		{"stored keys", "    a = join(attention(q, k, v, open = True), attention(q, rows, rows, open = True))", ""},
		{"a key by hand", "    a = join(attention(q, k, v, open = True), concat([v, total(q * k)]))", ""},
		{"sinks of the token", "    a = attention(q, k, v, sinks = slice(x, 0, 8))", ""},
		{"sinks that are stored values", "    a = attention(q, k, v, sinks = slice(one, 0, 8))", ""},
		{"the first", "    a = attention(q, k, v, window = 4, first = 2)", ""},
		{"two sides", "    a = attention(q, k, v, mask = \"full\", window = [0, 4], first = 1, queries = 1)", ""},
		{"an attention that is done", "    a = join(attention(q, k, v))", "argument 1 is an attention whose softmax is done; say open=True"},
		{"nothing", "    a = join()", "join: takes open attentions"},
		{"a number", "    a = join(3)", "join: argument 1: expected a value, got int"},
		{"other shapes", "    a = join(attention(q, k, v, open = True), concat([v, total(q * k), total(q * k)]))", "of equal shape"},
		{"constants alone", "    a = join(rows)", "the same for all tokens"},
		{"a window of stored keys", "    a = attention(q, rows, rows, window = 3)", "stored keys have no positions"},
		{"stored keys of another width", "    a = attention(q, reshape(one, [1, 8 * d, 1]), rows)", "stored keys"},
		{"sinks of another width", "    a = attention(q, k, v, sinks = slice(x, 0, 3))", "one number a head"},
		{"the first of the source", "    a = attention(q, m, m, first = 2)", "the first positions are those of the sequence itself"},
		{"sides that are causal", "    a = attention(q, k, v, window = [1, 2])", "a window of two sides"},
		{"three sides", "    a = attention(q, k, v, mask = \"full\", window = [1, 2, 3])", "window is a number or [before, after]"},
		{"less than none", "    a = attention(q, k, v, first = -1)", "a whole number from 0 to 2147483647"},
	} {
		tr, err := trace("x.star", joinSource(c.lines), f, Options{AllowUnused: true})
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			s := &Spec{Name: "x.star", Source: joinSource(c.lines), Foreign: true, opts: Options{AllowUnused: true}}
			other, err := s.Trace(f)
			if err != nil || graph.Text(other.Graph, graph.PrintOptions{}) != graph.Text(tr.Graph, graph.PrintOptions{}) {
				t.Errorf("%s: traced in a child: %v", c.name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want …%s…", c.name, err, c.says)
		}
	}
}
