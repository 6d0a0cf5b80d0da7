package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/weight"
	"github.com/inferflow/inferflow/spec"
)

// wordFiles are files of a folder that hold a vocabulary in another form than
// tokenizer.json, or belong to one.
var wordFiles = []string{"tekken.json", "source.spm", "target.spm", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model", "spm.model",
	"tokenizer_model.model", "ice_text.model", "tiktoken.model", "vocab.json", "merges.txt", "vocab.txt", "special_tokens_map.json", "added_tokens.json"}

// sentenceFiles are files of sentence-transformers beside modules.json.
var sentenceFiles = []string{"config_sentence_transformers.json"}

// carry collects the small files of the folder that GGUF has no keys for. A
// vocabulary in an older form is one of them only where there is no
// tokenizer.json, which says the same.
func (c *job) carry(s *spec.Spec) (set []setting, err error) {
	add := func(read func(string) ([]byte, error), names ...string) {
		for _, name := range names {
			raw, e := read(name)
			if e != nil && err == nil {
				err = e
			}
			if e != nil || raw == nil {
				continue
			}
			if strings.HasSuffix(name, ".json") && !isObject(raw) {
				c.o.Notice(name + " holds no JSON object and is left out")
				continue
			}
			if value := any(string(raw)); utf8.Valid(raw) {
				set = append(set, setting{model.OwnFileKey(name), value})
			} else {
				set = append(set, setting{model.OwnFileKey(name), raw})
			}
		}
	}
	add(c.files.Optional, "tokenizer.json", "tokenizer_config.json")
	add(func(string) ([]byte, error) {
		raw, err := c.sampling()
		set = append(set, ggufSampling(raw)...)
		return raw, err
	}, generationFile)
	if !slices.ContainsFunc(set, func(s setting) bool { return s.key == model.OwnTokenizerKey }) {
		add(c.files.Optional, wordFiles...)
	}
	lengths, e := c.files.LengthFiles()
	err = errors.Join(err, e)
	add(c.files.Outer, sentenceFiles...)
	add(c.files.Outer, lengths...)
	if s.Foreign {
		set = append(set, setting{model.OwnFileKey(model.OwnSpecFile), s.Source})
	}
	return set, err
}

// isObject says whether a file is what its name claims, so that a link to
// another file does not carry that away.
func isObject(raw []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) && json.Valid(raw)
}

// ownConfig is the folder's config.json, with its modules of sentence-transformers.
func (c *job) ownConfig() (string, error) {
	steps, err := c.files.Modules()
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(c.files.Config())
	if err != nil || steps == nil {
		return string(raw), err
	}
	return withModules(string(raw), steps)
}

// withModules adds modules of sentence-transformers to a config.json.
func withModules(text string, steps []any) (string, error) {
	var config map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&config); err != nil {
		return "", fmt.Errorf("convert: config.json: %w", err)
	}
	config[model.SentenceKey] = steps
	raw, err := json.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("convert: config.json: %w", err)
	}
	return string(raw), nil
}

// maxAside bounds the bytes of tensors among the metadata: readers hold those
// in memory.
const maxAside = 1 << 28

// aside writes the tensors that llama.cpp would refuse the file for as keys.
// Those for which that is too much are left.
func (c *job) aside(list []spec.ReboundTensor) (set []setting, left []spec.ReboundTensor, err error) {
	var described []model.OwnTensor
	total := 0
	for _, t := range list {
		r, err := weight.Resolve(c.files, t.Value)
		if err != nil {
			return nil, nil, fmt.Errorf("convert: %s: %w", t.Name, err)
		}
		typ, err := c.folderType(t.Name, r.Type, r.Shape)
		if err != nil {
			return nil, nil, fmt.Errorf("convert: %s: %w", t.Name, err)
		}
		row, _ := typ.RowBytes(r.Shape.Cols())
		if total+row*r.Shape.Rows() > maxAside {
			c.o.Notice(fmt.Sprintf("%s is too large to stand among the metadata: it is written as a tensor, for which llama.cpp refuses the file", t.Name))
			left = append(left, t)
			continue
		}
		total += row * r.Shape.Rows()
		var b bytes.Buffer
		if err := c.rows(&b, t, typ, row); err != nil {
			return nil, nil, fmt.Errorf("convert: %s: %w", t.Name, err)
		}
		c.done = 0
		described = append(described, model.OwnTensor{Name: t.Name, Type: typ.String(), Shape: r.Shape})
		set = append(set, setting{model.OwnTensorPrefix + t.Name, b.Bytes()})
	}
	if described == nil {
		return nil, left, nil
	}
	raw, err := json.Marshal(described)
	return append([]setting{{model.OwnTensorsKey, string(raw)}}, set...), left, err
}
