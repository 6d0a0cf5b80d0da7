package compile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// The size that every shipped specification is grown to.
const (
	manyLayers  = 80
	manyExperts = 256
)

var (
	layerName  = regexp.MustCompile(`^(.*?(?:layers|layer|h|blocks|block))\.(\d+)\.(.*)$`)
	expertName = regexp.MustCompile(`^(.*experts)\.(\d+)\.(.*)$`)
	layerKey   = regexp.MustCompile(`^(num_hidden_layers|n_layers?|num_layers|encoder_layers|decoder_layers|num_decoder_layers)$`)
	expertKey  = regexp.MustCompile(`^(num_experts|n_routed_experts|num_local_experts|moe_num_experts|num_routed_experts|moe_num_primary_experts)$`)
	expertRows = regexp.MustCompile(`(gate|router|wg)(\.[a-z_]+)*$|e_score_correction_bias|expert_bias|experts\.[a-z_]+$`)
)

// grown is a model of the same build with many layers and experts. Layer l has
// the tensors of layer from(l).
func grown(f *shapeFiles, from func(l, n int) int) *shapeFiles {
	out := &shapeFiles{binding: f.binding, arch: f.arch, tensors: map[string]tensor.View{}}
	n, experts := 0, 0
	for name := range f.tensors {
		if m := layerName.FindStringSubmatch(name); m != nil {
			k, _ := strconv.Atoi(m[2])
			n = max(n, k+1)
		}
	}
	out.config, _ = growConfig(f.config, "", n, &experts).(map[string]any)
	stacks := map[string][]string{} // names by what stands before the number
	for name, v := range f.tensors {
		if m := layerName.FindStringSubmatch(name); m != nil {
			stacks[m[1]] = append(stacks[m[1]], name)
			continue
		}
		out.tensors[name] = v
	}
	for prefix, names := range stacks {
		byLayer := map[int][]string{}
		depth := 0
		for _, name := range names {
			m := layerName.FindStringSubmatch(name)
			k, _ := strconv.Atoi(m[2])
			byLayer[k] = append(byLayer[k], name)
			depth = max(depth, k+1)
		}
		for l := range manyLayers {
			for _, name := range byLayer[from(l, depth)] {
				m := layerName.FindStringSubmatch(name)
				addGrown(out.tensors, fmt.Sprintf("%s.%d.%s", prefix, l, m[3]), f.tensors[name], experts)
			}
		}
	}
	return out
}

// addGrown adds a tensor, once for every expert where it is one's.
func addGrown(to map[string]tensor.View, name string, v tensor.View, experts int) {
	if m := expertName.FindStringSubmatch(name); m != nil && experts > 0 {
		if k, _ := strconv.Atoi(m[2]); k > 0 {
			return
		}
		for e := range manyExperts {
			v.Name = fmt.Sprintf("%s.%d.%s", m[1], e, m[3])
			to[v.Name] = v
		}
		return
	}
	if base := strings.TrimSuffix(name, ".weight"); experts > 0 && len(v.Shape) > 0 && v.Shape[0] == experts && expertRows.MatchString(base) {
		v.Shape = slices.Clone(v.Shape)
		v.Shape[0] = manyExperts
	}
	v.Name = name
	to[name] = v
}

// growConfig replaces numbers of layers and experts, and repeats lists that have
// an entry a layer.
func growConfig(x any, key string, n int, experts *int) any {
	switch x := x.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range x {
			out[k] = growConfig(v, k, n, experts)
		}
		return out
	case []any:
		if len(x) != n || n < 2 {
			return x
		}
		var out []any
		for l := range manyLayers {
			out = append(out, x[l%n])
		}
		return out
	case json.Number:
		k, err := x.Int64()
		switch {
		case err != nil:
		case layerKey.MatchString(key) && k > 0:
			return json.Number(strconv.Itoa(manyLayers))
		case expertKey.MatchString(key) && k > 1:
			*experts = int(k)
			return json.Number(strconv.Itoa(manyExperts))
		}
	}
	return x
}

// traceGrown grows a model so that its specification fits it: layers repeated
// in turn, or the last one repeated.
func traceGrown(f *shapeFiles) (*shapeFiles, *graph.Graph, error) {
	var first error
	for _, from := range []func(l, n int) int{
		func(l, n int) int { return l % n },
		func(l, n int) int { return min(l, n-1) },
		func(l, n int) int { return l * n / manyLayers },
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
			b.ReportMetric(float64(len(traced.Nodes)), "nodes")
			b.ReportMetric(float64(len(g.tensors)), "tensors")
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
