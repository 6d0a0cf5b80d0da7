package compile

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// traceGrown grows a model so that its specification fits it: layers repeated
// in turn, or the last one repeated.
func traceGrown(f *shapeFiles) (*shapeFiles, *graph.Graph, error) {
	var first error
	for _, from := range []func(l, n int) int{
		func(l, n int) int { return l % n },
		func(l, n int) int { return min(l, n-1) },
		func(l, n int) int { return l * n / manyLayers },
		func(l, n int) int { return max(l+n-manyLayers, l%min(2, n)) }, // the last stand once
	} {
		g := grown(f, from)
		s, err := spec.Resolve(g, spec.Options{AllowUnused: true})
		if err != nil {
			return nil, nil, err
		}
		tr, err := s.Trace(g)
		if err == nil {
			return g, tr.Graph, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, nil, first
}

// BenchmarkReal traces and compiles every shipped specification at a real
// size: 80 layers, and 256 experts where there are experts. cpu-ms is the
// processor time of the whole process a run, garbage collection included.
func BenchmarkReal(b *testing.B) {
	for _, name := range shapeNames(b) {
		f := loadShapes(b, name)
		if f.binding != spec.HF {
			continue
		}
		b.Run(name, func(b *testing.B) {
			g, traced, err := traceGrown(f)
			if err != nil {
				b.Skipf("cannot be grown: %.200v", err)
			}
			timeTrace(b, g, traced)
		})
	}
	for _, name := range []string{"deepseek_v3.hf", "qwen3_moe.hf"} {
		b.Run(name+"/fp8", func(b *testing.B) {
			g, traced, err := traceGrown(loadShapes(b, name))
			if err != nil {
				b.Fatal(err)
			}
			eightBits(g)
			timeTrace(b, g, traced)
		})
	}
}

func timeTrace(b *testing.B, g *shapeFiles, traced *graph.Graph) {
	g.Views() // sorts them
	used := processorTime()
	for b.Loop() {
		s, err := spec.Resolve(g, spec.Options{AllowUnused: true})
		if err != nil {
			b.Fatal(err)
		}
		tr, err := s.Trace(g)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Fuse(tr.Graph, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((processorTime()-used).Seconds()*1e3/float64(b.N), "cpu-ms")
	b.ReportMetric(float64(len(traced.Nodes)), "nodes")
	b.ReportMetric(float64(len(g.tensors)), "tensors")
}

// eightBits stores the matrices of the layers as floats of 8 bits with the
// factors of their blocks beside them, as DeepSeek publishes them.
func eightBits(f *shapeFiles) {
	f.config["quantization_config"] = map[string]any{"quant_method": "fp8", "weight_block_size": []any{json.Number("128"), json.Number("128")}}
	for name, v := range maps.Clone(f.tensors) {
		if !strings.HasSuffix(name, "_proj.weight") || len(v.Shape) != 2 {
			continue
		}
		v.Type = quant.F8_E4M3
		f.tensors[name] = v
		factors := name + "_scale_inv"
		f.tensors[factors] = tensor.View{Name: factors, Type: quant.F32, Shape: tensor.Shape{(v.Shape[0] + 127) / 128, (v.Shape[1] + 127) / 128}}
	}
}

// TestGrown: the models of the benchmark are as large as it says.
func TestGrown(t *testing.T) {
	for _, name := range []string{"llama.hf", "qwen3_moe.hf"} {
		g, traced, err := traceGrown(loadShapes(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if traced.Layers != manyLayers || len(g.tensors) < 9*manyLayers {
			t.Errorf("%s: %d layers, %d tensors", name, traced.Layers, len(g.tensors))
		}
		if name == "qwen3_moe.hf" && len(g.tensors) < 3*manyExperts*manyLayers/2 {
			t.Errorf("%s: %d tensors are not those of %d experts", name, len(g.tensors), manyExperts)
		}
	}
}
