package model

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/inferflow/inferflow/spec"
)

// Labels names the classes of a row of scores: id2label of config.json, or a
// GGUF's list, else LABEL_0, LABEL_1, …
func (m *Model) Labels() []string {
	labels := make([]string, m.Vocab())
	given, _ := m.files.folderConfig()["id2label"].(map[string]any)
	list := m.labelList()
	for i := range labels {
		labels[i] = fmt.Sprintf("LABEL_%d", i)
		if s, ok := given[strconv.Itoa(i)].(string); ok {
			labels[i] = s
		} else if i < len(list) {
			labels[i] = list[i]
		}
	}
	return labels
}

// labelList is classifier.output_labels of a GGUF.
func (m *Model) labelList() []string {
	if m.files.Binding() == spec.HF {
		return nil
	}
	raw, err := json.Marshal(m.files.config[m.files.Architecture()+".classifier.output_labels"])
	var list []string
	if err != nil || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// Independent says that the classes do not exclude each other: each has a
// probability of its own, or there is just one.
func (m *Model) Independent() bool {
	kind, _ := m.files.folderConfig()["problem_type"].(string)
	return m.Vocab() == 1 || kind == "multi_label_classification"
}

// meanByDefault says that an embedding is the mean of rows for want of anything
// that says otherwise: modules of sentence-transformers, or a GGUF's pooling.
func (m *Model) meanByDefault() bool {
	if m.Sentence.Modules || m.files.config[SentenceKey] != nil || m.Encodes() {
		return false
	}
	if own, ok := m.files.folderConfig()[SentenceKey].([]any); ok && len(own) > 0 {
		return false
	}
	return m.files.Binding() == spec.HF || m.files.config[m.files.Architecture()+".pooling_type"] == nil
}

// Outputs lists the outputs that the specification gives.
func (m *Model) Outputs() []string {
	var names []string
	for _, o := range m.Traced.Graph.Outputs {
		names = append(names, o.Name)
	}
	return names
}

// Purpose is the output that the files are made for: "scores" of a classifier,
// spec.OutputEmbedding of a folder of sentence-transformers or an encoder, else
// "logits": the words of a model that writes texts, or for the masks of one
// whose files say nothing of vectors. The model must have been opened without an Output.
func (m *Model) Purpose() string {
	has := map[string]bool{}
	for _, n := range m.Outputs() {
		has[n] = true
	}
	switch {
	case has["scores"]:
		return "scores"
	case has["logits"] && !has[spec.OutputEmbedding] && m.meanByDefault():
		return "logits"
	case m.Sentence.Modules || m.Whole():
		return spec.OutputEmbedding
	}
	return "logits"
}
