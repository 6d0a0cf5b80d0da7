package spec

import (
	"strings"
	"testing"
)

// TestHints holds what messages add for words of other languages, and that they
// name what stands in the line.
func TestHints(t *testing.T) {
	for line, says := range map[string]string{
		"x * sqrt(2)":                    "math.sqrt",
		"math.sqrt(x)":                   "are of values",
		"sum(x)":                         "total(x)",
		"cumsum(x)":                      "linear_scan(x, 0)",
		"erf(x)":                         "gelu(x)",
		"topk(x, 3)":                     "slice(order(x), 0, k)",
		"sort(x)":                        "gather(x, order(x))",
		"max(x, 0)":                      "maximum(x, y)",
		"min(1.5, x)":                    "minimum(x, y)",
		"lstm(x)":                        "recur(step, start)",
		"attention(x, x, x, scores = 1)": "\"scores\" (it is score)",
		"embed(\"model.embed_tokens\", index = const([1]))": "reshape(x, [])",
		"torch.relu(x)":                  "no libraries",
		"mean(x, axis = 0)":              "last axis",
		"softmax(x, dim = -1)":           "last axis",
		"[a for a, b in [x]]":            "split(",
		"[a for a in x]":                 "split(",
		"x.T":                            "transpose(x)",
		"x.view(3)":                      "heads(x, d)",
		"x @ x":                          "dot(x, y)",
		"x[..., 3]":                      "slice(",
		"x[:3]":                          "slice(",
		"c[\"hidden_size\"]":             "c.KEY",
		"max(x)":                         "largest(x)",
		"linear(x, x)":                   "linear: expected the name",
		"linear(x, 3)":                   "m.star:3: linear: expected the name",
		"route(slice(x, 0, 8), 2) + 1":   "x + n: takes a value, got what route returned",
		"relu(route(slice(x, 0, 8), 2))": "relu: takes a value",
		"attention(x, cache = relu(x))":  "got one of relu",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), mask = \"prefix\")":                                 "the masks are \"causal\", \"full\", \"chunk\" and \"before\"",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), mask = \"chunk\")":                                  "needs window",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), score = \"entmax\")":                                "there is no score \"entmax\"",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), score_bias = 1)":                                    "a softmax cancels score_bias",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), score = \"relu\", open = True)":                     "only a softmax is left open",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), score = \"stick_breaking\", mask = \"full\")":       "from the newest key to the oldest",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), score = \"relu\", sinks = slice(x, 0, 6))":          "sinks take weight in a softmax",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), bias = counted_bias(slice(x, 0, 6)))":               "the numbers of counted positions are [6 heads",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), bias = counted_bias(heads(x, 8)), mask = \"full\")": "positions counted by gates go with a softmax",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), fade = x)":                                          "fade is one number a key head",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), fade = True)":                                       "True goes with cache=",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), fade = slice(x, 0, 6), first = 2)":                  "gates that fade keys go with the masks",
		"embed(\"model.embed_tokens\", index = positions(), before = \"model.embed_tokens\")":                 "rows before a text go with the ids",
		"embed(\"model.embed_tokens\", before = rows(tensor(\"model.embed_tokens\"), 0, 3))":                  "this table of tokens has no row for them",
		"attention(heads(x, 8), heads(x, 8), heads(x, 8), sinks = [1])":                                       "attention: sinks: expected the name",
		"linear_scan(x, 0.5)": "linear_scan: g is 0.5",
		"linear_scan(x, reshape(const([0] * 47 + [1]), [6, 8]))":                            "linear_scan: g is 1",
		"linear_attention(heads(x, 8), heads(x, 8), heads(x, 8), 0.5)":                      "linear_attention: g is 0.5",
		"gated_delta(heads(x, 8), heads(x, 8), heads(x, 8), 0.5)":                           "gated_delta: g is 0.5",
		"general_delta(heads(x, 8), heads(x, 8), heads(x, 8), 0, heads(x, 6), x)":           "general_delta: ",
		"general_delta(heads(x, 8), heads(x, 8), heads(x, 8), 1, heads(x, 8), heads(x, 8))": "general_delta: g is 1",
		"ssd_scan(heads(x, 8), heads(x, 8), heads(x, 8), const([1] * 6), 2)":                "ssd_scan: A is 2",
	} {
		_, err := traceText(loadShapes(t, "llama.hf"), "def model(c):\n    x = embed(\"model.embed_tokens\")\n    "+line+"\n    return x\n")
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, expected …%s…", line, err, says)
		}
	}
}

// TestSourceStates wants what keeps a state in the encoder of an encoder-decoder
// and of its memory, where a state begins and ends with each source.
func TestSourceStates(t *testing.T) {
	words := []string{"shift(X)", "shift(X, -2)", "reverse(X)", "linear_scan(X, 0)", "linear_attention(None, None, X, 0)", "gated_delta(heads(X, 8), heads(X, 8), heads(X, 8))", "linear_scan(X * 0, 0)"}
	for _, word := range words {
		in, of := strings.ReplaceAll(word, "X", "x"), strings.ReplaceAll(word, "X", "memory")
		text := "unchecked(\"num_attention_heads\", \"num_key_value_heads\")\ndef encoder(c):\n    x = embed(\"model.embed_tokens\")\n    return merge(" + in + ") + x\n" +
			"def decoder(c, memory):\n    y = heads(merge(" + of + "), 48)\n    return merge(attention(heads(embed(\"model.embed_tokens\"), 48), y, y))\n"
		_, err := traceText(loadShapes(t, "llama.hf"), text)
		if err != nil {
			t.Errorf("%s: %v", word, err)
		}
	}
	text := "def encoder(c):\n    return embed(\"model.embed_tokens\")\ndef decoder(c, memory):\n    return embed(\"model.embed_tokens\") + memory\n"
	if _, err := traceText(loadShapes(t, "llama.hf"), text); err == nil || !strings.Contains(err.Error(), "x + y: mixes rows") {
		t.Errorf("got %v", err)
	}
}

// TestPrint keeps what print(…) says, bounded, whether the trace ends well or not.
func TestPrint(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	body := "def model(c):\n    x = embed(\"model.embed_tokens\")\n    print(x.shape, \"a\\x1b[2J\")\n"
	tr, err := traceText(f, body+"    return x\n")
	if err != nil || len(tr.Notes) == 0 || tr.Notes[0] != `m.star:3: prints: (48,) a\x1b[2J` {
		t.Errorf("got %+v, %v", tr, err)
	}
	for _, end := range []string{"    return heads(x, 7)\n", "    return linear(x, 3)\n"} {
		if _, err := traceText(f, body+end); err == nil || !strings.Contains(err.Error(), "m.star:3: prints: (48,)") || strings.Contains(err.Error(), "0 problems") {
			t.Errorf("got %v", err)
		}
	}
	tr, err = traceText(f, "def model(c):\n    for i in range(1000):\n        print(\"x\" * 100000)\n    return embed(\"model.embed_tokens\")\n")
	if err != nil || len(tr.Notes) > maxPrinted+2 || len(tr.Notes[0]) > 2*maxPrintedText {
		t.Errorf("%d notes, %v", len(tr.Notes), err)
	}
}

// TestLoneNumber makes const([n], shape = []) a number and not a vector.
func TestLoneNumber(t *testing.T) {
	tr, err := traceText(loadShapes(t, "llama.hf"), "def model(c):\n    return embed(\"model.embed_tokens\", index = const([3], shape = []) + 0 * tokens())\n")
	if err != nil || len(tr.Graph.Nodes) == 0 {
		t.Error(err)
	}
}

// TestDraftAttention says what kept an attention from a draft, and names widths by a key or a shape.
func TestDraftAttention(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	delete(f.config, "num_attention_heads")
	delete(f.config, "head_dim")
	if text, err := Draft(f); err != nil || !strings.Contains(text, "no number of heads") || strings.Contains(text, "not among the names") {
		t.Errorf("got %v\n%s", err, text)
	}
	f = loadShapes(t, "llama.hf")
	delete(f.config, "head_dim")
	delete(f.config, "hidden_size")
	text, err := Draft(f)
	if err != nil || !strings.Contains(text, `tensor("model.embed_tokens").shape[1] // c.num_attention_heads`) {
		t.Errorf("got %v\n%s", err, text)
	}
	if _, err := trace("draft.star", text, f, Options{}); err != nil {
		t.Error(err)
	}
	f.config["width"] = 48
	if text, err := Draft(f); err != nil || !strings.Contains(text, "c.width // c.num_attention_heads") {
		t.Errorf("got %v\n%s", err, text)
	}
}
