package convert

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// beside are files of a folder that go with the weights to another folder.
var beside = []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "chat_template.jinja",
	"tokenizer.model", "vocab.json", "merges.txt", "vocab.txt", "added_tokens.json", "spiece.model", "sentencepiece.bpe.model", "spec.star"}

// toFolder writes weights, configuration and tokenizer as a Hugging Face
// folder. out is the folder, or the .safetensors file in it.
func (c *job) toFolder(out string) error {
	file := out
	if !strings.EqualFold(filepath.Ext(out), ".safetensors") {
		file = filepath.Join(out, "model.safetensors")
	}
	dir := filepath.Dir(file)
	if same(dir, c.files.Folder()) || same(file, c.files.Path()) {
		return fmt.Errorf("convert: %s: %w: it is its own target; choose another folder", dir, ErrConvert)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	texts, tensors, err := c.folder()
	if err != nil {
		return err
	}
	w := &safetensors.Writer{Metadata: map[string]string{"format": "pt"}}
	for _, t := range tensors {
		if err := c.add(w, t, c.folderType); err != nil {
			return err
		}
	}
	if err := w.WriteFile(file); err != nil {
		return err
	}
	for name, text := range texts {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		if err := sys.Replace(filepath.Join(dir, name), func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return fmt.Errorf("convert: %w", err)
		}
	}
	return nil
}

// folderType is the type in which a tensor is stored: blocks are decoded.
func (c *job) folderType(_ string, have quant.Type, shape tensor.Shape) (quant.Type, error) {
	if err := have.CanDecode(); err != nil {
		return 0, err
	}
	l, _ := have.Layout()
	floating := have == quant.F32 || have == quant.F16 || have == quant.BF16
	switch {
	case floating && c.o.Type != nil && len(shape) > 1, l.Block > 1 && c.o.Type != nil:
		return *c.o.Type, nil
	case l.Block > 1:
		return quant.F32, nil
	}
	return have, nil
}

// folder collects what the folder is to hold.
func (c *job) folder() (texts map[string][]byte, tensors []spec.ReboundTensor, err error) {
	texts = map[string][]byte{}
	if c.files.Meta() == nil {
		for _, v := range c.files.Views() {
			tensors = append(tensors, stored(v))
		}
		for _, name := range append([]string{"config.json"}, beside...) {
			raw, err := c.files.Optional(name)
			if err != nil {
				return nil, nil, err
			}
			if raw != nil {
				texts[name] = raw
			}
		}
		return texts, tensors, nil
	}
	s, err := c.files.Spec(c.o.Spec)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.Rebind(c.files)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range r.Notes {
		c.o.Notice(n)
	}
	if err := c.modules(r, texts); err != nil {
		return nil, nil, err
	}
	r.Config["dtype"] = c.dtype()
	if texts["config.json"], err = json.MarshalIndent(decimals(r.Config), "", "  "); err != nil {
		return nil, nil, fmt.Errorf("convert: config.json: %w", err)
	}
	return texts, r.Tensors, c.folderTokenizer(texts)
}

// decimals writes whole numbers that are floats with a point, for readers that
// tell the two apart.
func decimals(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return json.Number(strconv.FormatFloat(v, 'f', 1, 64))
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = decimals(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = decimals(x)
		}
		return out
	}
	return v
}

// dtype is the name of the type that the written matrices have.
func (c *job) dtype() string {
	counts := map[quant.Type]int{}
	for _, v := range c.files.Views() {
		if t, err := c.folderType(v.Name, v.Type, v.Shape); err == nil {
			counts[t] += v.Shape.Elements()
		}
	}
	switch most(counts) {
	case quant.F16:
		return "float16"
	case quant.BF16:
		return "bfloat16"
	}
	return "float32"
}
