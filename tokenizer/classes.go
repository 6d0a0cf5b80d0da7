package tokenizer

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed data/classes.json
var classData []byte

// class says how the files of a folder without tokenizer.json are read; data/classes.json explains the fields.
type class struct {
	Like         string                     `json:"like"`
	Note         string                     `json:"note"`
	Set          map[string]json.RawMessage `json:"set"`
	AddBOS       *bool                      `json:"add_bos"`
	Prefix       []string                   `json:"prefix"`
	Suffix       []string                   `json:"suffix"`
	Normalizer   json.RawMessage            `json:"normalizer"`
	PreTokenizer json.RawMessage            `json:"pre_tokenizer"`
	Model        json.RawMessage            `json:"model"`
	Decoder      json.RawMessage            `json:"decoder"`
	Layout       []any                      `json:"layout"`
	ByText       bool                       `json:"by_text"`
	Start        []string                   `json:"start"` // tokens that begin and end so are looked for at the beginning of a text
}

// rankFile is a kind of tiktoken file.
type rankFile struct {
	Names      []string                   `json:"names"`
	Ranks      int                        `json:"ranks"`
	Split      string                     `json:"split"`
	Normalizer json.RawMessage            `json:"normalizer"`
	Tokens     []rankTokens               `json:"tokens"`
	Set        map[string]json.RawMessage `json:"set"`
	AddBOS     *bool                      `json:"add_bos"`
	Prefix     []string                   `json:"prefix"`
}

// rankTokens are texts with ids from the first on.
type rankTokens struct {
	first int32
	texts []string
}

// UnmarshalJSON reads [first, [texts]].
func (t *rankTokens) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&t.first, &t.texts})
}

type classTable struct {
	Defaults map[string]string   `json:"defaults"`
	Classes  map[string]*class   `json:"classes"`
	Models   map[string][]string `json:"models"`
	Tiktoken []rankFile          `json:"tiktoken"`
}

// classes reads the table once.
var classes = sync.OnceValues(func() (*classTable, error) {
	t := &classTable{}
	if err := json.Unmarshal(classData, t); err != nil {
		return nil, fmt.Errorf("tokenizer: data/classes.json: %w", err)
	}
	for name := range t.Classes {
		if err := t.inherit(name, 0); err != nil {
			return nil, err
		}
	}
	return t, nil
})

// inherit fills in what a class has from the one that it is like.
func (t *classTable) inherit(name string, depth int) error {
	c := t.Classes[name]
	if c == nil || depth > 8 {
		return fmt.Errorf("tokenizer: data/classes.json: no class %q", name)
	}
	if c.Like == "" {
		return nil
	}
	if err := t.inherit(c.Like, depth+1); err != nil {
		return err
	}
	from := t.Classes[c.Like]
	set := maps.Clone(from.Set)
	if set == nil {
		set = map[string]json.RawMessage{}
	}
	maps.Copy(set, c.Set)
	c.Set, c.Like = set, ""
	for _, p := range []struct{ to, from *json.RawMessage }{{&c.Normalizer, &from.Normalizer}, {&c.PreTokenizer, &from.PreTokenizer},
		{&c.Model, &from.Model}, {&c.Decoder, &from.Decoder}} {
		if *p.to == nil {
			*p.to = *p.from
		}
	}
	if c.Prefix == nil && c.Suffix == nil {
		c.Prefix, c.Suffix = from.Prefix, from.Suffix
	}
	if c.AddBOS == nil {
		c.AddBOS = from.AddBOS
	}
	if c.Layout == nil {
		c.Layout, c.ByText, c.Start = from.Layout, from.ByText, from.Start
	}
	return nil
}

// settings are the values that a class, and the files of a folder after it, give to names: tokens with a role, flags, languages.
type settings map[string]json.RawMessage

// text returns a value as text: a string, the content of a token, a number; "" for null.
func (s settings) text(name string) string {
	raw := s[name]
	var t tokenJSON
	if json.Unmarshal(raw, &t) == nil {
		return string(t)
	}
	return strings.Trim(string(raw), `"`)
}

func (s settings) flag(name string, otherwise bool) bool {
	var b bool
	if json.Unmarshal(s[name], &b) != nil {
		return otherwise
	}
	return b
}

var placeholder = regexp.MustCompile(`\$\{([a-z_]+)\}`)

// fill writes the values into text.
func (s settings) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(m string) string { return s.text(m[2 : len(m)-1]) })
}

// step writes the values into a part of a tokenizer.json; steps with an "if" that is false or an "unless" that is true are left out.
func (s settings) step(raw json.RawMessage) (string, error) {
	if raw == nil {
		return "", nil
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return "", err
	}
	out, err := json.Marshal(s.walk(tree))
	return string(out), err
}

func (s settings) walk(tree any) any {
	switch v := tree.(type) {
	case string:
		if m := placeholder.FindStringSubmatch(v); m != nil && m[0] == v {
			var value any
			if json.Unmarshal(s[m[1]], &value) != nil {
				return nil
			}
			if object, ok := value.(map[string]any); ok { // a token with flags
				return object["content"]
			}
			return value
		}
		return s.fill(v)
	case []any:
		return slices.DeleteFunc(s.each(v), func(x any) bool { return x == nil })
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = s.walk(x)
		}
		if out["if"] == false || out["unless"] == true {
			return nil
		}
		delete(out, "if")
		delete(out, "unless")
		return out
	}
	return tree
}

func (s settings) each(list []any) []any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = s.walk(x)
	}
	return out
}

var counted = regexp.MustCompile(`\{(\d+)(?:-(\d+))?\.\.(\d+)(?:-(\d+))?\}`)

// maxCounted bounds the texts that a pattern of a layout stands for: a folder's settings may have a say in it.
const maxCounted = 1 << 16

// expand returns the texts that one of a layout stands for: {a..b} counts up or down.
func (s settings) expand(text string) ([]string, error) {
	text = s.fill(text)
	at := counted.FindStringSubmatchIndex(text)
	if at == nil {
		return []string{text}, nil
	}
	number := func(group int) int {
		if at[2*group] < 0 {
			return 0
		}
		n, _ := strconv.Atoi(text[at[2*group]:at[2*group+1]])
		return n
	}
	from, to := number(1)-number(2), number(3)-number(4)
	if max(from-to, to-from) > maxCounted {
		return nil, fmt.Errorf("%w: %.60q stands for more than %d tokens", ErrInvalid, text, maxCounted)
	}
	var out []string
	step := 1
	if to < from {
		step = -1
	}
	if to == -1 { // of no tokens
		return nil, nil
	}
	for n := from; ; n += step {
		if n >= 0 {
			out = append(out, text[:at[0]]+strconv.Itoa(n)+text[at[1]:])
		}
		if n == to {
			return out, nil
		}
	}
}
