package spec

import (
	"errors"
	"strings"
	"testing"
)

const oldSpec = `#### head
# of the file
{
    "COMMENTS": "none",
    "config_file": "config.json", "model_files": ["a.bin"], "model_file_format": "pickle",
    "tokenizer_files": ["vocab.json", "special_tokens_map.json"], "eos_token": "</s>", "padded_vocab_size": 65024, "qkv_format": 1,
    "network_structure": {
        "type": "transformer.decoder_only", "normalization_function": "std", "activation_function": "gelu", "position_embedding": "alibi",
        "colour": "green", "is_parallel_attn": true, "out_scale": 0.111111,
        "tensor_name_mapping": {"h.{i}.ln.weight": "dec.{i}.self_attn.pre_norm.weight"}
    }
}`

func TestParseModelSpec(t *testing.T) {
	s, err := ParseModelSpec([]byte(oldSpec))
	if err != nil {
		t.Fatal(err)
	}
	if s.ConfigFile != "config.json" || s.Format != "pickle" || len(s.ModelFiles) != 1 || len(s.TokenizerFiles) != 2 || s.Tokens["eos"] != "</s>" || s.Vocab != 65024 {
		t.Errorf("%+v", s)
	}
	notes := strings.Join(s.Notes, "\n")
	if !strings.Contains(notes, `"qkv_format" is no key`) || !strings.Contains(notes, `"colour"`) || strings.Contains(notes, "COMMENTS") {
		t.Errorf("notes: %s", notes)
	}
	if !strings.Contains(notes, "padded_vocab_size has no effect") {
		t.Errorf("notes: %s", notes)
	}
	star := s.Starlark("a\nprint(1)\n.json")
	if !strings.Contains(star, "out_scale\": 0.111111") || strings.Contains(star, "\nprint(1)") {
		t.Error(star)
	}
	for _, c := range []struct{ from, to string }{
		{`"transformer.decoder_only"`, `""`}, {`"std"`, `"linear"`}, {`"alibi"`, `"moon"`}, {`"gelu"`, `"moon"`}, {"network_structure", "net"}, {"{", "["},
		{"65024", "4611686018427387904"}, {"65024", "-1"}, {"65024", "1.5"}, {"0.111111", "1e308"}, {"0.111111", "1e999"},
		{`"colour": "green"`, `"expert_count": -5`}, {`"colour": "green"`, `"kq_scale": 0`}, {`"colour": "green"`, `"kq_scale": 1e308`},
		{`"colour": "green"`, `"rope_theta": -1`}, {`"colour": "green"`, `"moe_layer_start": -1000000000`}, {`"alibi"`, `"` + strings.Repeat("x", 100000) + `"`},
		{`"colour": "green"`, `"tensor_name_prefix": "` + strings.Repeat("x", 1000000) + `"`}, {"h.{i}.ln.weight", strings.Repeat("h", 100000)},
		{"dec.{i}.self_attn.pre_norm.weight", strings.Repeat("d", 100000)}, {"# of the file", "# " + strings.Repeat("x", maxSource)},
	} {
		if _, err := ParseModelSpec([]byte(strings.Replace(oldSpec, c.from, c.to, 1))); !errors.Is(err, ErrModelSpec) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}

func FuzzModelSpec(f *testing.F) {
	f.Add([]byte(oldSpec))
	f.Add([]byte(`{"network_structure": {"type": "bloom", "tensor_name_mapping": {"\u2028\\\"": "\ud800"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseModelSpec(data)
		if err != nil {
			return
		}
		star := s.Starlark("x.json")
		if _, err := fileOptions.Parse("x.star", star, 0); err != nil {
			t.Errorf("%v\n%s", err, star)
		}
	})
}
