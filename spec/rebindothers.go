package spec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// compareOthers traces the other binding as a reader takes it that does not
// know our own keys, and notes what comes out otherwise.
func (r *rebinder) compareOthers() error {
	if r.result.Binding != GGUF {
		return nil
	}
	for _, f := range r.from.asked.differs {
		v, err := starlark.Call(r.from.thread, f, starlark.Tuple{r.from.config.root()}, nil)
		if err != nil {
			return r.from.fail(err)
		}
		text, ok := starlark.AsString(v)
		switch {
		case ok:
			r.note("llama.cpp answers otherwise: %s", cutTo(text, maxDiffers))
		case v == starlark.False:
			return nil
		case v != starlark.None:
			return r.wrong(f, "differs", "want a text, None or False, got %s", v.Type())
		}
	}
	r.noteLong()
	t, c, err := r.asOthers(r.others())
	lacks := r.othersLack()
	if err != nil || len(c.heads)+len(c.other) > 0 || c.twofold { // else they are of use for this program alone
		r.noteAside(lacks, headWords(c.heads))
	}
	if len(lacks) > 0 && len(c.heads) == 0 { // which is told: the rest is as it were with them
		whole := r.others()
		whole.views, whole.order = r.to.views, r.to.order
		t, c, err = r.asOthers(whole)
	}
	switch {
	case err != nil:
		r.note("GGUF has no keys for all of this model's configuration; llama.cpp may refuse the file or answer otherwise (%s)", r.whyUnread(t, err))
	case len(c.other) > 0:
		r.note("GGUF has no keys for all of this model's configuration; what it lacks is kept in %s, and llama.cpp may answer otherwise (%s%s)", OwnConfigKey, inWords(c.other), r.otherKeys(t))
	}
	return nil
}

// maxDiffers bounds the text of a notice that a specification gives.
const maxDiffers = 500

// asOthers traces files as a reader takes them that does not know our own keys,
// and compares. The error is the trace's.
func (r *rebinder) asOthers(files *mirror) (*tracer, *comparison, error) {
	s := newSolver()
	c := &comparison{known: r.numbersIn, pair: func(a, b *graph.Weight, _ graph.Line) error { _ = s.set(b, a); return nil }}
	t := newTracer(files, Options{AllowUnused: true})
	if _, err := t.run(r.s.fileName(), r.s.Source); err != nil {
		return t, c, err
	}
	if err := c.graphs(r.from.b.G, t.b.G); err != nil {
		c.other = append(c.other, firstLine(err.Error()))
	}
	c.twofold = s.twofold
	return t, c, nil
}

func (r *rebinder) note(format string, args ...any) {
	r.result.Notes = append(r.result.Notes, fmt.Sprintf(format, args...))
}

// others are the files to be made as other readers take them: without our own
// keys, and without the tensors that stand aside.
func (r *rebinder) others() *mirror {
	plain := *r.to
	plain.config = maps.Clone(r.result.Metadata)
	delete(plain.config, OwnConfigKey)
	delete(plain.config, OwnFilledKey)
	r.unread(plain.config)
	plain.config[convertingKey] = true
	plain.views, plain.order = maps.Clone(r.to.views), nil
	for _, name := range r.to.order {
		if r.aside[name] {
			delete(plain.views, name)
		} else {
			plain.order = append(plain.order, name)
		}
	}
	return &plain
}

// othersLack lists the tensors that stand aside.
func (r *rebinder) othersLack() (names []string) {
	for _, t := range r.result.Aside {
		names = append(names, t.Name)
	}
	return names
}

// headWords says what outputs are good for.
func headWords(outputs []string) string {
	words := map[string]string{"logits": "words", "scores": "classes", "token_scores": "classes of tokens", "spans": "places of answers", "pooled": "the row that stands for the whole text"}
	var list []string
	for _, name := range outputs {
		if w := words[name]; w != "" {
			name = fmt.Sprintf("%s (%s)", w, name)
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

// noteAside tells of tensors that other readers do not take; outputs are those
// that the model lacks without them.
func (r *rebinder) noteAside(names []string, outputs string) {
	switch n := len(names); {
	case n == 0:
	case outputs != "":
		r.note("llama.cpp runs this model without its last layers: those for %s are kept under keys of our own, which it passes over, and it gives the rows before them", outputs)
	case n == 1:
		r.note("llama.cpp answers otherwise: it has no room for %s, which is kept under a key of our own", names[0])
	default:
		r.note("llama.cpp answers otherwise: it has no room for %d tensors (%s and so on), which are kept under keys of our own", n, names[0])
	}
}

// familyKeys say of which family a folder is, as general.architecture does of a file.
var familyKeys = []string{"model_type", "architectures"}

// otherKeys lists the configuration values that the two traces read differently.
func (r *rebinder) otherKeys(t *tracer) string {
	var list []string
	for _, v := range r.from.config.list {
		if i, ok := t.config.read[v.Key]; ok && !slices.Contains(familyKeys, v.Key) {
			if other := t.config.list[i].Value; !sameSetting(other, v.Value) {
				list = append(list, fmt.Sprintf("%s: %s, there %s", v.Key, setText(v.Value), setText(other)))
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "; " + strings.Join(list, "; ")
}

func nearly(a, b any) bool {
	x, ok1 := a.(float64)
	y, ok2 := b.(float64)
	return ok1 && ok2 && math.Abs(x-y) <= 1e-6*math.Abs(x)
}
