package spec

import (
	"reflect"
	"strings"
	"testing"
)

// TestLongArguments keeps what a specification or the files pass short in messages.
func TestLongArguments(t *testing.T) {
	for what, body := range map[string]string{
		"distance_bias": "return distance_bias([\"a\" * 100000] * 3, query = h)",
		"unchecked":     "unchecked(\"a\" * 100000)",
		"window":        "return attention(h, h, h, window = \"a\" * 100000)",
		"chat":          "chat(developer = \"a\" * 100000)",
		"const product": "z = param(\"model.embed_tokens\")\n    for i in range(40):\n        z = concat([z, z], axis = 0)\n    return z",
	} {
		f := loadShapes(t, "llama.hf")
		_, err := trace("x.star", "def model(c):\n    h = heads(embed(\"model.embed_tokens\"), 8)\n    "+body+"\n", f, Options{AllowUnused: true})
		if err == nil || len(err.Error()) > 3000 {
			t.Errorf("%s: %.300v", what, err)
		}
	}
	for _, key := range []string{"num_attention_heads", "max_position_embeddings", "vocab_size"} {
		f := loadShapes(t, "llama.hf")
		f.config[key] = strings.Repeat("x", 1<<20)
		if _, err := resolveAndTrace(f, Options{}); err == nil || len(err.Error()) > 3000 {
			t.Errorf("%s: %.300v", key, err)
		}
	}
}

// TestPutCopies leaves parts of a configuration that others hold as they are.
func TestPutCopies(t *testing.T) {
	inner := map[string]any{"a": 1}
	data := map[string]any{"x": inner}
	put(data, "x.b", 2)
	put(data, "y.z", 3)
	want := map[string]any{"x": map[string]any{"a": 1, "b": 2}, "y": map[string]any{"z": 3}}
	if !reflect.DeepEqual(data, want) || !reflect.DeepEqual(inner, map[string]any{"a": 1}) {
		t.Errorf("got %v, and the other's %v", data, inner)
	}
}
