package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// Sketch is what is known of a model's files without their weights: enough to
// check a specification, not to run it.
type Sketch struct {
	spec.Files
	// Note says what is missing; "" where the files are whole.
	Note string
	// NoTensors says that not even the names of the tensors are known: then
	// every tensor that is asked for counts as stored, but for biases.
	NoTensors bool
	// OwnSpec is the folder's spec.star, "" where it has none.
	OwnSpec string
	close   func() error
}

// OwnConfig implements spec.ConfigOwner.
func (s *Sketch) OwnConfig() map[string]any { return spec.OwnConfig(s.Files) }

// Close gives back what the files hold open.
func (s *Sketch) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// OpenSketch opens a model for checking. A whole model opens as for Open; of a
// folder it is enough that it holds config.json, and the headers of the
// safetensors files or their index tell more.
func OpenSketch(path string) (*Sketch, error) {
	f, err := openFiles(path)
	if err == nil {
		s := &Sketch{Files: f, close: f.Close}
		if own := filepath.Join(f.dir, "spec.star"); f.dir != "" && exists(own) {
			s.OwnSpec = own
		}
		return s, nil
	}
	if info, statErr := os.Stat(path); statErr != nil || !info.IsDir() {
		return nil, err
	}
	raw, readErr := readWithin(filepath.Join(path, "config.json"), spec.MaxConfig)
	if readErr != nil {
		return nil, err
	}
	config, jsonErr := decodeObject(raw)
	if jsonErr != nil {
		return nil, fmt.Errorf("model: %s: config.json: %w", path, jsonErr)
	}
	s := &Sketch{}
	if own := filepath.Join(path, "spec.star"); exists(own) {
		s.OwnSpec = own
	}
	views, sketchErr := safetensors.Sketch(path)
	if sketchErr != nil && !errors.Is(sketchErr, safetensors.ErrMissing) {
		return nil, sketchErr
	}
	sf := &sketchFiles{config: config, views: map[string]tensor.View{}, any: sketchErr != nil}
	s.Files, s.NoTensors = sf, sf.any
	names := 0
	for _, v := range views {
		sf.views[v.Name] = v
		if v.Shape == nil {
			names++
		}
	}
	switch {
	case sf.any:
		s.Note = "the folder holds config.json alone: only the specification itself is checked, as if every tensor that it asks for were stored"
	case names == len(views):
		s.Note = "the folder holds the names of the tensors alone: shapes are not checked"
	case names > 0:
		s.Note = fmt.Sprintf("of %d of %d tensors only the names are known: their shapes are not checked", names, len(views))
	default:
		s.Note = "the folder holds the headers of its tensors, not their values"
	}
	return s, nil
}

// sketchFiles are the files of a folder without weights.
type sketchFiles struct {
	config map[string]any
	views  map[string]tensor.View
	any    bool
}

// Binding implements spec.Files.
func (f *sketchFiles) Binding() string { return spec.HF }

// Config implements spec.Files.
func (f *sketchFiles) Config() map[string]any { return f.config }

// Architecture implements spec.Files.
func (f *sketchFiles) Architecture() string { return "" }

// Tensor implements spec.Files.
func (f *sketchFiles) Tensor(name string) (tensor.View, bool) {
	if f.any { // but for biases, of which most models have few
		return tensor.View{Name: name}, !strings.HasSuffix(name, ".bias")
	}
	v, ok := f.views[name]
	return v, ok
}

// TensorNames implements spec.Files.
func (f *sketchFiles) TensorNames() []string {
	names := make([]string, 0, len(f.views))
	for n := range f.views {
		names = append(names, n)
	}
	return names
}
