package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
)

// poolingTypes are GGUF's numbers of the ways to pool.
// Source: llama.cpp, gguf-py/gguf/constants.py, PoolingType.
var poolingTypes = map[string]uint32{"mean": 1, "cls": 2, "last": 3}

// pooling adds what the folder's sentence-transformers modules say: the way of
// pooling under GGUF's key, and all modules to the configuration of our own.
func (c *job) pooling(r *spec.Rebound) error {
	steps, err := c.files.Modules()
	if err != nil || len(steps) == 0 {
		return err
	}
	known := false
	for _, s := range steps {
		step, _ := s.(map[string]any)
		switch step["kind"] {
		case "pooling":
			how, _ := step["how"].([]any)
			if len(how) == 1 {
				name, _ := how[0].(string)
				if n := poolingTypes[name]; n > 0 {
					r.Metadata[r.Architecture+".pooling_type"], known = n, true
				}
			}
		case "normalize":
		default:
			c.o.Notice(fmt.Sprintf("llama.cpp knows nothing of the folder's module %v: it is kept under keys of our own, and llama.cpp makes the embeddings before it", step["kind"]))
			r.Aside = append(r.Aside, c.moduleTensors(step)...)
		}
	}
	if !known {
		c.o.Notice("GGUF has no number for the way in which this folder pools; llama.cpp will make other embeddings")
	}
	own, _ := r.Metadata[spec.OwnConfigKey].(string)
	r.Metadata[spec.OwnConfigKey], err = withModules(own, steps)
	return err
}

// moduleTensors are the weights of a module.
func (c *job) moduleTensors(step map[string]any) (list []spec.ReboundTensor) {
	name, _ := step["name"].(string)
	for _, suffix := range []string{".weight", ".bias"} {
		if v, ok := c.files.Tensor(name + suffix); ok && name != "" {
			list = append(list, stored(v))
		}
	}
	return list
}

// prompts tells of what sentence-transformers does with a text before the
// model sees it, which llama.cpp leaves to its user.
func (c *job) prompts() error {
	var p struct {
		Prompts map[string]string `json:"prompts"`
		Default *string           `json:"default_prompt_name"`
	}
	raw, err := c.files.Outer("config_sentence_transformers.json")
	if err != nil || raw == nil || json.Unmarshal(raw, &p) != nil {
		return err
	}
	if p.Default != nil && p.Prompts[*p.Default] != "" {
		c.o.Notice(fmt.Sprintf("llama.cpp will not put the prompt %.80q before texts as this folder asks for; it is kept in %s", p.Prompts[*p.Default], model.OwnFileKey("config_sentence_transformers.json")))
	}
	return nil
}

// modules writes what a model makes of its rows as sentence-transformers lays
// it out: modules.json, and a folder a module. It takes the modules out of the
// configuration, and their weights out of the tensors.
func (c *job) modules(steps []any, config map[string]any, tensors []spec.ReboundTensor, texts map[string][]byte) ([]spec.ReboundTensor, error) {
	if _, ok := config[model.SentenceKey].([]any); ok { // an object is what classes of scores write there
		delete(config, model.SentenceKey)
	}
	if len(steps) == 0 {
		return tensors, nil
	}
	const types = "sentence_transformers.models."
	list := []moduleEntry{{0, "0", "", types + "Transformer"}}
	for i, s := range steps {
		step, _ := s.(map[string]any)
		kind, known := moduleKinds[word(step["kind"])]
		if !known {
			return nil, fmt.Errorf("convert: modules: module %d is of a kind that is not known: %w", i, ErrConvert)
		}
		e := moduleEntry{i + 1, fmt.Sprint(i + 1), fmt.Sprintf("%d_%s", i+1, kind), types + kind}
		list = append(list, e)
		var setting any
		switch kind {
		case "Pooling":
			setting = poolingConfig(step, config["hidden_size"])
		case "Normalize":
			continue
		default:
			var err error
			if setting, tensors, err = c.moduleFolder(step, e.Path, tensors, texts); err != nil {
				return nil, err
			}
		}
		text, err := json.MarshalIndent(setting, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("convert: modules: %w", err)
		}
		texts[e.Path+"/config.json"] = text
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("convert: modules.json: %w", err)
	}
	texts["modules.json"] = text
	return tensors, nil
}

// word is v where it is a string, else "".
func word(v any) string {
	s, _ := v.(string)
	return s
}

// moduleEntry is a line of modules.json.
type moduleEntry struct {
	Index int    `json:"idx"`
	Name  string `json:"name"`
	Path  string `json:"path"`
	Type  string `json:"type"`
}

// moduleKinds are the classes of sentence-transformers.
var moduleKinds = map[string]string{"pooling": "Pooling", "normalize": "Normalize", "dense": "Dense", "layer_norm": "LayerNorm"}

// activationClasses are PyTorch's, as the module Dense names them.
var activationClasses = map[string]string{"identity": "torch.nn.modules.linear.Identity", "tanh": "torch.nn.modules.activation.Tanh", "relu": "torch.nn.modules.activation.ReLU",
	"gelu": "torch.nn.modules.activation.GELU", "sigmoid": "torch.nn.modules.activation.Sigmoid", "silu": "torch.nn.modules.activation.SiLU"}

// moduleFolder is the configuration of a module with weights, which it writes
// into the module's folder.
func (c *job) moduleFolder(step map[string]any, path string, tensors []spec.ReboundTensor, texts map[string][]byte) (any, []spec.ReboundTensor, error) {
	name, _ := step["name"].(string)
	prefix := name[:strings.LastIndexByte(name, '.')+1]
	w := &safetensors.Writer{Metadata: map[string]string{"format": "pt"}}
	var rest []spec.ReboundTensor
	var shape []int
	for _, t := range tensors {
		own, ok := strings.CutPrefix(t.Name, prefix)
		if !ok || prefix == "" {
			rest = append(rest, t)
			continue
		}
		t.Name = own
		if err := c.add(w, t, c.folderType); err != nil {
			return nil, nil, err
		}
		if strings.HasSuffix(own, ".weight") {
			shape = t.Value.Shape
		}
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return nil, nil, fmt.Errorf("convert: modules: %w", err)
	}
	texts[path+"/model.safetensors"] = b.Bytes()
	if step["kind"] == "layer_norm" && len(shape) == 1 {
		return map[string]any{"dimension": shape[0]}, rest, nil
	}
	if len(shape) != 2 {
		return nil, nil, fmt.Errorf("convert: modules: %s has no matrix: %w", name, ErrConvert)
	}
	return map[string]any{"in_features": shape[1], "out_features": shape[0], "bias": step["bias"], "activation_function": activationClasses[word(step["activation"])]}, rest, nil
}

// poolingConfig is the config.json of a pooling module.
func poolingConfig(step map[string]any, width any) map[string]any {
	c := map[string]any{"word_embedding_dimension": width, "include_prompt": step["include_prompt"] != false}
	for _, key := range []string{"cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"} {
		c["pooling_mode_"+key] = false
	}
	keys := map[string]string{"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens", "mean_sqrt": "mean_sqrt_len_tokens", "weighted": "weightedmean_tokens", "last": "lasttoken"}
	how, _ := step["how"].([]any)
	for _, h := range how {
		if key := keys[word(h)]; key != "" {
			c["pooling_mode_"+key] = true
		}
	}
	return c
}
