package convert

import (
	"fmt"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// readable refuses to make a folder of a GGUF file that nothing would open: the
// config.json that the file carries is whatever somebody wrote. A folder is
// copied as it is, of whatever family.
func (c *job) readable(config map[string]any, tensors []spec.ReboundTensor) error {
	if c.files.Meta() == nil {
		return nil
	}
	err := c.served(config, tensors)
	if err != nil {
		return fmt.Errorf("convert: %w: the folder could not be read back: %w", ErrConvert, err)
	}
	return nil
}

func (c *job) served(config map[string]any, tensors []spec.ReboundTensor) error {
	if c.files.Binding() == spec.HF { // which it is already
		s, err := c.files.Spec(c.o.Spec)
		if err == nil {
			_, err = s.Trace(c.files)
		}
		return err
	}
	if c.o.Spec.Name != "" || c.o.Spec.SpecFile != "" { // which may be needed to read the folder as well
		return nil
	}
	to := &folderFiles{c.files, config, map[string]tensor.Shape{}}
	for _, t := range tensors {
		to.shapes[t.Name] = t.Value.Shape
	}
	_, err := spec.Resolve(to, spec.Options{})
	return err
}

// folderFiles are the files of a folder that is about to be made.
type folderFiles struct {
	*model.Stored
	config map[string]any
	shapes map[string]tensor.Shape
}

// Binding implements spec.Files.
func (f *folderFiles) Binding() string { return spec.HF }

// Config implements spec.Files.
func (f *folderFiles) Config() map[string]any { return f.config }

// Architecture implements spec.Files.
func (f *folderFiles) Architecture() string { return "" }

// Tensor implements spec.Files.
func (f *folderFiles) Tensor(name string) (tensor.View, bool) {
	shape, ok := f.shapes[name]
	return tensor.View{Name: name, Shape: shape}, ok
}

// TensorNames implements spec.Files.
func (f *folderFiles) TensorNames() (names []string) {
	for name := range f.shapes {
		names = append(names, name)
	}
	return names
}

// Views implements spec.Lister.
func (f *folderFiles) Views() (views []tensor.View) {
	for name, shape := range f.shapes {
		views = append(views, tensor.View{Name: name, Shape: shape})
	}
	return views
}
