package spec

import (
	"slices"
	"strings"
	"testing"
)

// TestJoinedPrefixes: the beginnings give the names that the prefixes give one
// after another, in the same order, less those that no tensor has.
func TestJoinedPrefixes(t *testing.T) {
	for _, stored := range [][]string{
		{"model.language_model.layers.0.w", "model.language_model.norm", "lm_head.weight", "vision.blocks.0.w"},
		{"language_model.model.encoder.layers.0.w", "language_model.lm_head.weight"},
		{"llm.model.layers.0.w", "thinker.model.layers.0.w", "x"},
		{"model.newline", "model.language_model.layers.0.w", "model.language_model.norm"},
		{"language_model.layers.0.w"}, {"model.layers.0.w"}, {"embed", "."}, nil,
	} {
		n := newNameTable(HF)
		n.stored = stored
		n.prefixes = append([][2]string{{"a.", "model.b."}, {"model.b.", "c."}, {"x", "y"}}, textPrefixes...)
		n.aliases.m["model.norm"] = nameEntry{alts: []string{"norm", "model.b.norm"}}
		plain := newNameTable(HF)
		plain.prefixes = n.prefixes
		bare := !slices.ContainsFunc(stored, func(s string) bool { return strings.HasPrefix(s, "model.") })
		for _, name := range []string{"model.layers.0.w", "lm_head.weight", "a.w", "model.b.w", "xw", "model.norm", "norm", "w", ""} {
			all := []string{name}
			if name == "model.norm" {
				all = append(all, "norm", "model.b.norm")
			}
			for _, p := range plain.prefixes {
				for _, ref := range all[:len(all):len(all)] {
					if rest, ok := strings.CutPrefix(ref, p[0]); ok {
						all = append(all, p[1]+rest)
					}
				}
			}
			got := n.references(name)
			at := 0
			for _, c := range all {
				if at < len(got) && got[at] == c {
					at++
				} else if !slices.Contains(got[:at], c) && (slices.Contains(stored, c) || bare && slices.Contains(stored, strings.TrimPrefix(c, "model."))) {
					t.Errorf("%v: %q does not find %q: %q", stored, name, c, got)
				}
			}
			if at != len(got) {
				t.Errorf("%v: %q gives %q, want a part of %q", stored, name, got, all)
			}
		}
	}
}
