package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/internal/model"
)

// samplingKeys are GGUF's keys for settings of generation_config.json.
// Source: llama.cpp, gguf-py/gguf/constants.py, Keys.General.
var samplingKeys = map[string]string{"temperature": "general.sampling.temp", "top_p": "general.sampling.top_p", "top_k": "general.sampling.top_k", "min_p": "general.sampling.min_p"}

const generationFile = "generation_config.json"

// sampling is the generation_config.json of the model to be written: the
// model's own, else what GGUF's keys say, with the advice that neither says.
// nil where there is nothing to say.
func (c *job) sampling() ([]byte, error) {
	raw, err := c.files.Optional(generationFile)
	if err != nil || raw != nil && !isObject(raw) {
		return raw, err
	}
	config, changed := map[string]any{}, false
	if raw != nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&config); err != nil {
			return nil, fmt.Errorf("convert: %s: %w", generationFile, err)
		}
	} else if meta := c.files.Meta(); meta != nil {
		for name, key := range samplingKeys {
			if f, err := meta.Float(key); err == nil {
				config[name], changed = json.Number(strconv.FormatFloat(f, 'g', -1, 32)), true
			} else if n, err := meta.Int(key); err == nil {
				config[name], changed = n, true
			}
		}
	}
	var advised []string
	for _, name := range slices.Sorted(maps.Keys(c.o.Advice)) {
		if config[name] == nil && samplingKeys[name] != "" && config["do_sample"] != false {
			config[name], changed = c.o.Advice[name], true
			advised = append(advised, fmt.Sprintf("%s %g", name, c.o.Advice[name]))
		}
	}
	if advised != nil {
		c.o.Notice("what the model's card advises is written as its sampling: " + strings.Join(advised, ", "))
	}
	if !changed {
		return raw, nil
	}
	if _, ok := config["do_sample"]; !ok {
		config["do_sample"] = true
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("convert: %s: %w", generationFile, err)
	}
	return text, nil
}

// ggufSampling says the sampling of a generation_config.json under GGUF's keys.
func ggufSampling(raw []byte) (set []setting) {
	var config map[string]any
	if json.Unmarshal(raw, &config) != nil || config["do_sample"] == false {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(samplingKeys)) {
		f, ok := config[name].(float64)
		switch {
		case !ok || math.Abs(f) > math.MaxInt32:
		case name == "top_k":
			set = append(set, setting{samplingKeys[name], int32(f)})
		default:
			set = append(set, setting{samplingKeys[name], float32(f)})
		}
	}
	return set
}

// advise adds the advice to the keys of a GGUF file that stays one.
func (c *job) advise(set []setting) ([]setting, error) {
	own, err := c.files.Optional(generationFile)
	if err != nil || len(c.o.Advice) == 0 {
		return set, err
	}
	raw, err := c.sampling()
	if err != nil || raw == nil {
		return set, err
	}
	more := ggufSampling(raw)
	if own != nil {
		more = append(more, setting{model.OwnFileKey(generationFile), string(raw)})
	}
	set = slices.DeleteFunc(set, func(s setting) bool {
		return slices.ContainsFunc(more, func(m setting) bool { return m.key == s.key })
	})
	return append(set, more...), nil
}
