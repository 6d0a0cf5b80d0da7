package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrModelSpec marks a file that is no model_spec.json.
var ErrModelSpec = errors.New("no model_spec.json of Inferflow")

// ModelSpec is a model_spec.json, the C++ Inferflow's description of a model.
type ModelSpec struct {
	ConfigFile       string            // "" if the file names none
	ModelFiles       []string          // in order
	Format           string            // pickle, safetensors, gguf, ggml, llama2.c, std
	TokenizerFiles   []string          // vocabulary first
	Algorithm        string            // bpe, fmm, fmm2, ulm
	ByteAlphabet     bool              // token_bytes_mapping: tokens are written in the byte alphabet
	GenerationConfig string            // file name
	Tokens           map[string]string // unk, pad, bos, eos
	Vocab            int               // rows of the vocabulary, 0 if not given
	Structure        map[string]any    // network_structure
	Notes            []string          // keys that mean nothing here
}

// structureKeys are the keys of network_structure that the vocabulary has.
var structureKeys = []string{
	"type", "normalization_function", "activation_function", "position_embedding", "pos_embedding_offset", "rope_theta", "rope_dim",
	"partial_rotary_factor", "qk_column_order", "qkv_format", "kq_scale", "has_embedding_linear_norm", "embedding_linear_scale",
	"linear_norm_before_sinusoidal", "attn_pre_norm_base", "ffn_pre_norm_base", "output_norm_base", "attn_out_scale", "ffn_out_scale",
	"out_scale", "normalize_lm_head", "use_self_attn_pre_norm", "is_attn_post_as_residual", "is_parallel_attn", "mlp_attn_share_input",
	"expert_count", "using_expert_count", "moe_top_k", "moe_norm_top_k_prob", "moe_layer_start", "moe_layer_end", "has_shared_expert",
	"tensor_name_prefix", "tensor_name_mapping", "tensor_name_pre_mapping",
}

// fileKeys are those beside network_structure.
var fileKeys = []string{
	"config_file", "model_files", "model_file_format", "vocab_size", "input_vocab_size", "padded_vocab_size", "output_vocab_size", "unk_token",
	"pad_token", "bos_token", "eos_token", "tokenizer_file", "tokenizer_files", "tokenization_algorithm", "token_bytes_mapping",
	"token_remap_file", "generation_config", "network_structure", "COMMENTS",
}

// ParseModelSpec reads a model_spec.json; lines at its head that begin with #
// are skipped. It fails with ErrModelSpec where the file is none.
func ParseModelSpec(data []byte) (*ModelSpec, error) {
	if len(data) > maxSource {
		return nil, fmt.Errorf("spec: %w: it is larger than %d bytes", ErrModelSpec, maxSource)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for {
		t := bytes.TrimLeft(data, " \t\r\n")
		if len(t) == 0 || t[0] != '#' {
			data = t
			break
		}
		_, data, _ = bytes.Cut(t, []byte("\n"))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var top map[string]any
	if err := d.Decode(&top); err != nil {
		return nil, fmt.Errorf("spec: %w: %w", ErrModelSpec, err)
	}
	s := &ModelSpec{Tokens: map[string]string{}}
	var ok bool
	if s.Structure, ok = top["network_structure"].(map[string]any); !ok {
		return nil, fmt.Errorf("spec: %w: it has no network_structure", ErrModelSpec)
	}
	s.ConfigFile, s.Format, s.Algorithm = text(top, "config_file"), text(top, "model_file_format"), text(top, "tokenization_algorithm")
	if n, ok := top["token_bytes_mapping"].(json.Number); ok {
		s.ByteAlphabet = strings.Trim(n.String(), "-0.") != ""
	}
	s.GenerationConfig = text(top, "generation_config")
	s.ModelFiles = texts(top["model_files"])
	s.TokenizerFiles = append(texts(top["tokenizer_file"]), texts(top["tokenizer_files"])...)
	for _, k := range []string{"unk", "pad", "bos", "eos"} {
		if v := text(top, k+"_token"); v != "" {
			s.Tokens[k] = v
		}
	}
	for _, k := range []string{"padded_vocab_size", "output_vocab_size", "input_vocab_size", "vocab_size"} {
		if n, ok := top[k].(json.Number); ok && s.Vocab == 0 {
			s.Vocab, _ = strconv.Atoi(n.String())
		}
	}
	return s, s.check(top)
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		if v != "" {
			list = append(list, v)
		}
	case []any:
		for _, x := range v {
			if s, ok := x.(string); ok {
				list = append(list, s)
			}
		}
	}
	return list
}

// check refuses what the vocabulary cannot say and notes what it does not know.
func (s *ModelSpec) check(top map[string]any) error {
	kind := text(s.Structure, "type")
	if kind == "" {
		return fmt.Errorf("spec: %w: network_structure has no type", ErrModelSpec)
	}
	for _, one := range []struct {
		key  string
		want []string
	}{
		{"normalization_function", []string{"std", "rms", ""}},
		{"activation_function", []string{"silu", "glu_silu", "gelu", "relu", "sigmoid", "elu", ""}},
		{"position_embedding", []string{"", "empty", "rope", "alibi", "sinusoidal", "sinusoidal2"}},
	} {
		if v := text(s.Structure, one.key); !slices.Contains(one.want, v) {
			return fmt.Errorf("spec: %w: network_structure.%s is %s; known are %q", ErrModelSpec, one.key, shown(v), one.want)
		}
	}
	if err := s.checkNames(); err != nil {
		return err
	}
	if err := s.checkNumbers(top); err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(top)) {
		if !slices.Contains(fileKeys, k) {
			s.Notes = append(s.Notes, fmt.Sprintf("model_spec.json: %s is no key that is known; it is not used", shown(k)))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.Structure)) {
		if !slices.Contains(structureKeys, k) {
			s.Notes = append(s.Notes, fmt.Sprintf("model_spec.json: network_structure.%s is no key that is known; it is not used", shown(k)))
		}
	}
	s.idle(top)
	return nil
}

// maxTensorName bounds what names of tensors are made of, many times over.
const maxTensorName = 1 << 10

// checkNames refuses prefixes and mappings that no tensor's name could have.
func (s *ModelSpec) checkNames() error {
	check := func(key, name string) error {
		if len(name) > maxTensorName {
			return fmt.Errorf("spec: %w: network_structure.%s: a name has %d bytes; %d are possible", ErrModelSpec, key, len(name), maxTensorName)
		}
		return nil
	}
	if err := check("tensor_name_prefix", text(s.Structure, "tensor_name_prefix")); err != nil {
		return err
	}
	for _, key := range []string{"tensor_name_mapping", "tensor_name_pre_mapping"} {
		names, _ := s.Structure[key].(map[string]any)
		for _, from := range slices.Sorted(maps.Keys(names)) {
			to, _ := names[from].(string)
			if err := errors.Join(check(key, from), check(key, to)); err != nil {
				return err
			}
		}
	}
	return nil
}

// idle notes keys that are understood and change nothing here.
func (s *ModelSpec) idle(top map[string]any) {
	note := func(key, why string) {
		s.Notes = append(s.Notes, fmt.Sprintf("model_spec.json: %s has no effect: %s", key, why))
	}
	for _, k := range []string{"vocab_size", "input_vocab_size", "padded_vocab_size", "output_vocab_size"} {
		if n, ok := top[k].(json.Number); ok && n.String() != "0" {
			note(k, "the stored tensors say how many tokens there are")
		}
	}
	if text(top, "token_remap_file") != "" {
		note("token_remap_file", "ids are those of the tokenizer")
	}
	if n, ok := s.Structure["kq_scale"].(json.Number); ok && n.String() != "1" {
		note("network_structure.kq_scale", "it keeps sums of 16 bits from overflowing, and sums have 32 bits")
	}
}

// Starlark writes the specification that the file stands for. name is shown in
// its first line.
func (s *ModelSpec) Starlark(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Imported from %s. Say serves(model_type = …) to let it be found without --spec.\n", strings.ReplaceAll(printable(name), "\n", " "))
	both := text(s.Structure, "type") == "transformer.encoder_decoder"
	if both {
		b.WriteString(`load("@std/inferflow.star", "inferflow_decoder", "inferflow_names", "inferflow_stack")`)
	} else {
		b.WriteString(`load("@std/inferflow.star", "inferflow_model", "inferflow_names")`)
	}
	b.WriteString("\n\nS = ")
	structure := maps.Clone(s.Structure)
	if pre, ok := structure["tensor_name_pre_mapping"].(map[string]any); ok && len(pre) == 0 {
		delete(structure, "tensor_name_pre_mapping")
	}
	writeStarlark(&b, structure, structureKeys, "")
	b.WriteString("\n\nnames(hf = inferflow_names(S), gguf = inferflow_names(S))\nignore(\"*\")  # what the mapping does not name\n")
	if eos := s.Tokens["eos"]; eos != "" {
		fmt.Fprintf(&b, "chat(end = [%s])\n", quoteStarlark(eos))
	}
	if both {
		b.WriteString("\ndef encoder(c):\n    return inferflow_stack(c, S, \"enc\")\n\ndef decoder(c, memory):\n    return inferflow_decoder(c, S, memory)\n")
	} else {
		b.WriteString("\ndef model(c):\n    return inferflow_model(c, S)\n")
	}
	return b.String()
}

// quoteStarlark is a string literal; JSON's form is Starlark's but for \/ and surrogates.
func quoteStarlark(v string) string { return strconv.QuoteToASCII(v) }

// writeStarlark writes a JSON value, the keys in the order of the vocabulary.
func writeStarlark(b *strings.Builder, v any, order []string, indent string) {
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case json.Number:
		b.WriteString(v.String())
	case string:
		b.WriteString(quoteStarlark(v))
	case []any:
		b.WriteString("[")
		for i, x := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeStarlark(b, x, nil, indent)
		}
		b.WriteString("]")
	case map[string]any:
		if len(v) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteString("{\n")
		for _, k := range keysIn(v, order) {
			fmt.Fprintf(b, "%s    %s: ", indent, quoteStarlark(k))
			writeStarlark(b, v[k], nil, indent+"    ")
			b.WriteString(",\n")
		}
		b.WriteString(indent + "}")
	}
}

// keysIn lists the keys of a map: those of order first, the others sorted.
func keysIn(m map[string]any, order []string) (list []string) {
	for _, k := range order {
		if _, ok := m[k]; ok {
			list = append(list, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(order, k) {
			list = append(list, k)
		}
	}
	return list
}
