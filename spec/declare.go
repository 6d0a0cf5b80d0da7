package spec

import (
	"fmt"

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
		return f(t, name, args, kwargs)
	})
}

// strs unpacks a string or a list of strings.
type strs []string

func (s *strs) Unpack(v starlark.Value) error {
	list, err := stringList(v)
	*s = list
	return err
}

func doServes(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var modelTypes, architectures, gguf strs
	var when starlark.Callable
	err := starlark.UnpackArgs(name, args, kwargs, "model_type?", &modelTypes, "architectures?", &architectures, "gguf?", &gguf, "when?", &when)
	if err != nil {
		return nil, err
	}
	t.serves = append(t.serves, servesRule{modelTypes, architectures, gguf, when})
	return starlark.None, nil
}

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

// doGGUF says what the format's metadata calls differently or falsifies.
func doGGUF(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var config, overrides *starlark.Dict
	if err := starlark.UnpackArgs(name, args, kwargs, "config?", &config, "override?", &overrides); err != nil {
		return nil, err
	}
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
			t.ignores = append(t.ignores, m)
		}
	}
	return starlark.None, nil
}

func doChat(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var end strs
	c := &t.chat
	err := starlark.UnpackArgs(name, args, kwargs, "template?", &c.Template, "end?", &end, "tools?", &c.Tools, "reasoning?", &c.Reasoning)
	c.EndTokens = append(c.EndTokens, end...)
	return starlark.None, err
}
