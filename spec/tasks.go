package spec

import (
	"fmt"

	"go.starlark.net/starlark"
)

// Task is something that an encoder-decoder was trained to do, and how its
// source and its answer begin. In all texts {from} and {to} stand for the
// languages that the task's name gives after a colon: translate:en-fr.
type Task struct {
	Name      string            // "translate", "summarize"
	Source    string            // template of the source's text; {text} is the user's
	First     string            // token that the answer begins with after the start token; "": the files' own
	SourceTag string            // token that marks the source's language; "": none
	Languages map[string]string // code of a language → its name in the templates; nil: any code as it stands
}

const docTasks = `tasks(**tasks)
Says what an encoder-decoder was trained to do: NAME = template of the source ("summarize: {text}"), or NAME = dict(source=, first=, source_tag=, languages=). A task
translate is asked for as translate:en-fr; {from} and {to} are the two languages in all of its texts.
- **tasks: by name. source: the template. first: the token that the answer begins with after the start token ("__{to}__"). source_tag: the token that stands for the
  source's language in the source ("__{from}__"). languages: {code: name in the texts}; without it a code stands for itself.
Errors: other keys, values that are no strings.
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
	fields := map[string]*string{"source": &x.Source, "first": &x.First, "source_tag": &x.SourceTag}
	for _, item := range d.Items() {
		key, _ := starlark.AsString(item[0])
		if f := fields[key]; f != nil {
			s, ok := starlark.AsString(item[1])
			if !ok {
				return fmt.Errorf("%s is a string, got %s", key, item[1].Type())
			}
			*f = s
			continue
		}
		list, ok := item[1].(*starlark.Dict)
		if key != "languages" || !ok {
			return fmt.Errorf("takes source, first, source_tag (strings) and languages (a dict), got %q: %s", key, item[1].Type())
		}
		x.Languages = map[string]string{}
		for _, l := range list.Items() {
			code, ok1 := starlark.AsString(l[0])
			name, ok2 := starlark.AsString(l[1])
			if !ok1 || !ok2 {
				return fmt.Errorf("languages is a dict of strings")
			}
			x.Languages[code] = name
		}
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
