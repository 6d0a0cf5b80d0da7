package spec

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// identity says what the files call themselves.
func identity(files Files) string {
	if files.Binding() == GGUF {
		return "GGUF architecture " + shown(files.Architecture())
	}
	list := fmt.Sprintf("%q", architectures(files))
	if len(list) > 2*maxShown {
		list = cut(list)
	}
	return fmt.Sprintf("model_type %s, architectures %s", shown(modelType(files)), list)
}

func modelType(files Files) string {
	s, _ := files.Config()["model_type"].(string)
	return s
}

func architectures(files Files) []string {
	list, _ := files.Config()["architectures"].([]any)
	var names []string
	for _, x := range list {
		if s, ok := x.(string); ok {
			names = append(names, s)
		}
	}
	return names
}

// matching lists the shipped specifications that serve the files. model_type
// comes first; architectures count where no model_type fits.
func matching(files Files) ([]string, error) {
	words := append(architectures(files), modelType(files))
	if files.Binding() == GGUF {
		words = []string{files.Architecture()}
		if own := ownModelType(files); own != "" {
			words = append(words, own)
		}
	}
	var strong, weak []string
	for _, name := range Library() {
		src, err := librarySource(name)
		if err != nil {
			return nil, err
		}
		if !mentions(src, words) {
			continue // a plain text search spares running it
		}
		s, w, err := serving(name, src, files)
		if err != nil {
			return nil, err
		}
		if s {
			strong = append(strong, name)
		} else if w {
			weak = append(weak, name)
		}
	}
	if len(strong) > 0 {
		return strong, nil
	}
	return weak, nil
}

func mentions(src string, words []string) bool {
	for _, w := range words {
		if w != "" && strings.Contains(src, `"`+w+`"`) {
			return true
		}
	}
	return false
}

// serving runs the top of a specification and asks its serves(…).
func serving(name, src string, files Files) (strong, weak bool, err error) {
	t := newTracer(files, Options{})
	if err := t.loadNames(); err != nil {
		return false, false, err
	}
	if _, err := starlark.ExecFileOptions(fileOptions, t.thread, name+".star", src, predeclared); err != nil {
		return false, false, t.fail(err)
	}
	return t.served(files)
}

// served asks the rules of serves(…) that were declared by now.
func (t *tracer) served(files Files) (strong, weak bool, err error) {
	for _, r := range t.serves {
		s, w := t.fits(r, files)
		if !s && !w {
			continue
		}
		if r.when != nil && (files.Binding() == HF || ownModelType(files) == "") {
			v, err := starlark.Call(t.thread, r.when, starlark.Tuple{t.config.root()}, nil)
			if err != nil {
				return false, false, t.fail(err)
			}
			if !bool(v.Truth()) {
				continue
			}
		}
		strong, weak = strong || s, weak || w
	}
	return strong, weak, nil
}

// fits says whether a rule names the files: strongly by model_type or GGUF
// architecture, weakly by a class name. A rule without an architecture goes by
// those of the others: conversions take one of them.
func (t *tracer) fits(r servesRule, files Files) (strong, weak bool) {
	if files.Binding() == GGUF {
		if own := ownModelType(files); own != "" {
			rules := []servesRule{r}
			if len(r.gguf) == 0 {
				rules = t.serves
			}
			return slices.Contains(r.modelTypes, own) && slices.ContainsFunc(rules, func(o servesRule) bool { return slices.Contains(o.gguf, files.Architecture()) }), false
		}
		return slices.Contains(r.gguf, files.Architecture()), false
	}
	if mt := modelType(files); mt != "" && slices.Contains(r.modelTypes, mt) {
		return true, false
	}
	for _, a := range architectures(files) {
		if slices.Contains(r.architectures, a) {
			return false, true
		}
	}
	return false, false
}

// ownModelType is the model_type of the config.json that a GGUF file carries.
func ownModelType(files Files) string {
	if files.Binding() != GGUF {
		return ""
	}
	s, _ := ownConfig(files)["model_type"].(string)
	return s
}
