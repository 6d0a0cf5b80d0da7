package convert

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// fromFolder collects what the GGUF file of a folder holds: under llama.cpp's
// names where the specification can say the model so, else as it is.
func (c *job) fromFolder(out string) ([]spec.ReboundTensor, []setting, error) {
	s, err := c.files.Spec(c.o.Spec)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.Rebind(c.files)
	if errors.Is(err, spec.ErrRebind) {
		return c.whole(out, s, err)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, n := range r.Notes {
		c.o.Notice(n)
	}
	if err := errors.Join(c.pooling(r), c.prompts()); err != nil {
		return nil, nil, err
	}
	set := c.general(r.Architecture, out)
	for _, k := range slices.Sorted(maps.Keys(r.Metadata)) {
		if k != "general.architecture" && k != spec.OwnConfigKey && k != spec.OwnFolderKey {
			set = append(set, setting{k, r.Metadata[k]})
		}
	}
	words, err := c.ggufTokenizer(r)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range words {
		if _, ok := r.Metadata[w.key]; !ok {
			set = append(set, w)
		}
	}
	files, err := c.carry(s)
	if err != nil {
		return nil, nil, err
	}
	aside, left, err := c.aside(r.Aside)
	set = append(append(set, files...), aside...)
	if text, ok := r.Metadata[spec.OwnFolderKey]; ok {
		set = append(set, setting{spec.OwnFolderKey, text})
	}
	return append(r.Tensors, left...), append(set, setting{spec.OwnConfigKey, r.Metadata[spec.OwnConfigKey]}), err
}

func (c *job) general(arch, out string) []setting {
	return []setting{{"general.architecture", arch}, {"general.type", "model"}, {"general.name", c.name(out)}, {"general.quantization_version", uint32(2)}}
}

// whole collects a folder as it is, for families that no other program reads
// from GGUF. why says what stands against llama.cpp's form.
func (c *job) whole(out string, s *spec.Spec, why error) ([]spec.ReboundTensor, []setting, error) {
	config, err := c.ownConfig()
	if err != nil {
		return nil, nil, err
	}
	traced, err := s.Trace(retyped{c.files, c.wholeType})
	if err != nil {
		return nil, nil, fmt.Errorf("convert: as GGUF the folder could not be read back: %w: %w", ErrConvert, err)
	}
	var tensors, empty []spec.ReboundTensor
	var long []string
	for _, v := range c.files.Views() {
		if _, err := c.wholeType(v.Name, v.Type, v.Shape); err != nil && slices.Contains(traced.Ignored, v.Name) {
			continue // a mask or the like, of a type that GGUF lacks
		}
		t := stored(v)
		if v.Shape.Elements() == 0 { // GGUF has no room for it
			empty = append(empty, t)
			continue
		}
		if len(t.Name) > maxGGUFName {
			t.Name, long = model.LongName(len(long)), append(long, v.Name)
		}
		tensors = append(tensors, t)
	}
	set := c.general(spec.OwnArchitecture, out)
	files, err := c.carry(s)
	if err != nil {
		return nil, nil, err
	}
	text, err := c.files.Template()
	if err != nil {
		return nil, nil, err
	}
	if text != "" {
		set = append(set, setting{"tokenizer.chat_template", text})
	}
	aside, _, err := c.aside(empty)
	set = append(append(set, files...), aside...)
	if len(long) > 0 {
		set = append(set, setting{model.OwnNamesKey, long})
	}
	c.o.Notice(fmt.Sprintf("no other program reads this GGUF file: it holds the folder as it is under an architecture of our own, %s (%s)", spec.OwnArchitecture, spec.ShortReason(why)))
	return tensors, append(set, setting{spec.OwnConfigKey, config}), err
}

// maxGGUFName is the length of tensor names that ggml has room for.
const maxGGUFName = 63

// wholeType is the type of a tensor in a GGUF file that holds a folder as it is.
func (c *job) wholeType(name string, have quant.Type, shape tensor.Shape) (quant.Type, error) {
	if !have.GGML() {
		return 0, fmt.Errorf("%s is stored as %s, a type that GGUF has not; convert it to a folder of another type first: %w", name, have, ErrConvert)
	}
	if have == quant.F32 || have == quant.F16 || have == quant.BF16 {
		return c.ggufType(name, have, shape)
	}
	return have, nil
}

// retyped are files whose tensors have the types that they are to be written in.
type retyped struct {
	*model.Stored
	typeOf func(string, quant.Type, tensor.Shape) (quant.Type, error)
}

// Tensor implements spec.Files.
func (r retyped) Tensor(name string) (tensor.View, bool) {
	v, ok := r.Stored.Tensor(name)
	if t, err := r.typeOf(name, v.Type, v.Shape); ok && err == nil {
		v.Type, v.Data = t, nil
	}
	return v, ok
}
