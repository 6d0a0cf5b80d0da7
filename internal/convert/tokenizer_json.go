package convert

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/inferflow/inferflow/tokenizer"
)

// folderTokenizer adds the tokenizer of a GGUF file that carries none whole,
// and its chat template, to the texts of a folder.
func (c *job) folderTokenizer(texts map[string][]byte) error {
	meta := c.files.Meta()
	if meta == nil {
		return nil
	}
	carried := false
	for _, name := range append([]string{"tokenizer.json"}, wordFiles...) {
		carried = carried || texts[name] != nil
	}
	if !carried {
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
