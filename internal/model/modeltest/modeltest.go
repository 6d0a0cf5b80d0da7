// Package modeltest writes tiny models for tests: GGUF files of the plainest
// decoder, in any tensor types, with a byte-level or a SentencePiece
// vocabulary. Their weights are random, or made so that the model tells a given
// story, which makes answers readable. It must never import the packages that
// run models. Read Options first.
package modeltest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// names are the values of metadata that name an architecture or a tokenizer.
//
//go:embed metadata.json
var names []byte

// Options says what the model is like. The zero value gives two layers of
// width 64 in F32 with random weights and a byte-level vocabulary.
type Options struct {
	Layers, Dim, Heads, KVHeads, FFN int // 0: 2, 64, 4, 2, 128; block types want multiples of 32 or 256

	// Vocab is the number of ids; 0 or less than needed: as many as the
	// tokenizer needs. Further ids are unused tokens.
	Vocab   int
	Context int // positions the model was made for; 0: 512

	// Types of the weight matrices by the middle of their names ("token_embd",
	// "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up",
	// "ffn_down", "output"); "" stands for all others. Norms are F32.
	Types map[string]quant.Type

	Template string // source of the chat template; "": none
	Pieces   bool   // a SentencePiece vocabulary that puts <s> before a text

	// Story lists tokens that follow each other: after any other token the model
	// begins with the first, and after the last it begins again. Each entry is a
	// token of its own (a single byte that is no rune is one, too) and stands in
	// the list once. With an end token as the last entry the answer ends.
	Story []string

	Seed uint64                              // of the random weights
	Set  map[string]any                      // further metadata
	Edit func(name string, values []float32) // changes a tensor's values before they are stored
}

func (o *Options) defaults() {
	for _, f := range []struct {
		v  *int
		or int
	}{{&o.Layers, 2}, {&o.Dim, 64}, {&o.Heads, 4}, {&o.KVHeads, 2}, {&o.FFN, 128}, {&o.Context, 512}} {
		if *f.v <= 0 {
			*f.v = f.or
		}
	}
}

// Write writes the model into dir and returns the file's path. What cannot be
// written ends the test.
func Write(t testing.TB, dir string, o Options) string {
	t.Helper()
	o.defaults()
	var name map[string]string
	if err := json.Unmarshal(names, &name); err != nil {
		t.Fatal(err)
	}
	v := newVocabulary(o)
	b := &builder{t: t, o: o, v: v, rng: rand.New(rand.NewPCG(o.Seed, 2718))}
	b.metadata(name)
	b.tensors()
	path := filepath.Join(dir, "tiny.gguf")
	if err := b.w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

type builder struct {
	t   testing.TB
	o   Options
	v   *vocabulary
	rng *rand.Rand
	w   gguf.Writer
}

func (b *builder) set(key string, value any) {
	b.t.Helper()
	if err := b.w.Set(key, value); err != nil {
		b.t.Fatal(err)
	}
}

func (b *builder) metadata(name map[string]string) {
	o, arch := b.o, name["general.architecture"]
	b.set("general.architecture", arch)
	b.set("general.name", "tiny")
	for key, n := range map[string]int{"block_count": o.Layers, "context_length": o.Context, "embedding_length": o.Dim,
		"feed_forward_length": o.FFN, "attention.head_count": o.Heads, "attention.head_count_kv": o.KVHeads,
		"rope.dimension_count": o.Dim / o.Heads, "vocab_size": len(b.v.texts)} {
		b.set(arch+"."+key, uint32(n))
	}
	b.set(arch+".attention.layer_norm_rms_epsilon", float32(1e-5))
	b.set(arch+".rope.freq_base", float32(10000))
	model := name["bytes"]
	if o.Pieces {
		model = name["pieces"]
	}
	const g = "tokenizer.ggml."
	b.set(g+"model", model)
	b.set(g+"tokens", b.v.texts)
	b.set(g+"token_type", b.v.kinds)
	if o.Pieces {
		b.set(g+"scores", b.v.scores)
		b.set(g+"bos_token_id", uint32(1))
		b.set(g+"unknown_token_id", uint32(0))
	} else {
		b.set(g+"merges", b.v.merges)
	}
	b.set(g+"eos_token_id", uint32(b.v.end))
	b.set(g+"add_bos_token", o.Pieces)
	if o.Template != "" {
		b.set("tokenizer.chat_template", o.Template)
	}
	for key, v := range o.Set {
		b.set(key, v)
	}
}

func (b *builder) tensors() {
	o := b.o
	dk := o.Dim / o.Heads * o.KVHeads
	embed, head := b.ends()
	b.add("token_embd.weight", embed, len(b.v.texts), o.Dim)
	for i := 0; i < o.Layers; i++ {
		p := fmt.Sprintf("blk.%d.", i)
		b.norm(p + "attn_norm.weight")
		b.matrix(p+"attn_q.weight", o.Dim, o.Dim)
		b.matrix(p+"attn_k.weight", dk, o.Dim)
		b.matrix(p+"attn_v.weight", dk, o.Dim)
		b.matrix(p+"attn_output.weight", o.Dim, o.Dim)
		b.norm(p + "ffn_norm.weight")
		b.matrix(p+"ffn_gate.weight", o.FFN, o.Dim)
		b.matrix(p+"ffn_up.weight", o.FFN, o.Dim)
		b.matrix(p+"ffn_down.weight", o.Dim, o.FFN)
	}
	b.norm("output_norm.weight")
	b.add("output.weight", head, len(b.v.texts), o.Dim)
}

// matrix adds a random matrix [rows, cols]. Where a story is told the layers
// whisper, so that they do not change it.
func (b *builder) matrix(name string, rows, cols int) {
	scale := 1 / math.Sqrt(float64(cols))
	if b.o.Story != nil {
		scale *= 0.3
	}
	b.add(name, b.random(rows*cols, scale), rows, cols)
}

func (b *builder) random(n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(b.rng.NormFloat64() * scale)
	}
	return x
}

func (b *builder) norm(name string) {
	x := make([]float32, b.o.Dim)
	for i := range x {
		x[i] = 1 + 0.1*float32(b.rng.NormFloat64())
	}
	b.add(name, x, b.o.Dim)
}

// ends makes the embeddings and the rows that give the logits.
func (b *builder) ends() (embed, head []float32) {
	n, d := len(b.v.texts), b.o.Dim
	embed = b.random(n*d, 1)
	if b.o.Story == nil {
		return embed, b.random(n*d, 3/math.Sqrt(float64(d)))
	}
	head = b.random(n*d, 0.05/math.Sqrt(float64(d)))
	// Tokens outside the story share a direction, which asks for its beginning.
	common := b.random(d, 1)
	told := map[int]bool{}
	for _, id := range b.v.story {
		told[id] = true
	}
	for id := 0; id < n; id++ {
		for j := 0; j < d && !told[id]; j++ {
			embed[id*d+j] = common[j] + 0.3*embed[id*d+j]
		}
	}
	const sharp = 20
	ask := func(id int, x []float32) {
		for j := range x {
			head[id*d+j] += sharp / float32(d) * x[j]
		}
	}
	ask(b.v.story[0], common)
	for i, id := range b.v.story {
		ask(b.v.story[(i+1)%len(b.v.story)], embed[id*d:(id+1)*d])
	}
	return embed, head
}

// add stores values in the type that the options give to the tensor.
func (b *builder) add(name string, values []float32, shape ...int) {
	b.t.Helper()
	if b.o.Edit != nil {
		b.o.Edit(name, values)
	}
	typ := quant.F32
	if len(shape) > 1 {
		typ = b.typeOf(name)
	}
	size, ok := typ.RowBytes(len(values))
	if !ok {
		b.t.Fatalf("modeltest: %s: %v do not fit the blocks of %v", name, shape, typ)
	}
	data := make([]byte, size)
	if err := typ.Encode(data, values); err != nil {
		b.t.Fatalf("modeltest: %s: %v", name, err)
	}
	if err := b.w.AddView(tensor.View{Name: name, Type: typ, Shape: shape, Data: data}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *builder) typeOf(name string) quant.Type {
	if typ, ok := b.o.Types[middle(name)]; ok {
		return typ
	}
	return b.o.Types[""]
}
