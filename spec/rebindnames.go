package spec

import (
	"fmt"
	"slices"
	"strings"
)

// complete are ends of GGUF's names that take no .weight.
var complete = []string{".weight", ".bias", ".scale", ".ssm_a", ".ssm_d", ".ssm_dt", ".z_l_init", ".exp_probs_b"}

// bareHF are tensors of folders whose names end so, though GGUF adds .weight.
var bareHF = []string{".sinks", ".attention_sink_bias", ".experts.gate_up_proj", ".experts.down_proj"}

// targetNames are the names of a found tensor in the other binding.
func (r *rebinder) targetNames(a askedTensor) []string {
	base, suffix := cutSuffix(a.name)
	if suffix == "" && (a.experts > 0 || r.result.Binding == GGUF) {
		suffix = ".weight"
	}
	names := r.candidates(base + suffix)
	if full := r.candidates(a.name); len(full) > 0 && a.name == base && slices.ContainsFunc(complete, func(s string) bool { return strings.HasSuffix(full[0], s) }) {
		names = full
	}
	switch {
	case r.result.Binding == HF && a.experts == 0 && slices.ContainsFunc(bareHF, func(s string) bool { return strings.HasSuffix(base, s) }):
		names = []string{base}
	case r.result.Binding == HF && a.experts == 0:
		names = []string{a.name}
	case len(names) == 0:
		return nil
	}
	if a.experts == 0 || !strings.Contains(names[0], "{e}") {
		return names[:1]
	}
	out := make([]string, a.experts)
	for e := range out {
		out[e] = strings.ReplaceAll(names[0], "{e}", fmt.Sprint(e))
	}
	return out
}

// candidates are the names that the other binding has for a reference name.
func (r *rebinder) candidates(name string) []string {
	t := r.table.names
	if r.result.Binding == HF {
		return t.candidates(name)
	}
	var list []string
	for _, ref := range t.references(name) {
		if names, ok := t.entries.lookup(ref); ok {
			list = append(list, names...)
		}
	}
	return list
}
