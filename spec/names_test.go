package spec

import (
	"path"
	"reflect"
	"testing"

	"go.starlark.net/starlark"
)

func dict(pairs ...string) *starlark.Dict {
	d := starlark.NewDict(len(pairs) / 2)
	for i := 0; i < len(pairs); i += 2 {
		_ = d.SetKey(starlark.String(pairs[i]), starlark.String(pairs[i+1]))
	}
	return d
}

func TestNames(t *testing.T) {
	n := newNameTable(GGUF)
	if err := n.entries.add(dict(
		"model.layers.{i}.mlp.gate_proj", "blk.{i}.ffn_gate",
		"model.layers.{i}.sinks", "blk.{i}.attn_sinks.weight",
		"model.layers.{i}.experts.{e}.up", "blk.{i}.ffn_up.{e}",
		"model.norm", "output_norm",
		"model.adapters.{j}.0", "adapter_{j}_in",
		"model.adapters.{j}.1", "adapter_{j}_out",
	)); err != nil {
		t.Fatal(err)
	}
	if err := n.aliases.add(dict("old.{i}.gate", "model.layers.{i}.mlp.gate_proj")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"model.layers.12.mlp.gate_proj.weight": {"blk.12.ffn_gate.weight"},
		"model.layers.3.mlp.gate_proj.bias":    {"blk.3.ffn_gate.bias"},
		"model.layers.3.sinks":                 {"blk.3.attn_sinks.weight"},
		"model.layers.3.experts.40.up.weight":  {"blk.3.ffn_up.40.weight"},
		"model.layers.3.experts.{e}.up":        {"blk.3.ffn_up.{e}"},
		"model.norm.weight":                    {"output_norm.weight"},
		"model.adapters.7.0.weight":            {"adapter_7_in.weight"},
		"model.adapters.0.1.weight":            {"adapter_0_out.weight"},
		"unknown.3.weight":                     {"unknown.3.weight"},
		"old.3.gate.weight":                    {"old.3.gate.weight", "blk.3.ffn_gate.weight"},
	} {
		if got := n.candidates(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, expected %q", name, got, want)
		}
	}
}

func TestIgnored(t *testing.T) {
	m, err := newMatcher("model.mtp.{i}.*")
	if err != nil {
		t.Fatal(err)
	}
	tr := &tracer{ignores: []matcher{m}}
	for name, want := range map[string]bool{
		"model.layers.3.self_attn.rotary_emb.inv_freq": true,
		"h.3.attn.masked_bias":                         true,
		"bert.embeddings.position_ids":                 true,
		"model.mtp.4.x.weight":                         true,
		"model.layers.3.self_attn.q_proj.weight":       false,
		"lm_head.weight":                               false,
	} {
		if got := tr.ignored(name); got != want {
			t.Errorf("%s: ignored is %v", name, got)
		}
	}
}

// TestMatch holds the quick match against path.Match.
func TestMatch(t *testing.T) {
	names := []string{"", "a", "ab", "aba", "abab", "a.b", "a.b.a.b", "b", "x.ab.y", "a/b", "ab/ab", "[", "ba.ab"}
	for _, glob := range []string{"", "*", "a", "a*", "*a", "*a*", "a*b", "a*b*", "*a*b", "a**b", "*.b", "a.*.b", "ab*ab", "a?", "[ab]*", "a\\/b", "\\[", "*/b", "*ab*ab*"} {
		for _, name := range names {
			want, err := path.Match(glob, name)
			if got := (matcher{glob: glob}).match(name); err != nil || got != want {
				t.Errorf("%q for %q: %v, want %v (%v)", glob, name, got, want, err)
			}
		}
	}
}

// TestUnpermute holds the row order against the converter's own formula.
func TestUnpermute(t *testing.T) {
	const heads, d = 3, 8
	stored := make([]int, heads*d) // stored row → reference row
	for h := range heads {
		for j := range d / 2 {
			stored[h*d+2*j] = h*d + j
			stored[h*d+2*j+1] = h*d + d/2 + j
		}
	}
	for i, p := range unpermuted(heads, d) {
		if stored[p] != i {
			t.Errorf("row %d comes from stored row %d, which is row %d", i, p, stored[p])
		}
	}
}
