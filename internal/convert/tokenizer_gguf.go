package convert

import "github.com/inferflow/inferflow/spec"

func (c *job) ggufTokenizer(r *spec.Rebound) ([]setting, error) {
	return []setting{{"tokenizer.ggml.model", "none"}}, nil
}
