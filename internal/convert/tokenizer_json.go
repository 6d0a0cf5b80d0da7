package convert

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/tokenizer"
)

// folderTokenizer adds the tokenizer of a GGUF file to the texts of a folder:
// the one that the file carries whole, else what its keys say.
func (c *job) folderTokenizer(texts map[string][]byte) error {
	meta := c.files.Meta()
	for key, name := range map[string]string{model.OwnTokenizerKey: "tokenizer.json", model.OwnTokenizerConfigKey: "tokenizer_config.json", model.OwnGenerationKey: "generation_config.json"} {
		if s, err := meta.String(key); err == nil {
			texts[name] = []byte(s)
		}
	}
	if texts["tokenizer.json"] == nil {
		words, config, err := tokenizer.JSON(meta)
		switch {
		case errors.Is(err, tokenizer.ErrNoTokenizer):
		case err != nil: // the weights are worth having without it
			c.o.Notice(fmt.Sprintf("%v; the folder gets no tokenizer", err))
			return nil
		default:
			texts["tokenizer.json"], texts["tokenizer_config.json"] = words, config
		}
	}
	template, err := c.files.Template()
	if err != nil || template == "" || texts["tokenizer_config.json"] == nil {
		return err
	}
	var config map[string]any
	if err := json.Unmarshal(texts["tokenizer_config.json"], &config); err != nil {
		return fmt.Errorf("convert: tokenizer_config.json: %w", err)
	}
	if config["chat_template"] == nil {
		texts["chat_template.jinja"] = []byte(template)
	}
	return nil
}
