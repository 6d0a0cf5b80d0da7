package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// servesRule is one serves(…) of a specification.
type servesRule struct {
	modelTypes, architectures, gguf []string
	when                            starlark.Callable
}

type builtinFunc = func(*tracer, string, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)

// builtin binds f to the tracer of the running thread.
func builtin(name string, f builtinFunc) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(th *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		t, err := current(th)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		v, err := f(t, name, args, kwargs)
		return v, named(name, err)
	})
}

// named puts the word before an error that names none, so that of a line with
// several words it is known which one it is of.
func named(name string, err error) error {
	if err == nil {
		return nil
	}
	if inside := (*starlark.EvalError)(nil); errors.As(err, &inside) {
		return err
	}
	if word, _, ok := strings.Cut(err.Error(), ": "); ok && !strings.Contains(word, " ") || strings.HasPrefix(err.Error(), name+" ") {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// strs unpacks a string or a list of strings.
type strs []string

func (s *strs) Unpack(v starlark.Value) error {
	list, err := stringList(v)
	*s = list
	return err
}

const docServes = `serves(model_type=[], architectures=[], gguf=[], when=None, quantized=[])
Which files the specification is for. It may stand more than once; one rule that fits is enough. A file passed with --spec is used whatever it says, with a
notice where no rule fits.
- model_type: a name or list of names of config.json's model_type. It goes before architectures.
- architectures: class names of config.json's architectures; they count only where no specification serves the model_type.
- gguf: names of general.architecture.
- when: a function of c that decides further, as lambda c: c.get("num_experts", 0) > 0.
- quantized: values of quant_method whose weights the specification itself knows how to read; a folder of another method that is not known anyway is refused.
Errors: two shipped specifications that fit the same files are an error that names both.
`

func doServes(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var modelTypes, architectures, gguf, quantized strs
	var when starlark.Callable
	err := starlark.UnpackArgs(name, args, kwargs, "model_type?", &modelTypes, "architectures?", &architectures, "gguf?", &gguf, "when?", &when, "quantized?", &quantized)
	if err != nil {
		return nil, err
	}
	t.methods = append(t.methods, quantized...)
	t.serves = append(t.serves, servesRule{modelTypes, architectures, gguf, when})
	return starlark.None, nil
}

const docNames = `names(gguf={}, hf={})
How the files name tensors: {the reference's name: the file's name, or a list of names that are tried in order}. A part in braces stands for a number:
"model.layers.{i}.mlp.up_proj". Without .weight or .bias an entry holds for both. The standard GGUF names are known (below); an entry here goes before them.
- gguf: names in GGUF files.
- hf: other names in the folder, as alias(names=…).
`

func doNames(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var gguf, hf *starlark.Dict
	if err := starlark.UnpackArgs(name, args, kwargs, "gguf?", &gguf, "hf?", &hf); err != nil {
		return nil, err
	}
	if gguf != nil && t.names.binding == GGUF {
		if err := t.names.entries.add(gguf); err != nil {
			return nil, err
		}
	}
	if hf != nil && t.names.binding == HF {
		if err := t.names.aliases.add(hf); err != nil {
			return nil, err
		}
	}
	return starlark.None, nil
}

const docAlias = `alias(names={}, prefix={})
Other names under which a folder may store a tensor; each is tried where the reference's own name is not stored.
- names: {pattern: pattern, or list of them}, with {i} for numbers.
- prefix: {beginning: other beginnings}, as {"model.": ["language_model.model.", ""]}.
`

func doAlias(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var table, prefix *starlark.Dict
	if err := starlark.UnpackArgs(name, args, kwargs, "names?", &table, "prefix?", &prefix); err != nil {
		return nil, err
	}
	if table != nil {
		if err := t.names.aliases.add(table); err != nil {
			return nil, err
		}
	}
	if prefix != nil && t.names.binding == HF {
		for _, item := range prefix.Items() {
			from, ok := starlark.AsString(item[0])
			alts, err := stringList(item[1])
			if !ok || err != nil {
				return nil, fmt.Errorf("alias: prefix is a dict of strings")
			}
			for _, to := range alts {
				t.names.prefixes = append(t.names.prefixes, [2]string{from, to})
			}
		}
	}
	return starlark.None, nil
}

const docWeights = `weights(gguf={}, hf={})
What the files changed in the values, undone at load: {pattern of the reference's name: function}. The function takes the stored weight, or the weight and c,
and returns the reference's: lambda w, c: unpermute(w, c.head_dim). A pattern without .weight or .bias holds for both.
- gguf: changes in GGUF files.
- hf: changes in the folder.
Errors: a block type (Q4_0, Q6_K and the like) can only have whole rows moved; a change of columns or of values is refused: branch on c.binding and do it to
the values instead.
`

func doWeights(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var gguf, hf *starlark.Dict
	if err := starlark.UnpackArgs(name, args, kwargs, "gguf?", &gguf, "hf?", &hf); err != nil {
		return nil, err
	}
	table := hf
	if t.names.binding == GGUF {
		table = gguf
	}
	if table == nil {
		return starlark.None, nil
	}
	for _, item := range table.Items() {
		pattern, ok := starlark.AsString(item[0])
		f, is := item[1].(starlark.Callable)
		if !ok || !is {
			return nil, fmt.Errorf("weights: expected {pattern: function of a weight}, got %s: %s", item[0].Type(), item[1].Type())
		}
		key, _ := generalise(pattern)
		t.changes[key] = f
	}
	return starlark.None, nil
}

const docGGUF = `gguf(config={}, override={}, write={}, shape={}, folder={}, fill={}, differs=None, aside=None)
What the GGUF metadata calls differently, or loses. Nothing here touches a folder; write and shape matter only where one is converted.
- config: {key of config.json: GGUF key without the architecture, or list of them}; keys of general meaning are known (below).
- override: {key of config.json: (value, "the reason")}. The value goes before the file's; it may be a function of c. The reason is shown by explain.
  It is passed over in a file that carries the model's config.json, as convert writes it.
- folder: {key of config.json: value, or function of c}: what config.json says that follows from GGUF's keys and tensors, for convert to a folder. None takes a key out, the text "null" writes null, which is not what a missing key means.
- differs: a function of c: how llama.cpp answers otherwise whatever the file says, or None; told where one is converted. False says that it answers alike, though
  the metadata alone would be read otherwise here.
- aside: a function of c: patterns of tensors (the reference's names) that llama.cpp has no room for in this model, or None; convert keeps them among the metadata.
- fill: {tensor (the reference's name): the tensor that it repeats; or a bias: 0, or (the tensor whose rows it is for, 0); or (a tensor of its layers, numbers or a function of c)}: what llama.cpp wants even where the model has none; convert then writes a copy, zeros or
  the numbers, which nothing here reads.
- write: {GGUF key without the architecture, or with a point before it where it has none: value, or function of c}: what llama.cpp wants to read beyond the known keys, for convert.
- shape: {a block's tensor, as "ssm_a": its sizes (-1: the rest), or function of c}: where llama.cpp wants another shape than the reference stores, for convert.
Errors: values of write without a form in GGUF, NaN among them, and None is not written; fill of a tensor that GGUF has no name for, or with other numbers than finite ones, at
most as many as the tensor beside it holds, and for its bias one a row; more than 1000 patterns of aside; differs that gives neither a text, None nor False.
`

// doGGUF says what the format's metadata calls differently or falsifies.
func doGGUF(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var config, overrides, write, shape, folder, fill *starlark.Dict
	var differs, aside starlark.Callable
	err := starlark.UnpackArgs(name, args, kwargs, "config?", &config, "override?", &overrides, "write?", &write, "shape?", &shape, "folder?", &folder, "differs?", &differs,
		"aside?", &aside, "fill?", &fill)
	if err != nil {
		return nil, err
	}
	t.asked.declared(t.line(), write, shape, folder, fill, differs, aside)
	if t.names.binding != GGUF {
		return starlark.None, nil
	}
	if config != nil {
		if err := t.mapKeys(config); err != nil {
			return nil, err
		}
	}
	if overrides == nil {
		return starlark.None, nil
	}
	for _, item := range overrides.Items() {
		key, ok := starlark.AsString(item[0])
		pair, is := item[1].(starlark.Tuple)
		if !ok || !is || len(pair) != 2 {
			return nil, fmt.Errorf("gguf: override is {key: (value, reason)}")
		}
		reason, ok := starlark.AsString(pair[1])
		if !ok || reason == "" {
			return nil, fmt.Errorf("gguf: override of %s needs a reason", key)
		}
		t.config.overrides[key] = override{pair[0], reason}
	}
	return starlark.None, nil
}

// mapKeys adds {config key: GGUF key without the architecture}.
func (t *tracer) mapKeys(config *starlark.Dict) error {
	meta, arch := t.files.Config(), t.files.Architecture()
	for _, item := range config.Items() {
		key, ok := starlark.AsString(item[0])
		alts, err := stringList(item[1])
		if !ok || err != nil {
			return fmt.Errorf("gguf: config is {key of config.json: GGUF key}")
		}
		t.asked.mapped(key, alts)
		for _, suffix := range alts {
			for _, full := range []string{arch + "." + suffix, suffix} {
				if v, ok := meta[full]; ok {
					put(t.config.data, key, collapse(v))
					t.config.origin[key] = full
				}
			}
		}
	}
	return nil
}

const docIgnore = `ignore(pattern, …)
Stored tensors that nothing needs to read. "*" stands for any characters, {i} for a number; a pattern without .weight or .bias
holds for both. "spec check" tells of patterns that fit nothing. Rotary buffers (*rotary_emb.inv_freq), position ids, token type
ids and masked_bias are ignored anyway. Any other tensor that the graph does not read is an error.
- pattern: a pattern or a list of patterns; any number of them.
`

func doIgnore(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(kwargs) > 0 {
		return nil, fmt.Errorf("ignore: takes patterns only")
	}
	for _, a := range args {
		list, err := stringList(a)
		if err != nil {
			return nil, fmt.Errorf("ignore: %w", err)
		}
		for _, p := range list {
			m, err := newMatcher(p)
			if err != nil {
				return nil, fmt.Errorf("ignore: %q: %w", p, err)
			}
			m.text = p
			t.ignores = append(t.ignores, m)
		}
	}
	return starlark.None, nil
}

const docChat = `chat(template="", end=[], tools="", reasoning="", developer=None, late_system=None, system=None)
What is special in the model's chat format.
- template: a Jinja template that replaces the files'.
- end: further tokens that end an answer, beside those that the files name.
- tools: name of the tool-call format.
- reasoning: name of the reasoning format.
- developer: what a message of the role developer becomes: "system", "user", or "keep". None: "keep", but "system" where the
  template refuses or drops it.
- late_system: what becomes of a system message that is not the first: "merge" (joined to the first, with a blank line between), "user" (a message of the user), or
  "keep" (given to the template as it is). None: "keep", but "merge" where the template refuses or drops it, which a trial rendering finds out.
- system: "user" joins system messages to the user's message that follows, for templates that refuse the role; "keep". None: as a trial rendering finds.
Errors: another word than these.
`

func doChat(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var end strs
	var developer, late, system starlark.Value
	c := &t.chat
	err := starlark.UnpackArgs(name, args, kwargs, "template?", &c.Template, "end?", &end, "tools?", &c.Tools, "reasoning?", &c.Reasoning,
		"developer?", &developer, "late_system?", &late, "system?", &system)
	c.EndTokens = append(c.EndTokens, end...)
	for _, o := range []struct {
		what  string
		v     starlark.Value
		into  *string
		words []string
	}{
		{"developer", developer, &c.Developer, []string{"keep", "system", "user"}}, {"late_system", late, &c.LateSystem, []string{"keep", "merge", "user"}},
		{"system", system, &c.System, []string{"keep", "user"}},
	} {
		if err != nil || isNone(o.v) {
			continue
		}
		s, ok := starlark.AsString(o.v)
		if !ok || !slices.Contains(o.words, s) {
			err = fmt.Errorf("chat: %s is one of %q or None, got %s", o.what, o.words, cut(o.v.String()))
		}
		*o.into = s
	}
	return starlark.None, err
}
