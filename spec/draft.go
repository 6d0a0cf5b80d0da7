package spec

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
)

// ErrDraft marks files of which no draft can be made.
var ErrDraft = errors.New("no specification can be drafted")

// Draft writes a first specification for the files of a folder, from the names
// and shapes of its tensors and its configuration alone: norms, attention with
// its projections apart or fused, gated and plain feed-forwards, experts,
// positions and the head are recognised by what they look like. Comments mark
// what was guessed, and what was not understood. Errors wrap ErrDraft.
func Draft(files Files) (string, error) {
	if files.Binding() != HF {
		return "", fmt.Errorf("spec: %w: %sa draft is made from a folder with config.json; take the folder that the GGUF file was made of", ErrDraft, servedAlready(files))
	}
	d, err := newDraft(files)
	if err != nil {
		return "", err
	}
	if what, kind := d.otherKind(); what != "" {
		near := nearest(files, kind, 3)
		return "", fmt.Errorf("spec: %w: %sthis is %s, and drafts are made of decoders only. Start from a shipped one whose tensors are called alike (%s), as inferflow spec show %s > my.star: docs/spec.md, \"Encoders and encoder-decoders\"",
			ErrDraft, servedAlready(files), what, strings.Join(near, ", "), strings.Join(near[:min(1, len(near))], ""))
	}
	d.roles()
	if d.sizes(); d.hidden == 0 || d.embedding == "" {
		return "", fmt.Errorf("spec: %w: no embedding [vocabulary, width] was found among the tensors outside the layers (%s)", ErrDraft, strings.Join(d.outsideNames(), ", "))
	}
	return d.text(), nil
}

// draft is what is known of the files while one is written.
type draft struct {
	config map[string]any // the part that describes the text model
	sub    string         // its key, "" at the top
	files  Files

	prefix  string // before a layer's number, with the point: "model.layers."
	layers  int
	inside  map[string]layerTensor // by name within a layer, numbers of experts as {e}
	outside map[string][]int       // shapes of the others, by name without .weight
	used    map[string]bool        // names of inside and outside that the draft reads

	hidden, heads, kvHeads, headDim, vocab int
	embedding, positions, finalNorm, head  string
	embedNorm                              string
	transposed                             bool // linears are stored [in, out]
	r                                      layerRoles
}

// layerTensor is a tensor that layers have.
type layerTensor struct {
	shape  []int
	layers int // how many have it
	first  int
	count  int // of {e}
}

// maxDraftNames bounds the names that patterns are tried on.
const maxDraftNames = 4096

var expertNumber = regexp.MustCompile(`\.(\d+)(\.|$)`)

func newDraft(files Files) (*draft, error) {
	d := &draft{files: files, config: files.Config(), inside: map[string]layerTensor{}, outside: map[string][]int{}, used: map[string]bool{}}
	if sub, ok := d.config["text_config"].(map[string]any); ok {
		d.config, d.sub = sub, "text_config"
	}
	names := files.TensorNames()
	if d.prefix, d.layers = layerPrefix(names); d.layers == 0 {
		return nil, fmt.Errorf("spec: %w: no tensors are numbered by layers, as model.layers.0.…", ErrDraft)
	}
	slices.Sort(names)
	t := newTracer(files, Options{})
	for _, name := range names {
		if t.ignored(name) {
			continue
		}
		v, _ := files.Tensor(name)
		rest, ok := strings.CutPrefix(name, d.prefix)
		number, within, cut := strings.Cut(rest, ".")
		layer, err := strconv.Atoi(number)
		if !ok || !cut || err != nil {
			d.outside[strings.TrimSuffix(name, ".weight")] = v.Shape
			continue
		}
		d.addInside(within, layer, v.Shape)
	}
	if len(d.inside)+len(d.outside) > maxDraftNames {
		return nil, fmt.Errorf("spec: %w: more than %d names beside the numbers of layers and experts", ErrDraft, maxDraftNames)
	}
	return d, nil
}

func (d *draft) addInside(within string, layer int, shape []int) {
	key := strings.TrimSuffix(within, ".weight")
	if i := strings.Index(key, "experts."); i >= 0 {
		key = key[:i] + expertNumber.ReplaceAllString(key[i:], ".{e}$2")
	}
	e, ok := d.inside[key]
	if !ok {
		e = layerTensor{shape: shape, first: layer}
	}
	e.count++
	if layer != e.first || !ok {
		e.layers++
	}
	if layer != e.first {
		e.first = layer
	}
	d.inside[key] = e
}

// layerPrefix finds the beginning after which most names have a number, and
// how many numbers there are: 0 to n−1.
func layerPrefix(names []string) (prefix string, n int) {
	numbers := map[string]map[int]bool{}
	weight := map[string]int{}
	for _, name := range names {
		parts := strings.Split(name, ".")
		for i, p := range parts {
			if !isNumber(p) {
				continue
			}
			key := strings.Join(parts[:i], ".") + "."
			if numbers[key] == nil {
				numbers[key] = map[int]bool{}
			}
			k, _ := strconv.Atoi(p)
			numbers[key][k] = true
			weight[key]++
			break
		}
	}
	for _, key := range slices.Sorted(maps.Keys(weight)) {
		if prefix == "" || weight[key] > weight[prefix] {
			prefix = key
		}
	}
	return prefix, len(numbers[prefix])
}

// configKey is the first of the names that the configuration has, "" if none.
func (d *draft) configKey(names ...string) string {
	for _, n := range names {
		if v, ok := d.config[n]; ok && v != nil {
			return n
		}
	}
	return ""
}

// number is the configuration's whole number under one of the names; 0 if there is none.
func (d *draft) number(names ...string) int {
	key := d.configKey(names...)
	if key == "" {
		return 0
	}
	v, err := fromGo(d.config[key])
	if err != nil {
		return 0
	}
	n, err := starlark.AsInt32(v)
	if err != nil {
		return 0
	}
	return n
}

func (d *draft) flag(names ...string) bool {
	v, _ := d.config[d.configKey(names...)].(bool)
	return v
}

func (d *draft) outsideNames() []string { return slices.Sorted(maps.Keys(d.outside)) }

// find is the first name within a layer that a pattern fits and that is not
// yet used, those of outer modules before those of modules inside; keep decides by its shape.
func (d *draft) find(pattern string, keep func(shape []int) bool) string {
	re := regexp.MustCompile(`(?i)(^|\.)(` + pattern + `)$`)
	names := slices.Sorted(maps.Keys(d.inside))
	slices.SortStableFunc(names, func(a, b string) int { return strings.Count(a, ".") - strings.Count(b, ".") })
	for _, name := range names {
		if d.used[name] || !re.MatchString(name) || keep != nil && !keep(d.inside[name].shape) {
			continue
		}
		d.used[name] = true
		if _, ok := d.inside[name+".bias"]; ok {
			d.used[name+".bias"] = true
		}
		return name
	}
	return ""
}

func rank(n int) func([]int) bool { return func(s []int) bool { return len(s) == n } }
