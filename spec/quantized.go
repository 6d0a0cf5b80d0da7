package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
)

// quantization is what a folder's configuration says of the way its weights
// were quantised.
type quantization struct {
	method, detail string
	served         bool
	block          []int // rows and columns that share a factor, if stated
}

// quantizationOf reads quantization_config, or compression_config as older
// folders call it.
func quantizationOf(config map[string]any) quantization {
	q, ok := config["quantization_config"].(map[string]any)
	if !ok {
		q, ok = config["compression_config"].(map[string]any)
	}
	if !ok {
		return quantization{served: true}
	}
	r := quantization{}
	r.method, _ = q["quant_method"].(string)
	r.block = wholeNumbers(q["weight_block_size"])
	switch r.method {
	case "", "mxfp4", "fp8", "fbgemm_fp8":
		r.served = true
	case "compressed-tensors":
		r.detail, _ = q["format"].(string)
		r.served = slices.Contains([]string{"float-quantized", "int-quantized", "naive-quantized", "dense"}, r.detail) && eightBits(q)
	case "modelopt":
		r.detail, _ = q["quant_algo"].(string)
		r.served = r.detail == "FP8"
	}
	return r
}

// eightBits says that no group of weights has another width.
func eightBits(q map[string]any) bool {
	groups, _ := q["config_groups"].(map[string]any)
	for _, g := range groups {
		group, _ := g.(map[string]any)
		weights, ok := group["weights"].(map[string]any)
		if !ok {
			continue
		}
		if bits := wholeNumbers([]any{weights["num_bits"]}); len(bits) != 1 || bits[0] != 8 {
			return false
		}
	}
	return true
}

// wholeNumbers reads a list of whole numbers of JSON; nil for anything else.
func wholeNumbers(v any) (out []int) {
	list, _ := v.([]any)
	for _, x := range list {
		switch n := x.(type) {
		case json.Number:
			i, err := n.Int64()
			if err != nil {
				return nil
			}
			out = append(out, int(i))
		case float64:
			out = append(out, int(n))
		default:
			return nil
		}
	}
	return out
}

// checkQuantization names a method that would otherwise show as hundreds of
// missing and unused tensors.
// own are the methods that a specification reads itself.
func checkQuantization(files Files, own []string) error {
	if files.Binding() != HF {
		return nil
	}
	for _, key := range []string{"quantization_config", "compression_config"} {
		v := files.Config()[key]
		if _, ok := v.(map[string]any); v != nil && !ok {
			what, _ := v.(string)
			return fmt.Errorf("spec: %w: config.json: %s %.100q is no object with a quant_method; mend it or take the unquantised folder", ErrQuantized, key, what)
		}
	}
	q := quantizationOf(files.Config())
	if q.served || slices.Contains(own, q.method) {
		return nil
	}
	what := fmt.Sprintf("quant_method %q", q.method)
	if q.detail != "" {
		what += fmt.Sprintf(" (%s)", q.detail)
	}
	return fmt.Errorf("spec: %w: %s; take the unquantised folder or a GGUF of the model", ErrQuantized, what)
}

// scaleIgnored are tensors of 8-bit folders that concern activations and
// caches, which are kept in floating point here.
var scaleIgnored = []matcher{
	{glob: "*.input_scale"}, {glob: "*.activation_scale"}, {glob: "*.output_scale"}, {glob: "*.k_scale"}, {glob: "*.v_scale"}, {glob: "*.q_scale"}, {glob: "*.kv_scale"}, {glob: "*.prob_scale"},
	{glob: "*_activation_scale"}, {glob: "*.input_scale_ub"}, {glob: "*.k_proj.output_scale"}, {glob: "*.v_proj.output_scale"}, {glob: "*.weight_shape"},
}

// scaledType says that a tensor of this type may have factors beside it:
// floats of 8 bits, and bytes where the configuration names a quantisation.
func (t *tracer) scaledType(typ quant.Type) bool {
	switch typ {
	case quant.F8_E4M3, quant.F8_E5M2, quant.F8_E4M3FNUZ, quant.F8_E5M2FNUZ:
		return true
	case quant.I8:
		return t.quantized().method != ""
	}
	return false
}

func (t *tracer) quantized() quantization {
	if t.quantization == nil {
		q := quantization{}
		if t.files != nil && t.files.Binding() == HF {
			q = quantizationOf(t.files.Config())
		}
		t.quantization = &q
	}
	return *t.quantization
}

// scale joins a stored tensor of 8 bits with the factors that stand beside it:
// NAME_scale_inv (factors of blocks), NAME_scale (of the tensor or of each
// row), or NAME without .weight and with .scale. What is stored alone keeps its
// own values, unless the configuration says that factors belong to it.
// Sources: transformers, integrations/finegrained_fp8.py (Fp8Dequantize);
// compressed-tensors, quantization/lifecycle/forward.py.
func (t *tracer) scale(w *weightValue, stored string) (*weightValue, error) {
	base, _ := strings.CutSuffix(stored, ".weight")
	q := t.quantized()
	for _, name := range []string{stored + "_scale_inv", stored + "_scale", base + ".scale"} {
		s, ok := t.files.Tensor(name)
		if !ok {
			continue
		}
		t.used[name] = true
		if zero := stored + "_zero_point"; t.stores(zero) {
			t.complain("%s is quantised around a zero point (%s), which is not served", stored, zero)
			return &weightValue{t: t, name: w.name}, nil
		}
		if q.method == "fp8" && w.typ == quant.I8 {
			t.complain("%s holds floats of 4 bits in bytes, which are not served", stored)
			return &weightValue{t: t, name: w.name}, nil
		}
		factors, rows, cols, err := scaleShape(w.w.Shape, graph.Tensor(name, s.Shape), q.block)
		if err == nil {
			factors, err = scaleValues(factors, s.Type)
		}
		if err == nil {
			factors, err = graph.ScaleWeight(w.w, factors, rows, cols)
		}
		if err != nil {
			t.complain("%s with the factors %s: %v", stored, name, err)
			return &weightValue{t: t, name: w.name}, nil
		}
		factors.Line = w.w.Line
		return &weightValue{t: t, w: factors, name: w.name, typ: quant.F32}, nil
	}
	if q.method != "" && q.method != "mxfp4" && w.typ != quant.I8 {
		t.complain("%s is stored as %s without factors (%s_scale or %s_scale_inv)", stored, w.typ, stored, stored)
	}
	return w, nil
}

func (t *tracer) stores(name string) bool { _, ok := t.files.Tensor(name); return ok }

// scaleShape brings stored factors to the rank of the weight [.., R, C] and
// says how many rows and columns share one.
func scaleShape(w []int, s *graph.Weight, block []int) (factors *graph.Weight, rows, cols int, err error) {
	n := len(w)
	if n < 2 {
		return nil, 0, 0, fmt.Errorf("%v is no matrix", w)
	}
	grid := slices.Clone(s.Shape)
	switch {
	case graph.Product(grid) == 1: // one for all
		grid = slices.Repeat([]int{1}, n)
	case len(grid) == n-1 && slices.Equal(grid, w[:n-1]): // of each row
		grid = append(grid, 1)
	case len(grid) == 1 && n == 3 && grid[0] == w[0]: // of each of a stack
		grid = []int{w[0], 1, 1}
	}
	if len(grid) != n || !slices.Equal(grid[:n-2], w[:n-2]) && graph.Product(grid) != 1 || slices.Min(grid) < 1 {
		return nil, 0, 0, fmt.Errorf("factors of shape %v do not fit %v", s.Shape, w)
	}
	if slices.Equal(grid, s.Shape) {
		factors = s
	} else if factors, err = graph.ReshapeWeight(s, grid); err != nil {
		return nil, 0, 0, err
	}
	rows, err = perFactor(w[n-2], grid[n-2], 0, block)
	if err == nil {
		cols, err = perFactor(w[n-1], grid[n-1], 1, block)
	}
	return factors, rows, cols, err
}

// perFactor is how many of n indices share one of parts factors: the stated
// block where it fits, else an equal division.
func perFactor(n, parts, axis int, block []int) (int, error) {
	if len(block) == 2 && block[axis] > 0 && (n+block[axis]-1)/block[axis] == parts {
		return block[axis], nil
	}
	if n%parts != 0 {
		return 0, fmt.Errorf("%d does not divide into %d blocks", n, parts)
	}
	return n / parts, nil
}

// scaleValues makes numbers of factors that are stored as bare exponents.
func scaleValues(s *graph.Weight, typ quant.Type) (*graph.Weight, error) {
	if typ != quant.U8 {
		return s, nil
	}
	return graph.MapWeight(s, "exp2_127")
}
