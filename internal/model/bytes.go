package model

import "github.com/inferflow/inferflow/format/gguf"

// OpenBytes opens a GGUF file that lies in memory, as Open does one on disk;
// name stands for it in errors and becomes the model's. data must stay
// unchanged until Close.
func OpenBytes(name string, data []byte, o Options) (*Model, error) {
	g, err := gguf.Parse(name, data)
	if err != nil {
		return nil, err
	}
	m := &Model{Path: name, Name: name, o: o, files: &files{File: g, meta: &g.Meta, config: configOf(&g.Meta)}}
	err = m.files.own()
	if err == nil {
		err = m.open()
	}
	if err != nil {
		g.Close()
		return nil, err
	}
	return m, nil
}

// configOf is the metadata of a GGUF file as a specification sees it. Long
// arrays are the tokenizer's.
func configOf(meta *gguf.Meta) map[string]any {
	c := map[string]any{}
	for k, v := range meta.All() {
		if v.Kind() != gguf.Array || v.Len() < 4096 {
			c[k] = v.Any()
		}
	}
	return c
}
