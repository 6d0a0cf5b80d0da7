package spec

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Kinds of specifications, by what their text defines.
const (
	kindEncoder = "encoder"
	kindPair    = "encoder-decoder"
)

// otherKind says in words that the model is no decoder of texts, which a draft
// would get wrong from the ground up, and which kind of specification it needs.
func (d *draft) otherKind() (what, kind string) {
	has := func(part string) bool {
		return slices.ContainsFunc(d.files.TensorNames(), func(s string) bool { return strings.Contains("."+s, "."+part) })
	}
	switch {
	case d.flag("is_encoder_decoder") || has("encoder.") && has("decoder."):
		return "an encoder-decoder", kindPair
	case has("cls.predictions.") || has("pooler.dense."):
		return "an encoder", kindEncoder
	}
	for _, a := range architectures(d.files) {
		for _, end := range []string{"ForMaskedLM", "ForPreTraining"} {
			if strings.HasSuffix(a, end) {
				return "an encoder (" + a + ")", kindEncoder
			}
		}
	}
	return "", ""
}

var (
	quoted     = regexp.MustCompile(`"([^"\n]*)"`)
	loaded     = regexp.MustCompile(`load\("@std/([^"]+)"`)
	nameParts  = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	wholeMask  = regexp.MustCompile(`"full"|@std/encoder\.star`)
	decoderDef = regexp.MustCompile(`(?m)^def decoder\(`)
)

// nearest are the shipped specifications, of a kind or of any, whose text names
// most of the parts of the files' tensor names, rare parts counting most. The one
// that serves them is the first.
func nearest(files Files, kind string, n int) []string {
	shipped := libraryWords()
	parts := map[string]bool{}
	for _, name := range files.TensorNames() {
		for _, p := range nameParts.FindAllString(name, -1) {
			parts[p] = true
		}
	}
	score := map[string]float64{}
	for name, e := range shipped {
		if kind == "" && e.pair || kind == kindPair && !e.pair || kind == kindEncoder && (e.pair || !e.whole) {
			continue
		}
		total := 0.0
		for _, p := range slices.Sorted(maps.Keys(parts)) {
			total += e.words[p]
		}
		if total > 0 {
			score[name] = total / math.Sqrt(e.all)
		}
	}
	list := slices.Sorted(maps.Keys(score))
	slices.SortStableFunc(list, func(a, b string) int {
		switch {
		case score[a] > score[b]:
			return -1
		case score[a] < score[b]:
			return 1
		}
		return 0
	})
	if name := shippedFor(files); name != "" {
		list = append([]string{name}, slices.DeleteFunc(list, func(s string) bool { return s == name })...)
	}
	return list[:min(n, len(list))]
}

// shippedFor is the shipped specification that serves a model, "" if none or several do.
func shippedFor(files Files) string {
	s, err := Resolve(files, Options{})
	if err != nil {
		return ""
	}
	return s.Name
}

// servedAlready says that a shipped specification serves a model, as the
// beginning of a sentence; "" where none does.
func servedAlready(files Files) string {
	name := shippedFor(files)
	if name == "" {
		return ""
	}
	return "the shipped specification " + name + " serves this model (inferflow spec show " + name + "); "
}

// worded is what a shipped specification's text names.
type worded struct {
	pair, whole bool               // two functions; attention to the whole text
	words       map[string]float64 // how rare each is among all
	all         float64            // their sum
}

// libraryWords reads the shipped specifications, once.
var libraryWords = sync.OnceValue(func() map[string]worded {
	m, often := map[string]worded{}, map[string]float64{}
	for _, name := range Library() {
		src, err := librarySource(name)
		if err != nil {
			continue
		}
		e := worded{pair: decoderDef.MatchString(src), whole: wholeMask.MatchString(src), words: map[string]float64{}}
		for w := range sourceWords(src) {
			e.words[w] = 0
			often[w]++
		}
		m[name] = e
	}
	for name, e := range m {
		for w := range e.words {
			e.words[w] = math.Log(float64(len(m)+1) / often[w])
		}
		for _, w := range slices.Sorted(maps.Keys(e.words)) { // in order: the sum must not depend on the map's
			e.all += e.words[w]
		}
		m[name] = e
	}
	return m
})

// sourceWords are the words in the strings of a specification and of the
// modules that it loads.
func sourceWords(src string) map[string]bool {
	set := map[string]bool{}
	texts, seen := []string{src}, map[string]bool{}
	for i := 0; i < len(texts); i++ { // it grows: modules load others
		for _, m := range loaded.FindAllStringSubmatch(texts[i], -1) {
			if b, err := sources.ReadFile("std/" + m[1]); err == nil && !seen[m[1]] {
				seen[m[1]] = true
				texts = append(texts, string(b))
			}
		}
	}
	for _, text := range texts {
		for _, s := range quoted.FindAllStringSubmatch(text, -1) {
			for _, w := range nameParts.FindAllString(s[1], -1) {
				set[w] = true
			}
		}
	}
	return set
}
