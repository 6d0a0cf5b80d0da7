package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// notes tells what does not stop a trace: that the specification is for other
// files, and values of the user that it never reads.
func (t *tracer) notes(file string) ([]string, error) {
	var notes []string
	if t.partNote != "" {
		notes = append(notes, t.partNote)
	}
	list, read := t.config.list, maps.Clone(t.config.read)
	strong, weak, err := t.served(t.files)
	t.config.list, t.config.read = list, read // what a condition reads is not what the model computes with
	if err != nil {
		return nil, err
	}
	if len(t.serves) > 0 && !strong && !weak {
		var rules []string
		for _, r := range t.serves {
			rules = append(rules, r.String())
		}
		notes = append(notes, fmt.Sprintf("the specification %s says it serves %s; this model is %s", file, strings.Join(rules, " or "), identity(t.files)))
	}
	var unasked []string
	for k := range t.opts.Set {
		if !t.config.asked[k] && !slices.Contains(t.opts.Elsewhere, k) {
			unasked = append(unasked, k)
		}
	}
	notes = append(notes, t.biasNotes()...)
	slices.Sort(unasked)
	for _, k := range unasked {
		text := fmt.Sprintf("the specification %s never reads %s, which was set by hand", file, k)
		if slices.Contains(heldKeys, k) {
			text += "; it is only held against the tensors"
		}
		notes = append(notes, text)
	}
	return notes, nil
}

// Bounds of what print(…) says in one trace.
const (
	maxPrinted     = 40 // lines
	maxPrintedText = 400
)

// print keeps a line of print(…) with the place that it stands at.
func (t *tracer) print(s string) {
	if len(t.printed) > maxPrinted {
		return
	}
	if len(t.printed) == maxPrinted {
		t.printed = append(t.printed, fmt.Sprintf("print: more than %d lines; the others are left out", maxPrinted))
		return
	}
	if len(s) > maxPrintedText {
		s = strings.ToValidUTF8(s[:maxPrintedText], "") + " …"
	}
	t.printed = append(t.printed, fmt.Sprintf("%s: prints: %s", t.line(), oneLine(s)))
}

// heldKeys are what checkNumbers holds against the tensors.
var heldKeys = []string{"num_attention_heads", "num_key_value_heads", "hidden_size", "intermediate_size", "vocab_size"}

// String names what a rule is for.
func (r servesRule) String() string {
	var parts []string
	for _, p := range []struct {
		what  string
		names []string
	}{{"model_type", r.modelTypes}, {"architectures", r.architectures}, {"gguf", r.gguf}} {
		if len(p.names) > 0 {
			parts = append(parts, fmt.Sprintf("%s %q", p.what, p.names))
		}
	}
	s := strings.Join(parts, ", ")
	if r.when != nil {
		s += " under a condition (when)"
	}
	return s
}

// biasNotes tells of biases that the configuration promises and the files lack.
func (t *tracer) biasNotes() (notes []string) {
	if t.files.Binding() != HF || slices.ContainsFunc(t.stored, isBias) {
		return nil
	}
	for _, c := range []*config{t.config.root(), t.config.root().sub("text_config")} {
		for _, k := range []string{"attention_bias", "mlp_bias", "qkv_bias", "use_bias"} {
			if _, read := t.config.read[c.prefix+k]; read {
				continue
			}
			if on, _ := c.m[k].(bool); on {
				notes = append(notes, fmt.Sprintf("config.json says %s%s = true, but no linear has a bias among the tensors; the model runs without: the key is wrong, or the files are not whole", c.prefix, k))
			}
		}
	}
	return notes
}

// isBias says that a tensor is called like a bias, and not of a norm.
func isBias(name string) bool {
	base, ok := strings.CutSuffix(name, "bias")
	if !ok {
		return false
	}
	base = strings.ToLower(base)
	return !strings.Contains(base, "norm") && !strings.Contains(base, "ln")
}
