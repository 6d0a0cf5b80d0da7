package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/inferflow/inferflow/format"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// Sentence is what a folder of sentence-transformers says of its embeddings
// beside the weights. The zero value is a folder that says nothing.
type Sentence struct {
	Modules       bool              // modules.json is there
	MaxTokens     int               // tokens of a text at most, 0 if unknown
	Prompts       map[string]string // text that goes before a text, by name
	DefaultPrompt string            // name of the prompt where none is asked for, "" for none
	IncludePrompt bool              // the prompt's tokens are pooled too
	Dimensions    int               // numbers that are kept, 0 for all
}

// sentenceModule is an entry of modules.json.
type sentenceModule struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// kind is the last part of a module's type: the path before it changed over the years.
func (m sentenceModule) kind() string { return m.Type[strings.LastIndexByte(m.Type, '.')+1:] }

const maxModules = 64

func readModules(dir string) ([]sentenceModule, error) {
	raw, err := readWithin(filepath.Join(dir, "modules.json"), spec.MaxConfig)
	if err != nil {
		return nil, err
	}
	var list []sentenceModule
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("model: %s: modules.json: %w", dir, err)
	}
	if len(list) > maxModules {
		return nil, fmt.Errorf("model: %s: modules.json lists %d modules, at most %d are read", dir, len(list), maxModules)
	}
	for _, m := range list {
		if m.Path != "" && !filepath.IsLocal(m.Path) {
			return nil, fmt.Errorf("model: %s: modules.json: the path %.200q leads out of the folder", dir, m.Path)
		}
	}
	return list, nil
}

// transformerOf is the folder of weights inside a folder whose modules.json
// puts them elsewhere, and that outer folder; else path itself and "".
func transformerOf(path string) (inner, top string) {
	if exists(filepath.Join(path, "config.json")) {
		return path, ""
	}
	list, err := readModules(path)
	if err != nil {
		return path, ""
	}
	for _, m := range list {
		if m.kind() == "Transformer" && m.Path != "" {
			return filepath.Join(path, m.Path), path
		}
	}
	return path, ""
}

// root is the folder that modules.json lies in.
func (f *files) root() string {
	if f.top != "" {
		return f.top
	}
	return f.dir
}

// object reads a JSON object of the outer folder into v; a missing file leaves it.
func (f *files) object(name string, v any) error {
	raw, err := f.outer(name)
	if raw == nil && err == nil {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return fmt.Errorf("model: %s: %w", filepath.Join(f.root(), name), err)
	}
	return nil
}

// outer reads a file of the outer folder, or one that a GGUF file carries; a
// missing one gives nil.
func (f *files) outer(name string) ([]byte, error) {
	if f.meta != nil {
		return kept(f.meta, name), nil
	}
	raw, err := readWithin(f.beside(name), spec.MaxConfig)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return raw, err
}

// beside is the path of a file of the outer folder.
func (f *files) beside(name string) string { return filepath.Join(f.root(), name) }

// sentence reads the folder's sentence-transformers files, and hands its
// modules to the specification where embeddings are asked for.
func (m *Model) sentence() error {
	f := m.files
	m.Sentence.IncludePrompt = true
	if f.root() == "" {
		return m.ownSentence()
	}
	list, err := readModules(f.root())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	m.Sentence.Modules = err == nil
	if m.o.Output != spec.OutputEmbedding {
		return nil
	}
	if err := m.sentenceSettings(); err != nil || len(list) == 0 {
		return err
	}
	steps := []any{}
	for _, x := range list {
		step, err := f.module(x)
		if err != nil {
			return err
		}
		if step == nil {
			continue
		}
		if step["kind"] == "pooling" && step["include_prompt"] == false {
			m.Sentence.IncludePrompt = false
		}
		steps = append(steps, step)
	}
	f.config[SentenceKey] = steps
	return nil
}

// ownSentence reads what a GGUF file of our own making carries of those files.
func (m *Model) ownSentence() error {
	steps, err := m.files.ownModules()
	if err != nil {
		return err
	}
	m.Sentence.Modules = steps != nil
	if m.files.whole && m.o.Output != spec.OutputEmbedding {
		delete(m.files.config, SentenceKey)
	}
	for _, s := range steps {
		if step, ok := s.(map[string]any); ok && step["kind"] == "pooling" && step["include_prompt"] == false {
			m.Sentence.IncludePrompt = false
		}
	}
	if m.files.meta == nil || m.o.Output != spec.OutputEmbedding {
		return nil
	}
	return m.sentenceSettings()
}

// sentenceSettings reads lengths and prompts.
func (m *Model) sentenceSettings() error {
	s := &m.Sentence
	var own struct {
		Max *int `json:"max_seq_length"`
	}
	lengths, err := m.files.lengthFiles()
	if err != nil {
		return err
	}
	for _, name := range lengths {
		if err := m.files.object(name, &own); err != nil {
			return err
		}
		if own.Max != nil {
			break
		}
	}
	var tok struct {
		Max float64 `json:"model_max_length"`
	}
	raw, err := m.files.optional("tokenizer_config.json")
	if err != nil {
		return err
	}
	_ = json.Unmarshal(raw, &tok) // an odd length is none
	switch {
	case own.Max != nil && *own.Max > 0:
		s.MaxTokens = *own.Max
	case tok.Max >= 1 && tok.Max < 1<<30:
		s.MaxTokens = int(tok.Max)
	}
	var prompts struct {
		Prompts  map[string]string `json:"prompts"`
		Default  *string           `json:"default_prompt_name"`
		Truncate *int              `json:"truncate_dim"`
	}
	if err := m.files.object("config_sentence_transformers.json", &prompts); err != nil {
		return err
	}
	s.Prompts = prompts.Prompts
	if prompts.Default != nil {
		s.DefaultPrompt = *prompts.Default
	}
	if prompts.Truncate != nil {
		s.Dimensions = *prompts.Truncate
	}
	return nil
}

// module turns an entry of modules.json into what @std/encoder.star reads;
// nil for one that changes nothing.
func (f *files) module(x sentenceModule) (map[string]any, error) {
	switch x.kind() {
	case "Transformer", "Dropout":
		return nil, nil
	case "Pooling":
		return f.pooling(x.Path)
	case "Normalize":
		return map[string]any{"kind": "normalize"}, nil
	case "LayerNorm":
		return map[string]any{"kind": "layer_norm", "name": x.Path + ".norm"}, f.include(x.Path)
	case "Dense":
		c := struct {
			Bias       *bool  `json:"bias"`
			Activation string `json:"activation_function"`
		}{Activation: "Tanh"}
		if err := f.object(filepath.Join(x.Path, "config.json"), &c); err != nil {
			return nil, err
		}
		act, ok := torchActivations[c.Activation[strings.LastIndexByte(c.Activation, '.')+1:]]
		if !ok {
			return nil, fmt.Errorf("model: %s: the activation %.100q of a Dense module is not served", x.Path, c.Activation)
		}
		return map[string]any{"kind": "dense", "name": x.Path + ".linear", "bias": c.Bias == nil || *c.Bias, "activation": act}, f.include(x.Path)
	}
	return nil, fmt.Errorf("model: modules.json: a module of type %.100q is not served; Transformer, Pooling, Dense, LayerNorm, Normalize and Dropout are", x.Type)
}

var torchActivations = map[string]string{"Identity": "identity", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu", "Sigmoid": "sigmoid", "SiLU": "silu"}

// pooling reads 1_Pooling/config.json: switches in the older files, a name in
// the newer. Several ways are joined in the order of the reference.
func (f *files) pooling(path string) (map[string]any, error) {
	var c struct {
		Mode     any   `json:"pooling_mode"`
		CLS      bool  `json:"pooling_mode_cls_token"`
		Max      bool  `json:"pooling_mode_max_tokens"`
		Mean     *bool `json:"pooling_mode_mean_tokens"`
		Sqrt     bool  `json:"pooling_mode_mean_sqrt_len_tokens"`
		Weighted bool  `json:"pooling_mode_weightedmean_tokens"`
		Last     bool  `json:"pooling_mode_lasttoken"`
		Prompt   *bool `json:"include_prompt"`
	}
	if err := f.object(filepath.Join(path, "config.json"), &c); err != nil {
		return nil, err
	}
	how := []any{}
	for _, w := range []struct {
		on   bool
		name string
	}{{c.CLS, "cls"}, {c.Max, "max"}, {c.Mean == nil && c.Mode == nil || c.Mean != nil && *c.Mean, "mean"}, {c.Sqrt, "mean_sqrt"}, {c.Weighted, "weighted"}, {c.Last, "last"}} {
		if w.on {
			how = append(how, w.name)
		}
	}
	if names, err := poolingNames(c.Mode); err != nil {
		return nil, fmt.Errorf("model: %s: %w", path, err)
	} else if names != nil {
		how = names
	}
	if len(how) == 0 {
		return nil, fmt.Errorf("model: %s: config.json switches every way of pooling off", path)
	}
	return map[string]any{"kind": "pooling", "how": how, "include_prompt": c.Prompt == nil || *c.Prompt}, nil
}

// poolingModes are the newer names of the ways to pool, and ours.
var poolingModes = map[string]string{"cls": "cls", "max": "max", "mean": "mean", "mean_sqrt_len_tokens": "mean_sqrt", "weightedmean": "weighted", "lasttoken": "last"}

// poolingNames reads the newer pooling_mode: a name or several.
func poolingNames(mode any) (out []any, err error) {
	switch x := mode.(type) {
	case nil:
		return nil, nil
	case string:
		mode = []any{x}
	}
	list, ok := mode.([]any)
	if !ok {
		return nil, errors.New("config.json: pooling_mode is neither a name nor a list of names")
	}
	if len(list) > len(poolingModes) {
		return nil, fmt.Errorf("config.json: pooling_mode lists %d names, there are %d", len(list), len(poolingModes))
	}
	for _, x := range list {
		name, _ := x.(string)
		how, ok := poolingModes[name]
		if !ok {
			return nil, fmt.Errorf("config.json: the pooling_mode %.100q is not served", fmt.Sprint(x))
		}
		out = append(out, how)
	}
	return out, nil
}

// include adds the tensors of a module's folder under its path and a dot.
func (f *files) include(path string) error {
	x, err := format.Open(filepath.Join(f.root(), path))
	if err != nil {
		return fmt.Errorf("model: the weights of the module %s: %w", path, err)
	}
	f.extra = append(f.extra, x)
	if f.named == nil {
		f.named = map[string]tensor.View{}
	}
	for _, t := range x.Tensors() {
		f.named[path+"."+t.Name] = t
	}
	return nil
}
