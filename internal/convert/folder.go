package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// beside are files of a folder that go with the weights to another folder.
var beside = slices.Concat([]string{"tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja", model.OwnSpecFile}, wordFiles)

// toFolder writes weights, configuration and tokenizer as a Hugging Face
// folder. out is the folder, or the .safetensors file in it.
func (c *job) toFolder(out string) (err error) {
	file := out
	if !strings.EqualFold(filepath.Ext(out), ".safetensors") {
		file = filepath.Join(out, weightsFile)
	}
	dir := filepath.Dir(file)
	if c.own(dir) {
		return fmt.Errorf("convert: %s: %w: it is its own target, the folder that the model lies in; choose another folder", dir, ErrConvert)
	}
	if err := c.target(out); err != nil {
		return err
	}
	texts, tensors, err := c.folder()
	if err != nil {
		return err
	}
	undo, err := makeFolder(dir)
	defer func() {
		if err != nil {
			undo()
		}
	}()
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	release, err := c.hold(filepath.Join(dir, lockFile), out)
	if err != nil {
		return err
	}
	defer release()
	w := &safetensors.Writer{Metadata: map[string]string{"format": "pt"}}
	for _, t := range tensors {
		if err := c.add(w, t, c.folderType); err != nil {
			return err
		}
	}
	if err := c.writeAll(file, w, texts); err != nil {
		return err
	}
	return c.tell(file)
}

// writeAll writes the weights and the small files of their folder, which all get
// their names at the end, when no more can fail for want of room or time.
func (c *job) writeAll(file string, w *safetensors.Writer, texts map[string][]byte) (err error) {
	var whole []*sys.Prepared
	var undo []func()
	defer func() {
		for _, p := range whole {
			p.Discard()
		}
		if err != nil {
			for _, f := range undo {
				f()
			}
		}
	}()
	prepare := func(path string, write func(io.Writer) error) error {
		remove, err := makeFolder(filepath.Dir(path))
		undo = append(undo, remove)
		if err != nil {
			return fmt.Errorf("convert: %w", err)
		}
		p, err := sys.Prepare(path, write)
		if err == nil {
			whole = append(whole, p)
		}
		return err
	}
	if err := prepare(file, func(out io.Writer) error { _, err := w.WriteTo(out); return err }); err != nil {
		return fmt.Errorf("safetensors: write: %w", err)
	}
	for name, text := range texts {
		if err := prepare(filepath.Join(filepath.Dir(file), name), func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return fmt.Errorf("convert: %w", err)
		}
	}
	for err = c.ended(); err == nil && len(whole) > 0; whole = whole[1:] {
		err = whole[0].Commit()
	}
	return err
}

// makeFolder makes a folder and those that it lies in; undo removes those of them that
// were not there and are empty.
func makeFolder(dir string) (undo func(), err error) {
	var made []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(d); err == nil || d == filepath.Dir(d) {
			break
		}
		made = append(made, d)
	}
	return func() {
		for _, d := range made {
			if os.Remove(d) != nil {
				return
			}
		}
	}, os.MkdirAll(dir, 0o777)
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
	steps, err := c.files.OwnModules()
	if err != nil {
		return nil, nil, fmt.Errorf("convert: %w: %w", ErrConvert, err)
	}
	config := maps.Clone(c.files.Config())
	if c.files.Binding() == spec.HF {
		if c.files.Meta() == nil {
			if steps, err = c.files.Modules(); err != nil {
				return nil, nil, err
			}
		}
		for _, v := range c.files.Views() {
			tensors = append(tensors, stored(v))
		}
	} else {
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
		for _, s := range steps {
			step, _ := s.(map[string]any)
			r.Tensors = append(r.Tensors, c.moduleTensors(step)...)
		}
		config, tensors = r.Config, r.Tensors
		config["dtype"] = c.dtype()
	}
	if tensors, err = c.modules(steps, config, tensors, texts); err != nil {
		return nil, nil, err
	}
	if err := errors.Join(c.readable(), c.besides(texts)); err != nil {
		return nil, nil, err
	}
	if texts["config.json"] == nil {
		if texts["config.json"], err = json.MarshalIndent(decimals(config), "", "  "); err != nil {
			return nil, nil, fmt.Errorf("convert: config.json: %w", err)
		}
	}
	return texts, tensors, c.folderTokenizer(texts)
}

// besides adds the small files that lie beside the weights, or that a GGUF file
// carries; config.json only where it is to stay as it is.
func (c *job) besides(texts map[string][]byte) error {
	read := func(get func(string) ([]byte, error), names []string) error {
		for _, name := range names {
			raw, err := get(name)
			if err != nil {
				return err
			}
			if raw != nil {
				texts[name] = raw
			}
		}
		return nil
	}
	names := beside
	if c.files.Meta() == nil {
		names = append([]string{"config.json"}, beside...)
	}
	lengths, err := c.files.LengthFiles()
	if err = errors.Join(err, read(c.files.Optional, names), read(c.files.Outer, sentenceFiles), read(c.files.Outer, lengths)); err != nil {
		return err
	}
	if raw, e := c.sampling(); e != nil || raw != nil {
		texts[generationFile], err = raw, e
	}
	return err
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
