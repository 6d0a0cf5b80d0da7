package spec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const (
	readsSource = "def encoder(c):\n    return embed(\"shared\")\n"
	answers     = "def decoder(c, memory):\n    x = embed(\"shared\")\n    q, k = heads(x, 8), heads(memory, 8)\n    return linear(merge(attention(q, k, k)), \"shared\")\n"
)

// TestEntries traces specifications with an encoder that do not hold together.
func TestEntries(t *testing.T) {
	f := loadShapes(t, "t5.hf")
	for _, c := range []struct{ name, source, says string }{
		{"whole", readsSource + answers, ""},
		{"no decoder", readsSource, "defines no function model(c), nor both encoder(c) and decoder(c, memory)"},
		{"no encoder", answers, "defines no function model(c), nor both"},
		{"all three", readsSource + answers + "def model(c):\n    return embed(\"shared\")\n", "defines no function model(c), nor both"},
		{"an encoder of nothing", "def encoder(c):\n    return None\n" + answers, "encoder(c) returns a value, got NoneType"},
		{"an encoder of one row", "def encoder(c):\n    return param(\"encoder.final_layer_norm.weight\")\n" + answers, "encoder(c) returns rows of the source"},
		{"a decoder that returns memory", readsSource + "def decoder(c, memory):\n    return memory\n", "decoder(c, memory) returns rows of the source"},
		{"a sum of both", readsSource + "def decoder(c, memory):\n    return linear(embed(\"shared\") + memory, \"shared\")\n", "mixes rows of tokens with rows of the encoder's output"},
		{"blocks of the answer", readsSource + "def decoder(c, memory):\n    return linear(block_sum(embed(\"shared\"), 4), \"shared\")\n", "block_sum: takes rows of the encoder"},
		{"a bias that is none", readsSource + "def decoder(c, memory):\n    q = heads(embed(\"shared\"), 8)\n    return attention(q, q, q, bias = 3)\n", "bias is the result of relative_bias (of attention also distance_bias or counted_bias), got int"},
		{"a table that is not there", readsSource + "def decoder(c, memory):\n    q = heads(embed(\"shared\"), 8)\n    return linear(merge(attention(q, q, q, bias = relative_bias(\"nowhere\"))), \"shared\")\n", "nowhere"},
		{"a task of a number", "tasks(sing = 3)\n" + readsSource + answers, "sing is a template or a dict, got int"},
		{"a task without meaning", "tasks(sing = {\"loud\": \"yes\"})\n" + readsSource + answers, "is none of source, first, source_tag, languages"},
		{"languages that are none", "tasks(sing = {\"languages\": {\"en\": 3}})\n" + readsSource + answers, "a code and its names are strings"},
		{"a list of settings", "generation(bad = [1])\n" + readsSource + answers, "bad is a number"},
	} {
		tr, err := trace("x.star", c.source, f, Options{AllowUnused: true})
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			} else if g := tr.Graph; len(g.Caches) != 1 || !g.Caches[0].Kept || g.Vocab != 199 {
				t.Errorf("%s: caches %+v, vocabulary %d", c.name, g.Caches, g.Vocab)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want …%s…", c.name, err, c.says)
		}
	}
}

// TestTasksDeclared reads tasks and settings, here and from a child process.
func TestTasksDeclared(t *testing.T) {
	source := `tasks(a = "{text}", translate = {"source": "{from}: {text}", "first": "<{to}>", "source_tag": ["<{from}>", "{from}"], "languages": {"en": "English", "fr": ["French", "fr"]}})
generation(decoder_start_token_id = 2, scale = 0.5, name = "x", off = None)
` + readsSource + answers
	want := []Task{{Name: "a", Source: "{text}"}, {Name: "translate", Source: "{from}: {text}", First: []string{"<{to}>"}, SourceTag: []string{"<{from}>", "{from}"},
		Languages: map[string][]string{"en": {"English"}, "fr": {"French", "fr"}}}}
	settings := map[string]any{"decoder_start_token_id": 2.0, "scale": 0.5, "name": "x", "off": nil}
	f := loadShapes(t, "t5.hf")
	s := &Spec{Name: "x.star", Source: source, Foreign: true, opts: Options{AllowUnused: true}}
	for _, foreign := range []bool{false, true} {
		tr, err := trace("x.star", source, f, s.opts)
		if foreign {
			tr, err = s.Trace(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(tr.Tasks, want) || fmt.Sprint(tr.Generation) != fmt.Sprint(settings) { // the child's numbers are text
			t.Errorf("foreign %v: %+v, %+v", foreign, tr.Tasks, tr.Generation)
		}
	}
}
