package model

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// Keys under which a GGUF file of our own making carries what the format has no
// room for. Files of the folder go before what GGUF's own keys say.
const (
	OwnTokenizerKey       = "tokenizer.huggingface.json"
	OwnTokenizerConfigKey = "inferflow.tokenizer_config"
	OwnGenerationKey      = "inferflow.generation_config"
	// OwnFilePrefix is followed by the name of another small file of the folder.
	OwnFilePrefix = "inferflow.file."
	// OwnTensorsKey lists, as JSON, the tensors that other readers would refuse
	// the file for; the bytes of each stand under OwnTensorPrefix and its name.
	OwnTensorsKey   = "inferflow.tensors"
	OwnTensorPrefix = "inferflow.tensor."
	// OwnNamesKey lists tensor names that are longer than ggml's; number i is
	// stored as LongName(i).
	OwnNamesKey = "inferflow.tensor_names"
)

// OwnFileKey is the metadata key for a file of the folder.
func OwnFileKey(name string) string {
	switch name {
	case "tokenizer.json":
		return OwnTokenizerKey
	case "tokenizer_config.json":
		return OwnTokenizerConfigKey
	case "generation_config.json":
		return OwnGenerationKey
	}
	return OwnFilePrefix + name
}

// LongName is the name under which a GGUF file stores a tensor whose own name
// has number i in OwnNamesKey.
func LongName(i int) string { return fmt.Sprintf("inferflow.%d", i) }

// OwnTensor describes a tensor that stands among the metadata.
type OwnTensor struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Shape []int  `json:"shape"`
}

// ownSpec adds the specification that lies beside the weights or that a GGUF
// file carries, and what of the given settings is read beside a specification.
func (f *files) ownSpec(o *spec.Options) {
	for key := range o.Set {
		if ReadsBeside(key) {
			o.Elsewhere = append(o.Elsewhere, key)
		}
	}
	if o.FolderSpec != "" {
		return
	}
	if f.meta != nil {
		o.FolderText = string(kept(f.meta, OwnSpecFile))
	} else if own := filepath.Join(f.dir, OwnSpecFile); exists(own) {
		o.FolderSpec = own
	}
}

// OwnSpecFile is the specification in a model's folder.
const OwnSpecFile = "spec.star"

// kept is a file that the metadata carry, nil where they do not.
func kept(meta *gguf.Meta, name string) []byte {
	if !meta.Has(spec.OwnConfigKey) {
		return nil
	}
	if name == "config.json" {
		return bytesOf(meta, spec.OwnConfigKey)
	}
	return bytesOf(meta, OwnFileKey(name))
}

// folderConfig is config.json of the folder, or that of the folder which a GGUF
// file of our own making was made of; nil where there is none.
func (f *files) folderConfig() map[string]any {
	if f.Binding() == spec.HF {
		return f.config
	}
	return f.OwnConfig()
}

// OwnConfig implements spec.ConfigOwner.
func (f *files) OwnConfig() map[string]any { return f.ownConfig }

// configSource says where folderConfig's values stand.
func (f *files) configSource() string {
	if f.Binding() == spec.GGUF {
		return "gguf " + spec.OwnConfigKey
	}
	return "config.json"
}

func bytesOf(meta *gguf.Meta, key string) []byte {
	v, ok := meta.Value(key)
	if !ok {
		return nil
	}
	b, ok := v.Bytes()
	if !ok {
		return nil
	}
	return append([]byte{}, b...)
}

// carried gives the tokenizer the files that the metadata carry.
type carried struct{ meta *gguf.Meta }

// ReadFile implements tokenizer.Files.
func (c carried) ReadFile(name string) ([]byte, error) {
	if b := kept(c.meta, name); b != nil {
		return b, nil
	}
	return nil, fs.ErrNotExist
}

// own takes what a GGUF file of our own making carries beside the format's own
// metadata and tensors.
func (f *files) own() error {
	if err := f.carriedConfig(); err != nil {
		return fmt.Errorf("model: %s: %w", f.Path(), err)
	}
	if !f.whole {
		if err := spec.CheckOwnKeys(f.config); err != nil {
			return fmt.Errorf("model: %s: %w", f.Path(), err)
		}
	}
	if err := f.longNames(); err != nil {
		return err
	}
	return f.ownTensors()
}

// carriedConfig decodes the config.json that the file carries, as that of a
// folder is.
func (f *files) carriedConfig() error {
	arch, _ := f.meta.String("general.architecture")
	f.whole = arch == spec.OwnArchitecture
	if !f.meta.Has(spec.OwnConfigKey) {
		if f.whole {
			return fmt.Errorf("the architecture is %s, but there is no JSON object under %s", arch, spec.OwnConfigKey)
		}
		return nil
	}
	text, err := f.meta.String(spec.OwnConfigKey)
	if err != nil {
		return err
	}
	if len(text) > spec.MaxConfig {
		return fmt.Errorf("%s takes %d bytes, at most %d are read", spec.OwnConfigKey, len(text), spec.MaxConfig)
	}
	own, err := decodeObject([]byte(text))
	if err != nil {
		return fmt.Errorf("%s, the config.json that the file carries, holds no JSON object that can be read: %w", spec.OwnConfigKey, err)
	}
	if own == nil {
		return fmt.Errorf("%s, the config.json that the file carries, holds no JSON object", spec.OwnConfigKey)
	}
	if f.whole {
		f.config = own
	} else {
		f.ownConfig = own
	}
	return nil
}

// name adds a tensor under a name of our own.
func (f *files) name(v tensor.View) error {
	if _, ok := f.Tensor(v.Name); ok {
		return fmt.Errorf("model: %s: the tensor %.200q is there twice", f.Path(), v.Name)
	}
	if f.named == nil {
		f.named = map[string]tensor.View{}
	}
	f.named[v.Name] = v
	return nil
}

// longNames gives tensors the names that are longer than ggml's.
func (f *files) longNames() error {
	if !f.meta.Has(OwnNamesKey) {
		return nil
	}
	names, err := f.meta.Strings(OwnNamesKey)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	f.hidden = map[string]bool{}
	for i, name := range names {
		v, ok := f.File.Tensor(LongName(i))
		if !ok {
			return fmt.Errorf("model: %s: %s names %d tensors, but there is no %s", f.Path(), OwnNamesKey, len(names), LongName(i))
		}
		f.hidden[v.Name] = true
		v.Name = name
		if err := f.name(v); err != nil {
			return err
		}
	}
	return nil
}

// ownTensors takes the tensors that stand among the metadata.
func (f *files) ownTensors() error {
	raw := bytesOf(f.meta, OwnTensorsKey)
	if raw == nil {
		return nil
	}
	if len(raw) > spec.MaxConfig {
		return fmt.Errorf("model: %s: %s takes %d bytes, at most %d are read", f.Path(), OwnTensorsKey, len(raw), spec.MaxConfig)
	}
	var list []OwnTensor
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("model: %s: %s: %w", f.Path(), OwnTensorsKey, err)
	}
	if len(list) > maxOwnTensors {
		return fmt.Errorf("model: %s: %s lists %d tensors, at most %d are read", f.Path(), OwnTensorsKey, len(list), maxOwnTensors)
	}
	for _, t := range list {
		v, err := f.ownTensor(t)
		if err == nil {
			err = f.name(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxOwnTensors bounds the tensors among the metadata, of which a model has a
// few a layer.
const maxOwnTensors = 1 << 16

// maxDims bounds the dimensions of a tensor among the metadata, as those of
// other formats are.
const maxDims = 8

func (f *files) ownTensor(t OwnTensor) (v tensor.View, err error) {
	typ, ok := quant.ParseType(t.Type)
	if !ok {
		return v, fmt.Errorf("model: %s: %s: the type %.40q of %.200q is none", f.Path(), OwnTensorsKey, t.Type, t.Name)
	}
	if len(t.Shape) > maxDims {
		return v, fmt.Errorf("model: %s: %s: %.200q has %d dimensions, at most %d are read", f.Path(), OwnTensorsKey, t.Name, len(t.Shape), maxDims)
	}
	value, _ := f.meta.Value(OwnTensorPrefix + t.Name)
	data, _ := value.Bytes()
	if len(data) == 0 && isEmpty(t.Shape) {
		return tensor.View{Name: t.Name, Type: typ, Shape: t.Shape, Data: data}, nil
	}
	size, ok := uint64(1), true
	for i, n := range t.Shape {
		ok = ok && n > 0
		if i < len(t.Shape)-1 {
			if ok = ok && size <= uint64(len(data)); ok { // a row has a byte at least
				size *= uint64(n)
			}
		}
	}
	if ok {
		row, fits := typ.RowBytes(tensor.Shape(t.Shape).Cols())
		ok = fits && row > 0 && size <= uint64(len(data)) && size*uint64(row) == uint64(len(data))
	}
	if !ok {
		return v, fmt.Errorf("model: %s: %s%.200s: %d bytes, which the shape %v of type %s does not fill", f.Path(), OwnTensorPrefix, t.Name, len(data), t.Shape, typ)
	}
	return tensor.View{Name: t.Name, Type: typ, Shape: t.Shape, Data: data}, nil
}

// isEmpty says that a shape holds no values, and could not be of any width.
func isEmpty(shape []int) bool {
	none := false
	for _, n := range shape {
		if n < 0 || n > maxEmpty {
			return false
		}
		none = none || n == 0
	}
	return none
}

// maxEmpty bounds the dimensions of a tensor without values, of which nothing
// else says what they may be.
const maxEmpty = 1 << 24
