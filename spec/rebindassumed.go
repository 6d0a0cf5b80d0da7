package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unsaid are words of reasons of overrides for what GGUF has no key for, in
// contrast to what it says otherwise.
var unsaid = []string{"does not store", "leaves it out"}

// noteAssumed tells what a folder was made with that no file says: values that
// GGUF has no key for, and that somebody may know better.
func (r *rebinder) noteAssumed() {
	if r.result.Binding != HF || r.from.config.owns() {
		return
	}
	var list []string
	for _, v := range r.from.config.values() {
		reason, ok := strings.CutPrefix(v.Source, "override: ")
		if !ok || !slices.ContainsFunc(unsaid, func(s string) bool { return strings.Contains(reason, s) }) {
			continue
		}
		_, why, _ := strings.Cut(reason, "; ")
		if why != "" {
			why = " (" + why + ")"
		}
		list = append(list, fmt.Sprintf("%s: %s%s", v.Key, setText(v.Value), why))
	}
	if len(list) > 0 {
		r.note("the GGUF file cannot say all of the configuration; taken as %s; --set KEY=VALUE gives another value", strings.Join(list, ", "))
	}
}

// noteUnasked tells what was given by --set and nothing reads.
func (r *rebinder) noteUnasked() {
	for _, k := range slices.Sorted(maps.Keys(r.s.opts.Set)) {
		if !r.from.config.asked[k] && !r.asksFor(k) && !slices.Contains(r.s.opts.Elsewhere, k) {
			r.note("--set %s: nothing of this program reads it for this model; it stands in config.json", k)
		}
	}
}

// asksFor says that the trace of the folder reads a key.
func (r *rebinder) asksFor(key string) bool {
	return r.last != nil && slices.ContainsFunc(r.last.groups, func(g askedKeys) bool {
		return slices.ContainsFunc(g.keys, func(k string) bool { return g.prefix+k == key })
	})
}
