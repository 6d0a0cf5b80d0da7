package model

import (
	"path/filepath"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// Stored is a model's files without a program: what a conversion reads. It
// implements spec.Files and weight.Source.
type Stored struct{ *files }

// OpenStored opens the files of the model at path.
func OpenStored(path string) (*Stored, error) {
	f, err := openFiles(path)
	if err != nil {
		return nil, err
	}
	return &Stored{f}, nil
}

// Spec chooses the specification, as Open does.
func (s *Stored) Spec(o spec.Options) (*spec.Spec, error) {
	if own := filepath.Join(s.dir, "spec.star"); o.FolderSpec == "" && s.dir != "" && exists(own) {
		o.FolderSpec = own
	}
	return spec.Resolve(s.files, o)
}

// Meta is the metadata of a GGUF file, nil for a folder.
func (s *Stored) Meta() *gguf.Meta { return s.meta }

// Folder is the Hugging Face folder, "" for a single file.
func (s *Stored) Folder() string { return s.dir }

// Optional reads a small file of the folder, nil where it is missing.
func (s *Stored) Optional(name string) ([]byte, error) { return s.optional(name) }

// Views lists the stored tensors.
func (s *Stored) Views() []tensor.View { return s.Tensors() }

// Release lets the system drop the pages of a tensor that was written.
func (s *Stored) Release(name string) { _ = s.File.Release(name) }
