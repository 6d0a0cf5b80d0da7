package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Template is a prompt in Inferflow's template language: text with keys in
// braces. Parts before the answer's place are the prompt; what stands behind
// it closes a turn.
type Template struct{ Parts []Part }

// PartKind says what a part of a template is.
type PartKind uint8

// The kinds of parts.
const (
	PartText   PartKind = iota // Text as it stands
	PartQuery                  // the user's text; Space: with a blank in front
	PartSystem                 // the system prompt
	PartAnswer                 // the answer, or its given beginning
	PartToken                  // the vocabulary's token named Text: bos, eos, user_token, … or itself
	PartID                     // the token with number ID
)

// Part is one piece of a template.
type Part struct {
	Kind  PartKind
	Text  string
	Space bool
	ID    int
}

// ParseTemplate reads a template. It must have a place for the query.
// Keys: {system_prompt}, {query} or {question}, with an underscore in front for
// a leading blank, {res_prefix} or {answer}, {bos} {eos} {user_token}
// {assistant_token}, {#id}, {\n}; any other {x} is the token x.
func ParseTemplate(v string) (*Template, error) {
	t, err := ParseFrame(v)
	if err == nil && !t.Has(PartQuery) {
		return nil, fmt.Errorf("prompt_template: %w: it has no place for the {query}", ErrValue)
	}
	return t, err
}

// Has says whether the template has a part of a kind.
func (t *Template) Has(kind PartKind) bool {
	return slices.ContainsFunc(t.Parts, func(p Part) bool { return p.Kind == kind })
}

// ParseFrame is ParseTemplate for what need not have a place for the query: the
// beginning of what the decoder of an encoder-decoder says.
func ParseFrame(v string) (*Template, error) {
	t := &Template{}
	for keys := 0; v != ""; keys++ {
		if keys > maxParts {
			return nil, fmt.Errorf("prompt_template: %w: it has more than %d keys", ErrValue, maxParts)
		}
		i := strings.IndexByte(v, '{')
		end := -1
		if i >= 0 {
			end = strings.IndexByte(v[i:], '}')
		}
		if end < 0 {
			t.text(v)
			break
		}
		t.text(v[:i])
		key := v[i+1 : i+end]
		v = v[i+end+1:]
		if err := t.key(key); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// maxParts bounds the keys of a template.
const maxParts = 4096

func (t *Template) text(s string) {
	if s == "" {
		return
	}
	if n := len(t.Parts); n > 0 && t.Parts[n-1].Kind == PartText {
		t.Parts[n-1].Text += s
		return
	}
	t.Parts = append(t.Parts, Part{Kind: PartText, Text: s})
}

func (t *Template) key(key string) error {
	p := Part{}
	switch key {
	case "system_prompt":
		p.Kind = PartSystem
	case "query", "question", "_query", "_question":
		p.Kind, p.Space = PartQuery, key[0] == '_'
	case "res_prefix", "answer":
		p.Kind = PartAnswer
	case `\n`:
		t.text("\n")
		return nil
	case " ", "":
		t.text(key)
		if key == "" {
			t.text("{}")
		}
		return nil
	default:
		if id, ok := strings.CutPrefix(key, "#"); ok {
			n, err := strconv.ParseUint(id, 10, 31)
			if err != nil {
				return fmt.Errorf("prompt_template: %w: {%s} is no token number", ErrValue, clip(key))
			}
			p.Kind, p.ID = PartID, int(n)
			break
		}
		p.Kind, p.Text = PartToken, key
	}
	t.Parts = append(t.Parts, p)
	return nil
}

// maxLines bounds line_count of a named template.
const maxLines = 1 << 12

// template is ParseTemplate for a value that may be the name of one: a string
// without a brace names [prompt_template.NAME], whose lines are joined.
func (f *INI) template(v string, parse func(string) (*Template, error)) (*Template, error) {
	if strings.Contains(v, "{") || v == "" {
		return parse(v)
	}
	s := f.Section("prompt_template." + v)
	if s == nil {
		return nil, fmt.Errorf("prompt_template: %w: %q has no {query}, and there is no section [prompt_template.%s]", ErrValue, clip(v), clip(v))
	}
	lines, err := f.numbered(s, "line_count", "line", maxLines)
	if err != nil {
		return nil, err
	}
	return parse(strings.Join(lines, "\n"))
}

// Jinja writes the template as a chat template: a turn for each question, the
// system prompt where the template has its place, or before the first question
// where it has none. token gives the text of a named token, id that of a number.
func (t *Template) Jinja(token func(name string) (string, bool), id func(n int) (string, bool)) (string, error) {
	before, after, err := t.sides(token, id)
	if err != nil {
		return "", err
	}
	hasSystem := t.Has(PartSystem)
	ns := "{%- set ns = namespace(system='', open=false) -%}"
	var b strings.Builder
	b.WriteString(ns)
	b.WriteString("{%- for m in messages -%}{%- if m['role'] in ['system', 'developer'] -%}")
	b.WriteString("{%- set ns.system = (ns.system + '\\n' if ns.system else '') + m['content'] -%}")
	b.WriteString("{%- elif m['role'] == 'user' -%}{%- set query = m['content'] -%}")
	if !hasSystem {
		b.WriteString("{%- if ns.system -%}{%- set query = ns.system + '\\n' + query -%}{%- endif -%}")
	}
	b.WriteString(before)
	b.WriteString("{%- set ns.system = '' -%}{%- set ns.open = true -%}")
	b.WriteString("{%- elif m['role'] == 'assistant' -%}{{- m['content'] -}}")
	b.WriteString("{%- if not loop.last or add_generation_prompt -%}" + after + "{%- endif -%}{%- set ns.open = false -%}")
	b.WriteString("{%- else -%}{{- raise_exception('the role ' + m['role'] + ' has no place in this prompt template') -}}{%- endif -%}{%- endfor -%}")
	return b.String(), nil
}

// sides are the expressions before the answer's place and behind it.
func (t *Template) sides(token func(string) (string, bool), id func(int) (string, bool)) (before, after string, err error) {
	out := &before
	for _, p := range t.Parts {
		s := ""
		switch p.Kind {
		case PartText:
			s = quote(p.Text)
		case PartQuery:
			s = "query"
			if p.Space {
				s = "' ' + query"
			}
		case PartSystem:
			s = "ns.system"
		case PartAnswer:
			out = &after
			continue
		case PartToken:
			text, ok := token(p.Text)
			if !ok {
				return "", "", fmt.Errorf("prompt_template: %w: the vocabulary has no token {%s}", ErrValue, clip(p.Text))
			}
			s = quote(text)
		case PartID:
			text, ok := id(p.ID)
			if !ok {
				return "", "", fmt.Errorf("prompt_template: %w: the vocabulary has no token {#%d}", ErrValue, p.ID)
			}
			s = quote(text)
		}
		*out += "{{- " + s + " -}}"
	}
	return before, after, nil
}

// quote writes a string as Jinja does.
func quote(s string) string {
	r := strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`)
	return "'" + r.Replace(s) + "'"
}
