package spec

import (
	"fmt"

	"go.starlark.net/starlark"
)

// Task is something that an encoder-decoder was trained to do, and how its
// source and its answer begin. In all texts {from} and {to} stand for the
// languages that are named after a colon: translate:en-fr.
type Task struct {
	Name      string              // "translate", "summarize"
	Source    string              // template of the source's text; {text} is the user's
	First     []string            // token that the answer begins with after the start token: the first of these that the vocabulary has
	SourceTag []string            // token that stands before the source, likewise
	Languages map[string][]string // code of a language → what {from} and {to} may become, in order of preference
}

const docTasks = `tasks(**tasks)
Says what an encoder-decoder was trained to do: NAME = template of the source ("summarize: {text}"), or NAME = dict(source=, first=, source_tag=, languages=). A task
translate is asked for as translate:en-fr; {from} and {to} are the two languages in all of its texts. What a folder's task_specific_params say goes before.
- **tasks: by name. source: the template. first: the token that the answer begins with after the start token, or a list of which the first counts that the
  vocabulary has (["__{to}__", "{to}"]). source_tag: the same for the token that stands before the source. languages: {code: name, or list of names}; where tokens
  are named, a code that is not listed stands for itself.
Errors: other keys, values that are no strings or lists of them.
`

// doTasks declares tasks by name: templates of the source, or a dict of source,
// first, source_tag and languages.
func doTasks(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		return nil, fmt.Errorf("tasks: takes NAME = template or NAME = dict(…)")
	}
	for _, kw := range kwargs {
		task := Task{Name: string(kw[0].(starlark.String)), Source: "{text}"}
		switch v := kw[1].(type) {
		case starlark.String:
			task.Source = string(v)
		case *starlark.Dict:
			if err := task.read(v); err != nil {
				return nil, fmt.Errorf("tasks: %s: %w", task.Name, err)
			}
		default:
			return nil, fmt.Errorf("tasks: %s is a template or a dict, got %s", task.Name, v.Type())
		}
		t.tasks = append(t.tasks, task)
	}
	return starlark.None, nil
}

func (x *Task) read(d *starlark.Dict) error {
	for _, item := range d.Items() {
		key, _ := starlark.AsString(item[0])
		var err error
		switch key {
		case "source":
			var ok bool
			if x.Source, ok = starlark.AsString(item[1]); !ok {
				err = fmt.Errorf("got %s, want a string", item[1].Type())
			}
		case "first":
			x.First, err = stringList(item[1])
		case "source_tag":
			x.SourceTag, err = stringList(item[1])
		case "languages":
			err = x.readLanguages(item[1])
		default:
			err = fmt.Errorf("is none of source, first, source_tag, languages")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func (x *Task) readLanguages(v starlark.Value) error {
	list, ok := v.(*starlark.Dict)
	if !ok {
		return fmt.Errorf("got %s, want a dict", v.Type())
	}
	x.Languages = map[string][]string{}
	for _, l := range list.Items() {
		code, ok := starlark.AsString(l[0])
		names, err := stringList(l[1])
		if !ok || err != nil || len(names) == 0 {
			return fmt.Errorf("a code and its names are strings")
		}
		x.Languages[code] = names
	}
	return nil
}

const docGeneration = `generation(**settings)
Says what missing keys of generation_config.json mean for an encoder-decoder, as the defaults of the reference's configuration class do: decoder_start_token_id = 2.
- **settings: by the keys of generation_config.json.
Errors: values that are no numbers, strings, True, False or None.
`

// doGeneration declares what missing keys of generation_config.json mean.
func doGeneration(t *tracer, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		return nil, fmt.Errorf("generation: takes key = value")
	}
	for _, kw := range kwargs {
		if t.generation == nil {
			t.generation = map[string]any{}
		}
		key := string(kw[0].(starlark.String))
		switch v := plain(kw[1]).(type) {
		case nil, bool, string, float64:
			t.generation[key] = v
		case int64:
			t.generation[key] = float64(v)
		default:
			return nil, fmt.Errorf("generation: %s is a number, a string, True, False or None, got %s", key, kw[1].Type())
		}
	}
	return starlark.None, nil
}
