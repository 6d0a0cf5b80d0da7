package compile

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/tensor"
)

// The size that every shipped specification is grown to.
const (
	manyLayers  = 80
	manyExperts = 256
)

var (
	layerName   = regexp.MustCompile(`^(.*?(?:layers|layer|h|blocks|block))\.(\d+)\.(.*)$`)
	expertName  = regexp.MustCompile(`^(.*experts)\.(\d+)\.(.*)$`)
	adapterName = regexp.MustCompile(`^(.*adapter_list)\.(\d+)\.(.*)$`)
	layerKey    = regexp.MustCompile(`^(num_hidden_layers|n_layers?|num_layers|encoder_layers|decoder_layers|num_decoder_layers)$`)
	expertKey   = regexp.MustCompile(`^(num_experts|n_routed_experts|num_local_experts|moe_num_experts|num_routed_experts|moe_num_primary_experts)$`)
	expertRows  = regexp.MustCompile(`(gate|router|wg)(\.[a-z_]+)*$|e_score_correction_bias|expert_bias|experts\.[a-z_0-9]+$`)
	layerRows   = regexp.MustCompile(`embed_tokens_per_layer|per_layer_model_projection`)
)

// growth is how a model of a few layers and experts becomes one of many.
type growth struct {
	from                  func(l, n int) int // whose tensors layer l has
	layers, experts, zero int                // of the small model; zero are experts without weights
}

// grown is a model of the same build with many layers and experts. Layer l has
// the tensors of layer from(l).
func grown(f *shapeFiles, from func(l, n int) int) *shapeFiles {
	out := &shapeFiles{binding: f.binding, arch: f.arch, tensors: map[string]tensor.View{}}
	g := &growth{from: from}
	for name := range f.tensors {
		if m := layerName.FindStringSubmatch(name); m != nil {
			k, _ := strconv.Atoi(m[2])
			g.layers = max(g.layers, k+1)
		}
	}
	out.config, _ = g.config(f.config, "").(map[string]any)
	stacks := map[string][]string{} // names by what stands before the number
	for name, v := range f.tensors {
		if m := layerName.FindStringSubmatch(name); m != nil {
			stacks[m[1]] = append(stacks[m[1]], name)
			continue
		}
		g.add(out.tensors, name, v)
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
				g.add(out.tensors, fmt.Sprintf("%s.%d.%s", prefix, l, m[3]), f.tensors[name])
			}
		}
	}
	g.sparse(out)
	return out
}

// sparse adds the experts that the configuration asks for in every so many
// layers, more than the small model has.
func (g *growth) sparse(f *shapeFiles) {
	step, _ := f.config["encoder_sparse_step"].(json.Number)
	n, _ := strconv.Atoi(step.String())
	for name, v := range maps.Clone(f.tensors) {
		m := layerName.FindStringSubmatch(name)
		if n == 0 || m == nil || !strings.HasPrefix(m[3], "ffn.fc") {
			continue
		}
		if l, _ := strconv.Atoi(m[2]); (l+1)%n != 0 {
			continue
		}
		ffn := strings.TrimSuffix(name, strings.TrimPrefix(m[3], "ffn."))
		for e := range manyExperts {
			v.Name = fmt.Sprintf("%sexperts.expert_%d.%s", ffn, e, strings.TrimPrefix(m[3], "ffn."))
			f.tensors[v.Name] = v
		}
		if m[3] == "ffn.fc1.weight" {
			g.add(f.tensors, ffn+"router.classifier.weight", tensor.View{Type: v.Type, Shape: tensor.Shape{g.experts, v.Shape[1]}})
		}
	}
}

// add adds a tensor, once for every expert where it is one's.
func (g *growth) add(to map[string]tensor.View, name string, v tensor.View) {
	series := func(m []string, n int) {
		if k, _ := strconv.Atoi(m[2]); k > 0 {
			return
		}
		for e := range n {
			v.Name = m[1] + "." + strconv.Itoa(e) + "." + m[3]
			to[v.Name] = v
		}
	}
	if m := expertName.FindStringSubmatch(name); m != nil && g.experts > 0 {
		series(m, manyExperts)
		return
	}
	if m := adapterName.FindStringSubmatch(name); m != nil {
		series(m, manyLayers)
		return
	}
	v.Shape = g.shape(strings.TrimSuffix(name, ".weight"), v.Shape)
	v.Name = name
	to[name] = v
}

// shape is that of a tensor in the large model, where layers or experts are among its rows.
func (g *growth) shape(name string, shape tensor.Shape) tensor.Shape {
	shape = slices.Clone(shape)
	if layerRows.MatchString(name) {
		for i, d := range shape {
			if d%g.layers == 0 && (i == 1) == strings.Contains(name, "embed") {
				shape[i] = d / g.layers * manyLayers
			}
		}
		return shape
	}
	if g.experts == 0 || len(shape) == 0 {
		return shape
	}
	n := shape[0]
	switch named := expertRows.MatchString(name); {
	case n == g.experts && (named || len(shape) == 3):
		shape[0] = manyExperts
	case named && g.zero > 0 && n == g.experts+g.zero:
		shape[0] = manyExperts + g.zero
	case strings.Contains(name, "experts.mlp.") && n%g.experts == 0: // one behind the other
		shape[0] = n / g.experts * manyExperts
	}
	return shape
}

// config replaces numbers of layers and experts, and repeats lists that have
// an entry a layer.
func (g *growth) config(x any, key string) any {
	switch x := x.(type) {
	case map[string]any:
		if n, ok := x["zero_expert_num"].(json.Number); ok {
			g.zero, _ = strconv.Atoi(n.String())
		}
		out := map[string]any{}
		if key == "per_layer_config" { // by the layers' numbers
			for l := range manyLayers {
				if v, ok := x[strconv.Itoa(g.from(l, g.layers))]; ok {
					out[strconv.Itoa(l)] = v
				}
			}
			return out
		}
		for k, v := range x {
			out[k] = g.config(v, k)
		}
		return out
	case []any:
		return g.list(x, key)
	case json.Number:
		k, err := x.Int64()
		switch {
		case err != nil:
		case layerKey.MatchString(key) && k > 0:
			return json.Number(strconv.Itoa(manyLayers))
		case expertKey.MatchString(key) && k > 1:
			g.experts = int(k)
			return json.Number(strconv.Itoa(manyExperts))
		}
	}
	return x
}

func (g *growth) list(x []any, key string) any {
	if key == "attention_types" { // kinds and how often they follow each other
		for _, pair := range x {
			if p, ok := pair.([]any); ok && len(p) == 2 {
				kinds, _ := p[0].([]any)
				return []any{[]any{kinds, json.Number(strconv.Itoa(manyLayers / max(1, len(kinds))))}}
			}
		}
	}
	if len(x) != g.layers || g.layers < 2 {
		return x
	}
	var out []any
	numbered := true // 0, 1, 2, …: the layers themselves
	for l, v := range x {
		numbered = numbered && fmt.Sprint(v) == strconv.Itoa(l)
	}
	for l := range manyLayers {
		if numbered {
			out = append(out, json.Number(strconv.Itoa(l)))
		} else {
			out = append(out, x[g.from(l, g.layers)])
		}
	}
	return out
}
