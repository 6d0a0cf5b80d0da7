// Package llama2c reads the exports of llama2.c: the first layout without a
// magic number, and versions 1 (float32) and 2 (8 bits), with tokenizer.bin.
// It gives them GGUF's names and metadata, whose order of query and key rows
// is theirs, so that the specification of the family serves them as a GGUF
// file. It must not import anything above package tensor but format/gguf and
// internal/sys. Read File first.
//
// Source: github.com/karpathy/llama2.c, export.py, run.c, tokenizer.py.
package llama2c

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"path/filepath"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/format/shelf"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// Errors that callers branch on. Every error names the file.
var (
	ErrFormat  = errors.New("not a llama2.c export")
	ErrCorrupt = errors.New("file is corrupt")
)

// magic is the first word of versions 1 and 2, "ak42".
const magic = 0x616b3432

// headerSize is the bytes before the weights in versions 1 and 2.
const headerSize = 256

// config is the header of an export.
type config struct {
	version                                                 int // 0: the first layout
	dim, hidden, layers, heads, kvHeads, vocab, maxPosition int
	tied                                                    bool
	group                                                   int // version 2: values that share a factor
	start                                                   int // of the weights
}

// File is an opened export. Views of the first layout and of version 1 alias
// the mapping; those of version 2 are its values as float32, made at Open.
// All are valid until Close.
type File struct {
	shelf.Shelf
	path string
	meta *gguf.Meta
}

// limits of a header's numbers, far above any model.
const (
	maxWidth  = 1 << 20
	maxLayers = 1 << 12
)

// parseHeader reads the header of any layout; ok is false where the numbers
// are none that an export has.
func parseHeader(data []byte) (c config, ok bool) {
	word := func(i int) int { return int(int32(binary.LittleEndian.Uint32(data[4*i:]))) }
	if len(data) < 28 {
		return c, false
	}
	at := 0
	if binary.LittleEndian.Uint32(data) == magic {
		if len(data) < headerSize {
			return c, false
		}
		at, c.version, c.start = 2, word(1), headerSize
	} else {
		c.start = 28
	}
	for i, p := range []*int{&c.dim, &c.hidden, &c.layers, &c.heads, &c.kvHeads, &c.vocab, &c.maxPosition} {
		*p = word(at + i)
	}
	switch c.version {
	case 0:
		c.tied = c.vocab > 0
		c.vocab = max(c.vocab, -c.vocab)
	case 1, 2:
		if flag := data[36]; flag > 1 {
			return c, false
		}
		c.tied = data[36] == 1
		if c.version == 2 {
			c.group = int(int32(binary.LittleEndian.Uint32(data[37:])))
		}
	default:
		return c, false
	}
	for _, n := range []int{c.dim, c.hidden, c.vocab, c.maxPosition} {
		ok = n >= 1 && n <= maxWidth
		if !ok {
			return c, false
		}
	}
	ok = c.layers >= 1 && c.layers <= maxLayers && c.heads >= 1 && c.kvHeads >= 1 && c.heads <= c.dim && c.dim%c.heads == 0 &&
		c.dim/c.heads%2 == 0 && c.heads%c.kvHeads == 0
	if c.version == 2 {
		ok = ok && c.group >= 1 && c.dim%c.group == 0 && c.hidden%c.group == 0
	}
	return c, ok
}

// block is a run of the file that holds a tensor of each layer, or one.
type block struct {
	name       string // with %d for the layer
	rows, cols int    // rows 0: a vector
	layers     int    // 0: one tensor without a number
	skip       bool   // tables that nothing needs
}

// order lists the runs as the layout stores them.
func (c config) order() []block {
	kv := c.dim / c.heads * c.kvHeads
	embed := block{name: "token_embd", rows: c.vocab, cols: c.dim}
	attnNorm, ffnNorm := block{name: "blk.%d.attn_norm", cols: c.dim, layers: c.layers}, block{name: "blk.%d.ffn_norm", cols: c.dim, layers: c.layers}
	norm := block{name: "output_norm", cols: c.dim}
	attention := []block{
		{name: "blk.%d.attn_q", rows: c.dim, cols: c.dim, layers: c.layers}, {name: "blk.%d.attn_k", rows: kv, cols: c.dim, layers: c.layers},
		{name: "blk.%d.attn_v", rows: kv, cols: c.dim, layers: c.layers}, {name: "blk.%d.attn_output", rows: c.dim, cols: c.dim, layers: c.layers},
	}
	ffn := []block{
		{name: "blk.%d.ffn_gate", rows: c.hidden, cols: c.dim, layers: c.layers}, {name: "blk.%d.ffn_down", rows: c.dim, cols: c.hidden, layers: c.layers},
		{name: "blk.%d.ffn_up", rows: c.hidden, cols: c.dim, layers: c.layers},
	}
	var list []block
	if c.version == 0 {
		angles := block{rows: c.maxPosition, cols: c.dim / c.heads / 2, skip: true}
		list = append([]block{embed, attnNorm}, attention...)
		list = append(append(list, ffnNorm), ffn...)
		list = append(list, norm, angles, angles)
	} else {
		list = append([]block{attnNorm, ffnNorm, norm, embed}, append(attention, ffn...)...)
	}
	if !c.tied {
		list = append(list, block{name: "output", rows: c.vocab, cols: c.dim})
	}
	return list
}

// size is the bytes of one tensor of a run; ok is false above 2^62.
func (c config) size(b block) (n uint64, ok bool) {
	hi, n := bits.Mul64(uint64(max(b.rows, 1)), uint64(b.cols))
	if hi != 0 || n > 1<<60 {
		return 0, false
	}
	if c.version == 2 && b.rows > 0 {
		return n + 4*(n/uint64(c.group)), true
	}
	return 4 * n, true
}

// total is the size of the whole file.
func (c config) total() (uint64, bool) {
	n := uint64(c.start)
	for _, b := range c.order() {
		one, ok := c.size(b)
		hi, all := bits.Mul64(one, uint64(max(b.layers, 1)))
		if n += all; !ok || hi != 0 || n > math.MaxInt64 || all > math.MaxInt64 {
			return 0, false
		}
	}
	return n, true
}

// Sniff says whether a file with these first bytes and this size is an export.
// The first layout has no magic number: its seven numbers must give the size.
func Sniff(head []byte, size int64) bool {
	if len(head) >= 8 && binary.LittleEndian.Uint32(head) == magic {
		return true
	}
	c, ok := parseHeader(head)
	if !ok || c.version != 0 {
		return false
	}
	n, ok := c.total()
	return ok && n == uint64(size)
}

// Open maps an export and reads the tokenizer.bin beside it, or the tokN.bin
// for its vocabulary of N; without either the model speaks ids.
func Open(path string) (*File, error) {
	m, err := sys.MapFile(path)
	if err != nil {
		return nil, fmt.Errorf("llama2c: %w", err)
	}
	f, err := parse(&shelf.Part{Name: path, Mapping: m}, m.Bytes(), func(c config) (*vocabulary, error) { return findVocabulary(filepath.Dir(path), c.vocab) })
	if err != nil {
		m.Close()
		return nil, err
	}
	return f, nil
}

// Parse reads a whole export that lies in data, without a tokenizer; name
// stands for the file in errors.
func Parse(name string, data []byte) (*File, error) {
	return parse(&shelf.Part{Name: name}, data, func(config) (*vocabulary, error) { return nil, nil })
}

func parse(p *shelf.Part, data []byte, words func(config) (*vocabulary, error)) (*File, error) {
	c, ok := parseHeader(data)
	name := p.Name
	if !ok {
		return nil, fmt.Errorf("llama2c: %s: the header's numbers are none that an export has: %w", name, ErrFormat)
	}
	want, ok := c.total()
	if !ok || want != uint64(len(data)) {
		return nil, fmt.Errorf("llama2c: %s: the header's numbers ask for %d bytes, the file has %d; was the download cut short?: %w", name, want, len(data), ErrCorrupt)
	}
	v, err := words(c)
	if err != nil {
		return nil, fmt.Errorf("llama2c: %w", err)
	}
	f := &File{path: name}
	if f.meta, err = metadata(name, c, v); err != nil {
		return nil, fmt.Errorf("llama2c: %s: %w", name, err)
	}
	place(p, c, data)
	if f.Shelf, err = shelf.New([]*shelf.Part{p}, nil); err != nil {
		return nil, fmt.Errorf("llama2c: %w", err)
	}
	return f, nil
}

// place makes the views; parse has checked the size of the file.
func place(p *shelf.Part, c config, data []byte) {
	at := c.start
	for _, b := range c.order() {
		size, _ := c.size(b)
		for i := range max(b.layers, 1) {
			if !b.skip {
				add(p, c, b, i, data[at:at+int(size):at+int(size)], at)
			}
			at += int(size)
		}
	}
}

func add(p *shelf.Part, c config, b block, layer int, data []byte, at int) {
	v := tensor.View{Name: b.name + ".weight", Type: quant.F32, Shape: tensor.Shape{b.rows, b.cols}, Data: data}
	if b.layers > 0 {
		v.Name = fmt.Sprintf(v.Name, layer)
	}
	if b.rows == 0 {
		v.Shape = tensor.Shape{b.cols}
	} else if c.version == 2 {
		v.Data, at = dequantised(data, b.rows*b.cols, c.group), -1
	}
	p.Add(v, at)
}

// dequantised multiplies n bytes by the factors of their groups, which follow them.
func dequantised(data []byte, n, group int) []byte {
	out := make([]byte, 0, 4*n)
	for i := range n {
		s := math.Float32frombits(binary.LittleEndian.Uint32(data[n+i/group*4:]))
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(s*float32(int8(data[i]))))
	}
	return out
}

// metadata writes what a GGUF file of the model would say.
func metadata(name string, c config, v *vocabulary) (*gguf.Meta, error) {
	w := &gguf.Writer{}
	set := func(key string, value any) error { return w.Set("llama."+key, value) }
	err := errors.Join(w.Set("general.architecture", "llama"), w.Set("general.name", filepath.Base(name)),
		set("vocab_size", uint32(c.vocab)), set("context_length", uint32(c.maxPosition)), set("embedding_length", uint32(c.dim)),
		set("block_count", uint32(c.layers)), set("feed_forward_length", uint32(c.hidden)), set("attention.head_count", uint32(c.heads)),
		set("attention.head_count_kv", uint32(c.kvHeads)), set("attention.layer_norm_rms_epsilon", float32(1e-5)),
		set("rope.dimension_count", uint32(c.dim/c.heads)), set("rope.freq_base", float32(10000)))
	if v != nil {
		err = errors.Join(err, v.write(w))
	}
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return nil, err
	}
	g, err := gguf.Parse(name, b.Bytes())
	if err != nil {
		return nil, err
	}
	return &g.Meta, nil
}

// Kind is "llama2c".
func (f *File) Kind() string { return "llama2c" }

// Path is the file that was opened.
func (f *File) Path() string { return f.path }

// Metadata is the export's header and tokenizer under GGUF's keys.
func (f *File) Metadata() *gguf.Meta { return f.meta }
