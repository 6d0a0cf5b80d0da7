package model

import (
	"errors"
	"os"
)

// SentenceKey is the key of config.json under which the modules of
// sentence-transformers reach a specification.
const SentenceKey = "sentence_transformers"

// Modules are what the folder's modules.json makes of the rows, as
// @std/encoder.star reads them; nil where there is none.
func (s *Stored) Modules() ([]any, error) {
	if s.root() == "" {
		return nil, nil
	}
	list, err := readModules(s.root())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []any
	for _, x := range list {
		step, err := s.module(x)
		if err != nil {
			return nil, err
		}
		if step != nil {
			steps = append(steps, step)
		}
	}
	return steps, nil
}

// Outer reads a small file of the folder that modules.json lies in, nil where
// it is missing.
func (s *Stored) Outer(name string) ([]byte, error) { return s.outer(name) }

// LengthFiles are the names for Outer of files with max_seq_length.
func (s *Stored) LengthFiles() []string { return s.lengthFiles() }

// OwnModules are the modules that a GGUF file of our own making carries.
func (s *Stored) OwnModules() []any {
	list, _ := s.folderConfig()[SentenceKey].([]any)
	return list
}
