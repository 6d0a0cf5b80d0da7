package spec

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.starlark.net/starlark"

	"github.com/inferflow/inferflow/internal/graph"
)

// ErrRebind says that a model cannot be written in the other binding.
var ErrRebind = errors.New("the specification cannot say the model in the other format")

// ErrGiven says that values of Options.Set make a folder that is not the model.
var ErrGiven = errors.New("with the given settings the folder would not open")

// Rebound is a model in the other binding: as a GGUF file where the files at
// hand are a Hugging Face folder, and the other way round.
type Rebound struct {
	Binding      string
	Architecture string         // GGUF
	ModelType    string         // HF
	Classes      []string       // HF: architectures, one or none
	Metadata     map[string]any // GGUF: the model's keys with values of the format's types
	Config       map[string]any // HF: config.json
	Tensors      []ReboundTensor
	// Aside are tensors that the format's other readers have no room for; they
	// refuse a file with more tensors than they know.
	Aside []ReboundTensor
	// Notes say what the format's other readers will take otherwise.
	Notes []string
}

// ReboundTensor is a tensor of the other binding as an expression over those
// of the files at hand.
type ReboundTensor struct {
	Name  string
	Value *graph.Weight
}

// rebinder holds both sides of a conversion.
type rebinder struct {
	s      *Spec
	files  Files
	from   *tracer // traced over the files at hand
	table  *tracer // knows the names and keys of the other binding
	to     *mirror
	rule   servesRule
	result *Rebound
	// factors are the tensors that hold the scaling of rotary tables.
	factors map[string]*graph.Weight
	// aside are the tensors of the mirror that GGUF's other readers have no room
	// for: those without a name there, and those of gguf(aside=…).
	aside map[string]bool
	// unnamed are the found tensors that GGUF has no name for.
	unnamed []askedTensor
	// defaults says to write what the specification took for missing.
	defaults bool
	// last is what the last trace of the mirror asked for.
	last *asked
	// guessed are settings that follow from the tensors, by dotted key.
	guessed map[string]any
}

// Rebind says how to write the model of the files in the other binding. The
// specification is traced in both: where the two traces compute the same, what
// they read must be equal, and that gives every tensor of the other binding.
// Errors wrap ErrRebind, or are those of a trace.
func (s *Spec) Rebind(files Files) (*Rebound, error) {
	r, err := s.rebound(files)
	if err != nil {
		return nil, err
	}
	r.noteUnasked()
	r.noteLeft()
	return r.result, r.opens(s)
}

// rebound is the rebinder that has the result.
func (s *Spec) rebound(files Files) (*rebinder, error) {
	if s.Foreign {
		return nil, fmt.Errorf("spec: %w: %s is not one of the shipped specifications", ErrRebind, s.Name)
	}
	if err := checkQuantization(files, nil); err != nil {
		return nil, err
	}
	if s.part {
		files = innerText(files)
	}
	r := &rebinder{s: s, files: files, result: &Rebound{Binding: GGUF}, aside: map[string]bool{}}
	if files.Binding() == GGUF {
		r.result.Binding = HF
	}
	if err := r.traceFiles(); err != nil {
		return nil, err
	}
	types, err := r.declarations()
	if err != nil {
		return nil, err
	}
	if r.layout() && r.attempt() == nil { // the folder that the file was made of
		return r, nil
	}
	for _, t := range types { // the first says best what is wrong
		r.target(t)
		e := r.rebind()
		if e == nil {
			r.noteAssumed()
			return r, errors.Join(r.fill(), r.compareOthers())
		}
		if err == nil {
			err = e
		}
	}
	if other := r.like(); other != nil {
		return other, nil
	}
	return nil, err
}

// rebind says the model under the name that declarations picked.
func (r *rebinder) rebind() error {
	r.defaults, r.guessed = false, nil
	if err := r.mirror(); err != nil {
		return err
	}
	err := r.attempt()
	if err != nil && r.result.Binding == HF { // a default may follow from what only GGUF says
		r.defaults = true
		if r.attempt() == nil || r.guess() == nil {
			return nil
		}
	}
	if err != nil && len(r.unnamed) > 0 { // those may be more than the format has room for
		r.layAside()
		if r.attempt() == nil {
			err = nil
		}
	}
	return err
}

// like says the model by another specification that serves the architecture
// and reads the file as the same steps: several families share one.
func (r *rebinder) like() *rebinder {
	if r.result.Binding != HF || r.s.opts.Name != "" || r.from.config.owns() {
		return nil
	}
	for _, name := range Library() {
		src, err := librarySource(name)
		if err != nil || name == r.s.Name || !mentions(src, []string{r.files.Architecture()}) {
			continue
		}
		o := &rebinder{s: &Spec{Name: name, Source: src, opts: r.s.opts}, files: r.files, result: &Rebound{Binding: HF}, aside: map[string]bool{}}
		o.s.opts.Name = name
		if o.traceFiles() != nil || !sameSums(r.from.b.G, o.from.b.G) {
			continue
		}
		types, err := o.declarations()
		for _, t := range types {
			if o.target(t); err == nil && o.rebind() == nil {
				o.noteAssumed()
				return o
			}
		}
	}
	return nil
}

// sameSums says that two graphs compute the same of the same tensors.
func sameSums(a, b *graph.Graph) bool {
	c := &comparison{pair: func(a, b *graph.Weight, _ graph.Line) error {
		if place(a) != place(b) {
			return ErrRebind
		}
		return nil
	}}
	return c.graphs(a, b) == nil && len(c.other) == 0 && len(c.heads) == 0
}

// traceFiles traces the files at hand. Of a GGUF file a specification undoes
// orders of columns in the weights, as where such a file is made; not where
// they are blocks.
func (r *rebinder) traceFiles() (err error) {
	tries := []Files{r.files}
	if r.files.Binding() == GGUF {
		config := maps.Clone(r.files.Config())
		config[convertingKey] = true
		tries = []Files{&convertingFiles{r.files, config}, r.files}
	}
	for _, files := range tries {
		r.from = newTracer(files, r.s.opts)
		r.from.asked = newAsked()
		if _, err = r.from.run(r.s.fileName(), r.s.Source); err == nil {
			break
		}
	}
	return err
}

// convertingFiles are files with convertingKey in their metadata.
type convertingFiles struct {
	Files
	config map[string]any
}

func (f *convertingFiles) Config() map[string]any { return f.config }

// layAside adds the tensors without a name there to the mirror, under the
// reference's names.
func (r *rebinder) layAside() {
	for _, a := range r.unnamed {
		r.to.add(a.name, a.shape)
		r.aside[a.name] = true
	}
}

// attempt traces the mirror and solves for its tensors.
func (r *rebinder) attempt() error {
	if err := r.describe(); err != nil {
		return err
	}
	to, err := r.traceMirror()
	if err != nil {
		return err
	}
	if err := r.solve(to); err != nil {
		return err
	}
	return r.readBack()
}

// declarations runs the top of the specification for the other binding, and
// lists the names that the model may have there, the likeliest first.
func (r *rebinder) declarations() ([]declaredName, error) {
	r.table = newTracer(&mirror{binding: r.result.Binding}, Options{})
	r.table.asked = newAsked()
	if err := r.table.loadNames(); err != nil {
		return nil, err
	}
	if _, err := starlark.ExecFileOptions(fileOptions, r.table.thread, r.s.fileName(), r.s.Source, predeclared); err != nil {
		return nil, r.table.fail(err)
	}
	rule, index, ok, err := r.matched()
	if err != nil {
		return nil, err
	}
	if !ok && len(r.from.serves) > 0 {
		rule = r.from.serves[0] // chosen by name
	}
	there := func(rule servesRule) (from, to []string) {
		if r.result.Binding == HF {
			return rule.gguf, rule.modelTypes
		}
		return rule.modelTypes, rule.gguf
	}
	var list []declaredName
	add := func(rule servesRule, names ...string) {
		for _, n := range names {
			if d := (declaredName{rule, n}); !slices.ContainsFunc(list, func(x declaredName) bool { return x.name == n }) {
				list = append(list, d)
			}
		}
	}
	from, to := there(rule)
	if len(from) == len(to) && len(to) > 0 {
		add(rule, to[max(index, 0)])
	}
	add(rule, to...)
	for _, other := range r.from.serves {
		if from, to := there(other); len(list) == 0 || r.result.Binding == HF && slices.Contains(from, r.files.Architecture()) {
			add(other, to...)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("spec: %s: %w: it declares no %s for this family", r.s.fileName(), ErrRebind, map[string]string{GGUF: "GGUF architecture", HF: "model_type"}[r.result.Binding])
	}
	if r.result.Binding == GGUF {
		list = list[:1]
	}
	r.target(list[0])
	return list, nil
}

// declaredName is a name that a model has in the other binding, and the rule of it.
type declaredName struct {
	rule servesRule
	name string
}

// target chooses the model's name in the other binding.
func (r *rebinder) target(d declaredName) {
	r.rule = d.rule
	if r.result.Binding == GGUF {
		r.result.Architecture = d.name
	} else {
		r.result.ModelType = d.name
	}
}

// matched finds the serves(…) that fits the files, and which of its names does.
func (r *rebinder) matched() (rule servesRule, index int, ok bool, err error) {
	own := modelType(r.files)
	if r.files.Binding() == GGUF {
		own = r.files.Architecture()
	}
	for _, rule := range r.from.serves {
		strong, weak := r.from.fits(rule, r.files)
		if !strong && !weak {
			continue
		}
		if rule.when != nil {
			v, err := starlark.Call(r.from.thread, rule.when, starlark.Tuple{r.from.config.root()}, nil)
			if err != nil {
				return rule, 0, false, r.from.fail(err)
			}
			if !bool(v.Truth()) {
				continue
			}
		}
		names := rule.modelTypes
		if r.files.Binding() == GGUF {
			names = rule.gguf
		}
		return rule, slices.Index(names, own), true, nil
	}
	return rule, 0, false, nil
}
