package main

import (
	"testing"

	"github.com/inferflow/inferflow/internal/bench"
)

func explanation() *bench.Explanation {
	return &bench.Explanation{
		Model: bench.ModelInfo{Name: "m", Spec: "toy", Parameters: 2000, Types: "F16", Bytes: 4000, Layers: 2}, MaxContext: 64,
		Config:     []bench.Value{{Key: "width", Value: 48, Source: "config.json"}, {Key: "act", Value: "silu", Source: "spec default toy.star:3"}},
		Generation: []bench.Value{{Key: "top_k", Value: 20, Source: "generation_config.json"}},
		EndTokens:  []bench.EndToken{{ID: 2, Text: "</s>", Sources: []string{"tokenizer", "specification"}}},
		Types:      []bench.TypeBytes{{Type: "F16", Tensors: 3, Elements: 2000, Bytes: 4000, Bits: 16}},
		KV:         bench.KV{Keys: "f16", Values: "f32", BytesPerToken: 96, Caches: []bench.CacheInfo{{Kind: "kv", Heads: 2, KeyDim: 4, ValueDim: 4, Window: 9, Layers: []int{0, 1}}}},
		Lines: []bench.Line{{File: "toy.star", Line: 5, Text: "    x += f(x)", Layers: []int{0, 1}, Times: bench.Times{Prefill: 0.5, Decode: 0.003},
			Nodes: []bench.NodeCount{{Op: "linear", Shape: []int{8, 6}, Count: 2}, {Op: "add", Shape: []int{48}, Count: 1}}}},
		Groups: []bench.Group{{Title: "layers 0, 1", Layers: []int{0, 1}, Steps: []bench.Step{{Kind: "Linear", Text: "t0 = W·x0", Lines: []int{5}, Bytes: 4096,
			Types: []string{"F16"}, Times: bench.Times{Prefill: 0.5, Decode: 0.002}}}}},
		NotFused: []bench.NotFused{{Op: "positions", Line: "toy.star:6", Layers: []int{-1}, Why: "no step takes it"}},
		Unused:   []string{"a.weight", "b.weight"},
	}
}

func TestExplainer(t *testing.T) {
	p := &explainer{e: explanation()}
	p.all()
	want := `m  specification toy, 2.0 K parameters, F16, 3.9 KiB, 2 layers, made for 64 tokens

configuration
  width  48      config.json
  act    "silu"  spec default toy.star:3

generation
  top_k      20        generation_config.json
  ends with  2 "</s>"  tokenizer, specification

bytes by type
  type  tensors  values    bytes  bits a value
  F16         3    2000  3.9 KiB         16.00

keys and values
  96 B a token (keys f16, values f32)
  layers 0, 1: kv of 2 heads, keys of 4, values of 4, a window of 9 tokens

the graph by line of the specification
  line  where
     5  layers 0, 1  x += f(x)
                       2×linear[8,6], add[48]

compiled to 2 steps
  layers 0, 1: 1 step each
              bytes  type  lines
    Linear  2.0 KiB  F16   5      t0 = W·x0

not fused
  positions  toy.star:6  before  no step takes it

stored tensors that nothing reads
  a.weight, b.weight
`
	if got := p.b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestExplainerProfile(t *testing.T) {
	e := explanation()
	e.Profile = &bench.ProfileInfo{Prefill: 64, Decode: 8, PrefillSeconds: 1, DecodeSeconds: 0.004, PrefillOutside: 0.5, DecodeOutside: 0.002}
	p := &explainer{e: e}
	p.lines()
	p.steps()
	want := `
the graph by line of the specification
  line  prefill  decode  where
     5   50.0 %  75.0 %  layers 0, 1  x += f(x)
                                        2×linear[8,6], add[48]

compiled to 2 steps
  layers 0, 1: 1 step each
              prefill             decode          GB/s    bytes  type  lines
    Linear  500.00 ms  50.0 %  2000.0 µs  50.0 %   0.0  2.0 KiB  F16   5      t0 = W·x0
  prefill of 64 tokens: 1000.0 ms, 50.0 % of it outside the steps; decode: 4.000 ms a token, 50.0 % outside
  times are sums over the layers; a fused step's time is shared among its lines by the weights that each reads
`
	if got := p.b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
