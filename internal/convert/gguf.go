package convert

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// alwaysF32 are GGUF tensors that llama.cpp computes with in float32.
// Source: llama.cpp, conversion/base.py, prepare_tensors.
var alwaysF32 = []string{"ffn_gate_inp.weight", "ffn_gate_inp_shexp.weight", "position_embd.weight", "token_types.weight", "ssm_conv1d.weight",
	"shortconv.conv.weight", "ssm_conv1d_q.weight", "ssm_conv1d_k.weight", "ssm_conv1d_v.weight", "indexer.proj.weight", "altup_correct_coef.weight", "altup_predict_coef.weight",
	"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight", "_norm.weight", "attn_sinks.weight"}

// ggufType is the type in which a tensor is stored.
func (c *job) ggufType(name string, have quant.Type, shape tensor.Shape) (quant.Type, error) {
	if len(shape) > 4 {
		return 0, fmt.Errorf("%d dimensions, GGUF has room for 4: %w", len(shape), ErrConvert)
	}
	if err := have.CanDecode(); err != nil && (!have.GGML() || c.o.Type != nil) {
		return 0, err
	}
	l, _ := have.Layout()
	small := len(shape) < 2 || !strings.HasSuffix(name, ".weight") || slices.ContainsFunc(alwaysF32, func(s string) bool { return strings.HasSuffix(name, s) })
	switch {
	case small && l.Block == 1:
		return quant.F32, nil
	case c.o.Type != nil:
		return *c.o.Type, nil
	case have.GGML() && have != quant.F64 && (l.Block > 1 || have == quant.F32 || have == quant.F16 || have == quant.BF16):
		return have, nil
	}
	return quant.F32, nil
}

// fileTypes are the numbers of general.file_type.
var fileTypes = map[quant.Type]uint32{quant.F32: 0, quant.F16: 1, quant.Q4_0: 2, quant.Q4_1: 3, quant.Q8_0: 7, quant.Q5_0: 8, quant.Q5_1: 9, quant.Q2_K: 10,
	quant.Q3_K: 12, quant.Q4_K: 15, quant.Q5_K: 17, quant.Q6_K: 18, quant.IQ4_NL: 25, quant.IQ4_XS: 30, quant.BF16: 32, quant.MXFP4: 38}

// toGGUF writes one GGUF file.
func (c *job) toGGUF(out string) error {
	w := &gguf.Writer{}
	var tensors []spec.ReboundTensor
	var set []setting
	if meta := c.files.Meta(); meta != nil {
		for k, v := range meta.All() {
			if !strings.HasPrefix(k, "split.") && k != "general.file_type" && k != "general.alignment" {
				set = append(set, setting{k, v})
			}
		}
		var err error
		if set, err = c.advise(set); err != nil {
			return err
		}
		for _, v := range c.files.Tensors() { // those of our own stand among the keys
			tensors = append(tensors, stored(v))
		}
	} else {
		var err error
		if tensors, set, err = c.fromFolder(out); err != nil {
			return err
		}
	}
	for _, s := range set {
		if err := w.Set(s.key, s.value); err != nil {
			return err
		}
	}
	counts := map[quant.Type]int{}
	for _, t := range tensors {
		err := c.add(w, t, func(name string, have quant.Type, shape tensor.Shape) (quant.Type, error) {
			typ, err := c.ggufType(name, have, shape)
			counts[typ] += shape.Elements()
			return typ, err
		})
		if err != nil {
			return err
		}
	}
	if err := errors.Join(w.Set("general.file_type", fileTypes[most(counts)]), w.WriteFile(out)); err != nil {
		return err
	}
	return c.tell(out)
}

// most is the type that most values have.
func most(counts map[quant.Type]int) quant.Type {
	best := quant.F32
	for _, t := range slices.Sorted(maps.Keys(counts)) {
		if counts[t] > counts[best] {
			best = t
		}
	}
	return best
}

// setting is a metadata key with its value.
type setting struct {
	key   string
	value any
}

// name is what the file calls the model: the folder's name, which readers that
// tell relatives of a family apart look at.
func (c *job) name(out string) string {
	if dir, err := filepath.Abs(c.files.Folder()); err == nil && c.files.Folder() != "" {
		return filepath.Base(dir)
	}
	return strings.TrimSuffix(filepath.Base(out), filepath.Ext(out))
}
