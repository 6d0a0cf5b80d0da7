package model

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/inferflow/inferflow/spec"
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
func (s *Stored) LengthFiles() ([]string, error) { return s.lengthFiles() }

// OwnModules are the modules that a GGUF file of our own making carries, nil
// where it carries none. It fails with what cannot be of our making.
func (s *Stored) OwnModules() ([]any, error) { return s.ownModules() }

func (f *files) ownModules() ([]any, error) {
	if f.meta == nil {
		return nil, nil
	}
	list, ok := f.folderConfig()[SentenceKey].([]any) // an object is what classes of scores write there
	if !ok {
		return nil, nil
	}
	if len(list) > maxModules {
		return nil, fmt.Errorf("model: %s: %s of %s lists %d modules, at most %d are read", f.Path(), SentenceKey, spec.OwnConfigKey, len(list), maxModules)
	}
	for i, x := range list {
		if err := checkModule(x); err != nil {
			return nil, fmt.Errorf("model: %s: %s of %s: module %d: %w", f.Path(), SentenceKey, spec.OwnConfigKey, i, err)
		}
	}
	return list, nil
}

// checkModule holds a module that a file carries against what (*files).module
// makes, so that its readers find strings where they look for them.
func checkModule(x any) error {
	step, ok := x.(map[string]any)
	if !ok {
		return errors.New("it is no object")
	}
	kind, _ := step["kind"].(string)
	switch kind {
	case "normalize":
	case "pooling":
		return checkPooling(step)
	case "layer_norm", "dense":
		if name, _ := step["name"].(string); name == "" || len(name) > maxModuleName {
			return fmt.Errorf("name is no text of 1 to %d bytes", maxModuleName)
		}
		if kind == "layer_norm" {
			break
		}
		act, _ := step["activation"].(string)
		if _, ok := step["bias"].(bool); !ok || !slices.Contains(slices.Collect(maps.Values(torchActivations)), act) {
			return errors.New("bias is no truth value, or activation none that is served")
		}
	default:
		return errors.New("its kind is none of pooling, normalize, dense and layer_norm")
	}
	return nil
}

// maxModuleName bounds the name of a module's layer: the path of a folder.
const maxModuleName = 512

func checkPooling(step map[string]any) error {
	how, _ := step["how"].([]any)
	if len(how) == 0 || len(how) > len(poolingModes) {
		return fmt.Errorf("how is no list of 1 to %d ways of pooling", len(poolingModes))
	}
	for _, h := range how {
		name, _ := h.(string)
		if !slices.Contains(slices.Collect(maps.Values(poolingModes)), name) {
			return errors.New("how names a way of pooling that is not served")
		}
	}
	if v, ok := step["include_prompt"]; ok {
		if _, ok := v.(bool); !ok {
			return errors.New("include_prompt is no truth value")
		}
	}
	return nil
}
