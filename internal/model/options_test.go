package model_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// numberOptions are lines of a specification with an option at $ that takes a
// number. h [16], q and k [4, 4], v [2, 8] and s [4] are values of a token.
var numberOptions = []string{
	`y = rms_norm(h, "w16", $)`,
	`y = rms_norm(h, eps = $)`,
	`y = rms_norm(h, "w16", 1e-6, offset = $)`,
	`y = rms_norm(h, "w16", 1e-6, groups = $)`,
	`y = layer_norm(h, "w16", $)`,
	`y = layer_norm(h, "w16", 1e-6, offset = $)`,
	`y = layer_norm(h, "w16", 1e-6, groups = $)`,
	`y = l2_norm(h, $)`,
	`y = merge(l2_norm(q, $))`,
	`y = clamp(h, $, 0.5)`,
	`y = clamp(h, -0.5, $)`,
	`y = softcap(h, $)`,
	`y = power(h, $)`,
	`y = power(abs(h), $)`,
	`y = power(h - h, $)`,
	`y = elu(h, $)`,
	`y = h * $`,
	`y = h / $`,
	`y = h + $`,
	`y = $ - h`,
	`y = $ / h`,
	`y = (h - h) * $`,
	`y = maximum(h, $)`,
	`y = minimum(h, $)`,
	`y = less(h, $)`,
	`y = where(less(h, 0), $, h)`,
	`y = where($, h, 1)`,
	`y = h * const([$] * 16)`,
	`y = merge(doubly_stochastic(q, $, 1e-6))`,
	`y = merge(doubly_stochastic(q, 3, $))`,
	`y = h + positions($)`,
	`y = h + positions(0, pad = $)`,
	`y = embed("embed", guard = $)`,
	`y = linear(shift(h, $), "lin")`,
	`y = merge(attention(q, k, k, scale = $))`,
	`y = merge(attention(q, k, k, window = $))`,
	`y = merge(attention(q, k, k, window = [$, 2], mask = "full"))`,
	`y = merge(attention(q, k, k, window = $, mask = "full"))`,
	`y = merge(attention(q, k, k, window = $, mask = "chunk"))`,
	`y = merge(attention(q, k, k, window = $, mask = "before"))`,
	`y = merge(attention(q, k, k, softcap = $))`,
	`y = merge(attention(q, k, k, slopes = [$, 0.5, 0.25, 0]))`,
	`y = merge(attention(q, k, k, first = $))`,
	`y = merge(attention(q, k, k, first = $, window = 3))`,
	`y = merge(attention(q, k, k, queries = $))`,
	`y = merge(attention(q, k, k, every = $))`,
	`y = merge(attention(q, k, value_dim = $))`,
	`y = merge(attention(q, k, k, score = "sigmoid", score_bias = $))`,
	`y = merge(attention(q, k, k, score = "sigmoid", scale = $))`,
	`y = merge(attention(q, k, k, score = "relu2", scale = $))`,
	`y = merge(attention(q, k, k, score = "exp", scale = $))`,
	`y = merge(attention(q, k, k, score = "none", scale = $))`,
	`y = merge(attention(q, k, k, score = "stick_breaking", scale = $))`,
	`y = merge(attention(q, k, k, score = "sparsemax", scale = $))`,
	`y = merge(attention(q, k, k, score = "entmax15", scale = $))`,
	`y = merge(attention(q, param("m"), param("m"), scale = $))`,
	`y = merge(attention(q, param("m"), param("m"), softcap = $))`,
	`y = merge(attention(q, k, k, bias = relative_bias("table", $)))`,
	`y = merge(attention(q, k, k, bias = distance_bias([$, 0, 1], query = q)))`,
	`y = merge(attention(q, k, k, allowed = index_topk(q, s, s, $)))`,
	`y = merge(attention(q, k, k, allowed = index_topk(q, s, s, 2, block = $)))`,
	`y = merge(attention(q, k, k, allowed = index_topk(q, s, s, 3, block = 2, local = $)))`,
	`y = merge(rope(q, rope_table(c, 4, base = $)))`,
	`y = merge(rope(q, rope_table(c, 4, factor = $)))`,
	`y = merge(rope(q, rope_table(c, 4, theta = $, theta_key = "no")))`,
	`y = merge(rope(q, rope_table(c, 4, partial = $)))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "linear", "factor": $})))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "yarn", "factor": $, "original_max_position_embeddings": 16})))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": $})))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 16, "beta_fast": $})))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 16, "mscale": $, "mscale_all_dim": 1})))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "dynamic", "factor": $})))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "dynamic", "alpha": $})))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "llama3", "factor": $, "original_max_position_embeddings": 16})))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "llama3", "factor": 2, "low_freq_factor": $, "original_max_position_embeddings": 16})))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "longrope", "factor": 2, "short_factor": [1, $], "long_factor": [$, 2], "original_max_position_embeddings": 16})))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "longrope", "factor": $, "short_factor": [1, 1], "long_factor": [1, 2], "original_max_position_embeddings": 8})))`,
	`y = merge(rope(q, rope_table(c, 4, default = {"rope_type": "proportional", "partial_rotary_factor": $})))`,
	`y = merge(rope(q, rope_table(c, $)))`,
	`y = merge(rope(q, rope_table(c, 4), at = $))`,
	`y = merge(linear_scan(q, $))`,
	`y = merge(linear_attention(q, k, k, $))`,
	`y = merge(linear_attention(q, k, k, i = $, norm = "sum"))`,
	`y = merge(linear_attention(q, k, k, i = $, norm = "max"))`,
	`y = merge(linear_attention(q, k, k, u = $))`,
	`y = merge(linear_attention(q, k, k, u = $, i = s, norm = "max"))`,
	`y = merge(linear_attention(q, k, k, norm = "sum", eps = $))`,
	`y = merge(linear_attention(q, k, k, norm = "max", eps = $))`,
	`y = merge(linear_attention(q, k, k, i = s, norm = "max", eps = $))`,
	`y = merge(gated_delta(l2_norm(q, 1e-6), l2_norm(k, 1e-6), k, g = $))`,
	`y = merge(gated_delta(l2_norm(q, 1e-6), l2_norm(k, 1e-6), k, beta = $))`,
	`y = merge(general_delta(q, k, k, $, k * 0.1, k * 0.1))`,
	`y = merge(ssd_scan(q, k, k, softplus(s), $))`,
	`y = experts(h, route(s, $), param_("up"), param_("down"))`,
	`y = experts(h, route(s, 2, renorm = True, renorm_eps = $), param_("up"), param_("down"))`,
	`y = experts(h, route(s, 2, renorm = True, norm_pow = $), param_("up"), param_("down"))`,
	`y = experts(h, route(s, 2, scale = $), param_("up"), param_("down"))`,
	`y = experts(h, route(s, 2, groups = $, top_groups = 1), param_("up"), param_("down"))`,
	`y = experts(h, route(s, 2, groups = 2, top_groups = $), param_("up"), param_("down"))`,
	`y = experts(h, route(s, 2, groups = 2, top_groups = 1, group_fill = $), param_("up"), param_("down"))`,
	`y = experts(h, route(s, 1, groups = 2, top_groups = 1, group_fill = $, score = "sigmoid"), param_("up"), param_("down"))`,
	`y = experts(h, route(concat([s, s]), 2, identity = $), param_("up"), param_("down"))`,
	`y = experts(h, route(s, 2), param_("up"), param_("down"), gate = param_("up"), act = "swiglu_clamp", alpha = $, limit = 1)`,
	`y = experts(h, route(s, 2), param_("up"), param_("down"), gate = param_("up"), act = "swiglu_clamp", alpha = 1.7, limit = $)`,
	`y = experts(h, route(s, 2), param_("up"), param_("down"), gate = param_("up"), limit = $)`,
	`y = slice(concat([h, h]), $, 16)`,
	`y = slice(concat([h, h]), 0, $)`,
	`y = slice(h, 0, step = $)`,
	`y = merge(heads(h, $))`,
	`y = reshape(h, $)`,
	`y = merge(reshape(h, [$, 4]))`,
	`y = gather(h, const([$, 0]))`,
	`y = pool(h) * $`,
	`y = recur(lambda s: ([s[0] * 0.5 + h], s[0] * $), [const([1] * 16)])`,
	`y = recur(lambda s: ([elu(s[0], $) + h], s[0]), [const([$] * 16)])`,
	`y = recur(lambda s: ([rms_norm(s[0] + h, eps = $)], clamp(s[0], -$, $)), [const([0] * 16)])`,
}

// oddNumbers are what an option may be given in error, or to say that there is no bound.
var oddNumbers = []string{`float("nan")`, `math.inf`, `-math.inf`, `-1.5`, `-3`, `0`, `1`, `1e300`, `-1e300`, `1e-300`, `2`, `4`, `16`, `2147483647`, `4611686018427387904`}

const numberSpec = `serves(model_type = "numbers")
ignore("*")
def param_(n):
    return tensor(n)
def model(c):
    x = embed("embed")
    h = linear(x, "lin")
    q = reshape(linear(x, "lin2"), [4, 4])
    k = reshape(linear(h, "lin"), [4, 4])
    s = slice(linear(h, "lin2"), 0, 4)
    %s
    return concat([y, linear(rms_norm(slice(concat([y, h]), 0, 16), eps = 1), "lin")])
`

// TestOddNumbers: an option that is given an odd number is refused where the
// specification says it, or the compiled program computes with it what the graph says.
func TestOddNumbers(t *testing.T) {
	folder := numberModel(t)
	for _, line := range numberOptions {
		runs := 0
		for _, n := range oddNumbers {
			text := strings.ReplaceAll(line, "$", n)
			ran, err := oddNumber(t, folder, text)
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if ran {
				runs++
			}
		}
		if runs == 0 {
			t.Errorf("%s is refused with every number", line)
		}
	}
}

// oddNumber says whether the line is accepted; an error says what is wrong with that.
func oddNumber(t *testing.T, folder, line string) (ran bool, err error) {
	write(t, folder, "numbers.star", fmt.Sprintf(numberSpec, line))
	m, err := model.Open(folder, model.Options{NoTokenizer: true, Threads: 1, Context: 48, Keys: "f32", Values: "f32", KVMemory: 1 << 20,
		Spec: spec.Options{SpecFile: filepath.Join(folder, "numbers.star")}})
	if err != nil {
		if text := err.Error(); !strings.Contains(text, "numbers.star:11: ") || len(text) > 600 {
			return false, fmt.Errorf("refused with the words %w", err)
		}
		return false, nil
	}
	defer m.Close()
	b := packed([]int32{5, 6, 7, 8, 9, 3, 1, 2, 11, 12, 13, 9, 4})
	b.Seqs[0].State = 0
	exact, refused := m.Exact().Run(b)
	if err = m.Load(); err == nil {
		err = m.Forward(b)
	}
	if (err == nil) != (refused == nil) {
		return true, fmt.Errorf("the program says %v, the graph %v", err, refused)
	}
	for i := 0; err == nil && i < len(exact); i++ {
		if text := differ(m.Logits(i), exact[i]); text != "" {
			return true, fmt.Errorf("row %d: %s", i, text)
		}
	}
	return true, nil
}

// differ says where two rows are apart: in what is a number, or in size.
func differ(got, want []float32) string {
	top := 0.0
	for _, v := range want {
		if isFinite(float64(v)) {
			top = max(top, math.Abs(float64(v)))
		}
	}
	for i, v := range want {
		g, w := float64(got[i]), float64(v)
		if g == w || !isFinite(g) && !isFinite(w) {
			continue
		}
		if !(math.Abs(g-w) <= 1e-4*top+1e-44) {
			return fmt.Sprintf("value %d is %g, the graph says %g (of at most %g)", i, g, w, top)
		}
	}
	return ""
}

func isFinite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }

// numberModel is a folder with the tensors that the lines read.
func numberModel(t *testing.T) string {
	folder, rng := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	w := &safetensors.Writer{}
	for name, shape := range map[string]tensor.Shape{"embed": {64, 16}, "lin": {16, 16}, "lin2": {16, 16}, "w16": {16}, "m": {3, 4, 4}, "table": {8, 4}, "up": {4, 6, 16}, "down": {4, 16, 6}} {
		data := make([]float32, shape.Elements())
		for i := range data {
			data[i] = float32(rng.NormFloat64()) / 3
		}
		if err := w.Add(name, quant.F32, shape, func(out io.Writer) error { return binary.Write(out, binary.LittleEndian, data) }); err != nil {
			t.Fatal(err)
		}
	}
	out, err := os.Create(filepath.Join(folder, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := w.WriteTo(out); err != nil {
		t.Fatal(err)
	}
	write(t, folder, "config.json", `{"model_type": "numbers", "max_position_embeddings": 48, "rope_theta": 10000}`)
	return folder
}
