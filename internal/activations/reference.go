// Package activations holds an exact run of a traced graph against the
// activations of a reference implementation, value by value, and tells where
// the two part. It must never import the engine, the server or formats other
// than the one that activations are kept in. Read Compare first.
package activations

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/tensor"
)

// ErrNoReference marks a file that holds no activations.
var ErrNoReference = errors.New("not a file of activations")

// Reference is a file of activations: safetensors whose metadata say which ids
// the reference was given. A tensor is the output of the module of its name,
// with the suffix ":in" its first input; ":in#2" and "#2" are those of the
// module's second call.
type Reference struct {
	IDs        []int32 // of the decoder-only or encoder's input
	DecoderIDs []int32 // of an encoder-decoder's decoder
	// Rename lists pairs of texts: the first, in a name of the graph, is the
	// second in the reference's module names.
	Rename [][2]string
	met    map[string]bool // first texts of Rename that stood in a name
	file   *safetensors.File
}

// OpenReference opens the file at path. Its values are read when they are compared.
func OpenReference(path string) (*Reference, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Reference{file: f, met: map[string]bool{}}
	if r.IDs, err = ids(f.Metadata, "input_ids"); err == nil && len(r.IDs) == 0 {
		err = fmt.Errorf("its metadata name no input_ids")
	}
	if err == nil {
		r.DecoderIDs, err = ids(f.Metadata, "decoder_input_ids")
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("activations: %s: %w: %w", path, ErrNoReference, err)
	}
	return r, nil
}

// maxIDs bounds the tokens of a reference's input.
const maxIDs = 1 << 16

func ids(meta map[string]string, key string) ([]int32, error) {
	text, ok := meta[key]
	if !ok {
		return nil, nil
	}
	var list []int32
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) > maxIDs {
		return nil, fmt.Errorf("%s is no list of at most %d ids", key, maxIDs)
	}
	return list, nil
}

// Close unmaps the file.
func (r *Reference) Close() error { return r.file.Close() }

// Names lists the values of the file, sorted.
func (r *Reference) Names() []string {
	names := map[string]bool{}
	for _, t := range r.file.Tensors() {
		names[t.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// find is the value of a name at a call of its module, counted from 1.
func (r *Reference) find(name string, call int) (tensor.View, bool) {
	for _, p := range r.Rename {
		if strings.Contains(name, p[0]) {
			r.met[p[0]] = true
		}
		name = strings.ReplaceAll(name, p[0], p[1])
	}
	if call > 1 {
		name += "#" + strconv.Itoa(call)
	}
	return r.file.Tensor(name)
}

// Idle is the first text of Rename that stood in no name that was looked for, ""
// if each did.
func (r *Reference) Idle() string {
	for _, p := range r.Rename {
		if !r.met[p[0]] {
			return p[0]
		}
	}
	return ""
}

// floats decodes a tensor and drops leading axes of size 1.
func floats(v tensor.View) ([]float32, []int, error) {
	shape := []int(v.Shape)
	for len(shape) > 1 && shape[0] == 1 {
		shape = shape[1:]
	}
	out := make([]float32, v.Shape.Elements())
	cols := v.Shape.Cols()
	for i := 0; cols > 0 && i < len(out)/cols; i++ {
		if err := v.Type.Decode(out[i*cols:(i+1)*cols], v.Row(i)); err != nil {
			return nil, nil, fmt.Errorf("activations: %s: %w", v.Name, err)
		}
	}
	return out, shape, nil
}

// module is a name without the suffix of an input or a call.
func module(name string) string {
	name, _, _ = strings.Cut(name, "#")
	return strings.TrimSuffix(name, ":in")
}
