package spec

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// eightBit stores every projection of a folder in 8 bits, with factors of the
// shape that factor gives for a weight.
func eightBit(t *testing.T, config string, typ, factors quant.Type, suffix string, shape func(out, in int) []int) *shapeFiles {
	t.Helper()
	return eightBitOf(t, "llama.hf", config, typ, factors, suffix, shape)
}

func eightBitOf(t *testing.T, model, config string, typ, factors quant.Type, suffix string, shape func(out, in int) []int) *shapeFiles {
	t.Helper()
	f := loadShapes(t, model)
	d := json.NewDecoder(strings.NewReader(config))
	d.UseNumber()
	var q map[string]any
	if err := d.Decode(&q); err != nil {
		t.Fatal(err)
	}
	f.config["quantization_config"] = q
	for name, v := range f.tensors {
		if base, ok := strings.CutSuffix(name, "_proj.weight"); ok {
			v.Type = typ
			f.tensors[name] = v
			s := base + "_proj" + suffix
			f.tensors[s] = tensor.View{Name: s, Type: factors, Shape: shape(v.Shape[0], v.Shape[1])}
			in := base + "_proj.input_scale"
			f.tensors[in] = tensor.View{Name: in, Type: quant.F32, Shape: []int{1}}
		}
	}
	return f
}

func up(n, by int) int { return (n + by - 1) / by }

func TestEightBitFolders(t *testing.T) {
	blocks := func(out, in int) []int { return []int{up(out, 20), up(in, 20)} }
	row := func(out, _ int) []int { return []int{out, 1} }
	one := func(int, int) []int { return []int{} }
	const (
		fp8   = `{"quant_method": "fp8", "weight_block_size": [20, 20]}`
		float = `{"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"a": {"weights": {"num_bits": 8}}}}`
		whole = `{"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"a": {"weights": {"num_bits": 8}}}}`
	)
	for _, c := range []struct {
		what, config string
		typ, factors quant.Type
		suffix       string
		shape        func(int, int) []int
		say          string // of the error; "" where it is served
	}{
		{"blocks", fp8, quant.F8_E4M3, quant.F32, ".weight_scale_inv", blocks, ""},
		{"blocks of bare exponents", fp8, quant.F8_E4M3, quant.U8, ".weight_scale_inv", blocks, ""},
		{"one factor", fp8, quant.F8_E5M2, quant.F32, ".weight_scale_inv", one, ""},
		{"the other name", `{"quant_method": "fp8"}`, quant.F8_E4M3, quant.F8_E8M0, ".scale", one, ""},
		{"rows", float, quant.F8_E4M3, quant.BF16, ".weight_scale", row, ""},
		{"bytes", whole, quant.I8, quant.BF16, ".weight_scale", row, ""},
		{"modelopt", `{"quant_method": "modelopt", "quant_algo": "FP8"}`, quant.F8_E4M3, quant.F32, ".weight_scale", one, ""},
		{"blocks that do not fit", `{"quant_method": "fp8"}`, quant.F8_E4M3, quant.F32, ".weight_scale_inv", blocks, "does not divide"},
		{"too many factors", fp8, quant.F8_E4M3, quant.F32, ".weight_scale_inv", func(out, in int) []int { return []int{3, out, in} }, "do not fit"},
		{"no factors", fp8, quant.F8_E4M3, quant.F32, ".k_scale", one, "without factors"},
		{"a zero point", whole, quant.I8, quant.F32, ".weight_scale", row, "zero point"},
		{"4 bits", strings.Replace(whole, "8", "4", 1), quant.I8, quant.F32, ".weight_scale", row, "compressed-tensors"},
		{"packed", strings.Replace(whole, "int-quantized", "pack-quantized", 1), quant.I8, quant.F32, ".weight_scale", row, "pack-quantized"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := eightBit(t, c.config, c.typ, c.factors, c.suffix, c.shape)
			if c.what == "a zero point" {
				const zero = "model.layers.0.self_attn.q_proj.weight_zero_point"
				f.tensors[zero] = tensor.View{Name: zero, Type: quant.I8, Shape: []int{1}}
			}
			got, err := resolveAndTrace(f, Options{})
			if c.say != "" {
				if err == nil || !strings.Contains(err.Error(), c.say) || !errors.Is(err, ErrTrace) && !errors.Is(err, ErrQuantized) {
					t.Errorf("got %v, want an error that says %q", err, c.say)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if n := len(got.Unused); n != 0 {
				t.Errorf("%d tensors are unused: %v", n, got.Unused)
			}
		})
	}
}

// Experts that are stored one by one with factors beside each are one weight: the
// series of matrices times the series of factors. Where a series is not whole, each
// is looked up by itself, and what is missing is told.
func TestEightBitExperts(t *testing.T) {
	const fp8 = `{"quant_method": "fp8", "weight_block_size": [20, 20]}`
	blocks := func(out, in int) []int { return []int{up(out, 20), up(in, 20)} }
	open := func() *shapeFiles {
		return eightBitOf(t, "qwen3_moe.hf", fp8, quant.F8_E4M3, quant.F32, ".weight_scale_inv", blocks)
	}
	got, err := resolveAndTrace(open(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Unused) != 0 {
		t.Errorf("unused: %v", got.Unused)
	}
	series := 0
	for _, n := range got.Graph.Nodes {
		if a, ok := n.Attr.(*graph.ExpertsAttr); ok && a.Up.Op == graph.WScale && len(a.Up.Args[0].Names) == a.Experts && len(a.Up.Args[1].Names) == a.Experts {
			series++
		}
	}
	if series != got.Graph.Layers {
		t.Errorf("%d of %d layers have their experts as series", series, got.Graph.Layers)
	}
	f := open()
	delete(f.tensors, "model.layers.1.mlp.experts.2.up_proj.weight_scale_inv")
	if _, err := resolveAndTrace(f, Options{}); err == nil || !strings.Contains(err.Error(), "experts.2.up_proj") {
		t.Errorf("a missing factor is not named: %v", err)
	}
	f = open()
	v := f.tensors["model.layers.1.mlp.experts.2.up_proj.weight_scale_inv"]
	v.Shape = []int{1, 1}
	f.tensors[v.Name] = v
	if _, err := resolveAndTrace(f, Options{}); err != nil {
		t.Errorf("factors of another block: %v", err)
	}
}
