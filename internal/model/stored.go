package model

import (
	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tokenizer"
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
	s.ownSpec(&o)
	return spec.Resolve(s.files, o)
}

// Meta is the metadata of a GGUF file, nil for a folder.
func (s *Stored) Meta() *gguf.Meta { return s.meta }

// Folder is the Hugging Face folder, "" for a single file.
func (s *Stored) Folder() string { return s.dir }

// Optional reads a small file of the folder, nil where it is missing.
func (s *Stored) Optional(name string) ([]byte, error) { return s.optional(name) }

// Release lets the system drop the pages of a tensor that was written.
func (s *Stored) Release(name string) { _ = s.File.Release(name) }

// Whole says that the file is a GGUF that holds a folder as it is.
func (s *Stored) Whole() bool { return s.whole }

// Kept reads a file that a GGUF file of our own making carries, nil where it
// does not.
func (s *Stored) Kept(name string) []byte {
	if s.meta == nil {
		return nil
	}
	return kept(s.meta, name)
}

// Tokenizer reads the model's own tokenizer; tokenizer.ErrNoTokenizer where
// there is none.
func (s *Stored) Tokenizer() (*tokenizer.Tokenizer, error) { return s.tokenizer() }

// Template is the source of the chat template, "" where there is none.
func (s *Stored) Template() (string, error) { return s.template() }
