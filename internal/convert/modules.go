package convert

import (
	"encoding/json"
	"fmt"

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
			c.o.Notice(fmt.Sprintf("GGUF has no tensors for the folder's module %v: embeddings will be those before it", step["kind"]))
			return nil
		}
	}
	if !known {
		c.o.Notice("GGUF has no number for the way in which this folder pools; llama.cpp will make other embeddings")
	}
	var own map[string]any
	text, _ := r.Metadata[spec.OwnConfigKey].(string)
	if err := json.Unmarshal([]byte(text), &own); err != nil {
		return fmt.Errorf("convert: config.json: %w", err)
	}
	own[model.SentenceKey] = steps
	raw, err := json.Marshal(own)
	if err != nil {
		return fmt.Errorf("convert: config.json: %w", err)
	}
	r.Metadata[spec.OwnConfigKey] = string(raw)
	return nil
}

// modules writes the modules that a file carries as sentence-transformers
// lays them out, and takes them out of the configuration.
func (c *job) modules(r *spec.Rebound, texts map[string][]byte) error {
	steps := c.files.OwnModules()
	delete(r.Config, model.SentenceKey)
	if len(steps) == 0 {
		return nil
	}
	type entry struct {
		Index int    `json:"idx"`
		Name  string `json:"name"`
		Path  string `json:"path"`
		Type  string `json:"type"`
	}
	const types = "sentence_transformers.models."
	list := []entry{{0, "0", "", types + "Transformer"}}
	for i, s := range steps {
		step, _ := s.(map[string]any)
		e := entry{i + 1, fmt.Sprint(i + 1), fmt.Sprintf("%d_Pooling", i+1), types + "Pooling"}
		if step["kind"] == "normalize" {
			e.Path, e.Type = fmt.Sprintf("%d_Normalize", i+1), types+"Normalize"
		} else {
			text, err := json.MarshalIndent(poolingConfig(step, r.Config["hidden_size"]), "", "  ")
			if err != nil {
				return fmt.Errorf("convert: %s: %w", e.Path, err)
			}
			texts[e.Path+"/config.json"] = text
		}
		list = append(list, e)
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("convert: modules.json: %w", err)
	}
	texts["modules.json"] = text
	return nil
}

// poolingConfig is the config.json of a pooling module.
func poolingConfig(step map[string]any, width any) map[string]any {
	c := map[string]any{"word_embedding_dimension": width, "include_prompt": step["include_prompt"] != false}
	for _, key := range []string{"cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"} {
		c["pooling_mode_"+key] = false
	}
	keys := map[any]string{"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens", "mean_sqrt": "mean_sqrt_len_tokens", "weighted": "weightedmean_tokens", "last": "lasttoken"}
	how, _ := step["how"].([]any)
	for _, h := range how {
		if key := keys[h]; key != "" {
			c["pooling_mode_"+key] = true
		}
	}
	return c
}
