package compile

import (
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/spec"
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
// size: 80 layers, and 256 experts where there are experts.
func BenchmarkReal(b *testing.B) {
	for _, name := range shapeNames(b) {
		f := loadShapes(b, name)
		if f.binding != spec.HF {
			continue
		}
		g, traced, err := traceGrown(f)
		if err != nil {
			b.Logf("%s cannot be grown: %.200v", name, err)
			continue
		}
		b.Run(name, func(b *testing.B) {
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
			b.ReportMetric(float64(len(traced.Nodes)), "nodes")
			b.ReportMetric(float64(len(g.tensors)), "tensors")
		})
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
