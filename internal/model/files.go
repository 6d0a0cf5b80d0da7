package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/inferflow/inferflow/format"
	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
	"github.com/inferflow/inferflow/tokenizer"
)

// maxJSON bounds the JSON files of a folder; tokenizers are the largest.
const maxJSON = 256 << 20

// files is an opened model as a specification sees it.
type files struct {
	format.File
	dir    string                 // folder of a Hugging Face model, "" for GGUF
	top    string                 // folder with modules.json where it is another than dir, else ""
	extra  []format.File          // further files of tensors, and
	named  map[string]tensor.View // what they hold, and tensors of a GGUF file under names of our own
	hidden map[string]bool        // names of the file that stand for longer ones of named
	meta   *gguf.Meta
	whole  bool // a GGUF file that holds a folder as it is
	config map[string]any

	ownConfig map[string]any // carried by a GGUF file, of folderConfig
}

func openFiles(path string) (*files, error) {
	path, top := transformerOf(path)
	f, err := format.Open(path)
	if err != nil {
		return nil, err
	}
	m := &files{File: f, top: top}
	switch g := f.(type) {
	case *gguf.File:
		m.meta = &g.Meta
	case interface{ Metadata() *gguf.Meta }: // a format that speaks GGUF's language
		m.meta = g.Metadata()
	}
	if m.meta != nil {
		m.config = configOf(m.meta)
		if err := m.own(); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return m, nil
	}
	m.dir = filepath.Dir(f.Path())
	raw, err := readWithin(filepath.Join(m.dir, "config.json"), spec.MaxConfig)
	if err == nil {
		m.config, err = decodeObject(raw)
	}
	if errors.Is(err, os.ErrNotExist) {
		f.Close()
		return nil, fmt.Errorf("model: %s: weights alone do not say what model they are: config.json must lie beside them, in %s: %w", f.Path(), m.dir, os.ErrNotExist)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("model: %s: config.json: %w", m.dir, err)
	}
	return m, nil
}

// decodeObject decodes a JSON object, as Python writes it.
func decodeObject(raw []byte) (map[string]any, error) {
	v, err := decodeStrict(raw)
	if err != nil {
		if again, e := decodeStrict(spec.PythonFloats(raw)); e == nil {
			return again, nil
		}
	}
	return v, err
}

func decodeStrict(raw []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more behind the JSON object")
	}
	return v, nil
}

// readJSON reads a file of the folder within maxJSON.
func readJSON(path string) ([]byte, error) { return readWithin(path, maxJSON) }

// readWithin reads a file of at most so many bytes, others being an error.
func readWithin(path string, most int) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(raw) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	return raw, err
}

// Binding implements spec.Files.
func (f *files) Binding() string {
	if f.meta != nil && !f.whole {
		return spec.GGUF
	}
	return spec.HF
}

// Config implements spec.Files.
func (f *files) Config() map[string]any { return f.config }

// Architecture implements spec.Files.
func (f *files) Architecture() string {
	if f.Binding() != spec.GGUF {
		return ""
	}
	s, _ := f.meta.String("general.architecture")
	return s
}

// TensorNames implements spec.Files.
func (f *files) TensorNames() []string {
	var names []string
	for _, v := range f.Views() {
		names = append(names, v.Name)
	}
	return names
}

// Views implements spec.Lister.
func (f *files) Views() []tensor.View {
	views := slices.Clip(f.Tensors())
	if len(f.hidden) > 0 {
		views = slices.DeleteFunc(slices.Clone(views), func(v tensor.View) bool { return f.hidden[v.Name] })
	}
	for name, v := range f.named {
		v.Name = name
		views = append(views, v)
	}
	return views
}

// Tensor implements spec.Files and weight.Source.
func (f *files) Tensor(name string) (tensor.View, bool) {
	if v, ok := f.named[name]; ok {
		return v, true
	}
	return f.File.Tensor(name)
}

// Close closes all files.
func (f *files) Close() error {
	err := f.File.Close()
	for _, x := range f.extra {
		err = errors.Join(err, x.Close())
	}
	return err
}

// optional reads a small file of the folder, or one that a GGUF file of our own
// making carries; a missing file gives nil.
func (f *files) optional(name string) ([]byte, error) {
	if f.meta != nil {
		return kept(f.meta, name), nil
	}
	if f.dir == "" {
		return nil, nil
	}
	raw, err := readJSON(filepath.Join(f.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", name, err)
	}
	return raw, nil
}

// tokenizer reads the model's own tokenizer; ErrNoTokenizer where there is none.
func (f *files) tokenizer() (*tokenizer.Tokenizer, error) {
	if f.meta != nil {
		if f.meta.Has(spec.OwnConfigKey) {
			if t, err := tokenizer.Open(carried{f.meta}); f.whole || !errors.Is(err, tokenizer.ErrNoTokenizer) {
				return t, err
			}
		}
		return tokenizer.FromGGUF(f.meta)
	}
	return tokenizer.Open(folder{f.dir})
}

// folder gives the tokenizer its files.
type folder struct{ dir string }

// ReadFile implements tokenizer.Files.
func (f folder) ReadFile(name string) ([]byte, error) { return readJSON(filepath.Join(f.dir, name)) }

// template finds the chat template's source; "" where there is none.
func (f *files) template() (string, error) {
	if f.meta != nil {
		s, err := f.meta.String("tokenizer.chat_template")
		if err != nil && f.meta.Has("tokenizer.chat_template") {
			return "", err
		}
		return s, nil
	}
	if raw, err := f.optional("chat_template.jinja"); err != nil || raw != nil {
		return string(raw), err
	}
	raw, err := f.optional("tokenizer_config.json")
	if err != nil || raw == nil {
		return "", err
	}
	return templateOf(raw)
}

// templateOf reads chat_template of tokenizer_config.json: a string, or a list
// of named ones of which "default" counts.
func templateOf(raw []byte) (string, error) {
	var c struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", fmt.Errorf("model: tokenizer_config.json: %w", err)
	}
	if len(c.Template) == 0 || string(c.Template) == "null" {
		return "", nil
	}
	var one string
	if json.Unmarshal(c.Template, &one) == nil {
		return one, nil
	}
	var many []struct{ Name, Template string }
	if err := json.Unmarshal(c.Template, &many); err != nil {
		return "", fmt.Errorf("model: tokenizer_config.json: chat_template: %w", err)
	}
	for _, t := range many {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", nil
}

// OpenTokenizer reads only the tokenizer of the model at path, which may also be a folder with nothing else.
func OpenTokenizer(path string) (*tokenizer.Tokenizer, error) {
	f, err := openFiles(path)
	if err == nil {
		defer f.Close()
		return f.tokenizer()
	}
	if info, e := os.Stat(path); e == nil && info.IsDir() {
		if t, e := tokenizer.Open(folder{path}); !errors.Is(e, tokenizer.ErrNoTokenizer) {
			return t, e
		}
	}
	return nil, err
}
