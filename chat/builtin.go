package chat

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed builtin/*.jinja
var builtins embed.FS

// PlainName is the built-in template for models that bring none: a line
// "role: content" for each message, then "assistant:". Models that were not
// trained to chat go on with such a text sensibly; it has no special tokens.
const PlainName = "plain"

// Builtin gives the source of a template by the name that model files use for
// it in place of a template ("chatml" is one). The error lists the names.
func Builtin(name string) (string, error) {
	if strings.ContainsAny(name, "/\\{") {
		return "", fmt.Errorf("chat: %.40q is not the name of a template", name)
	}
	raw, err := builtins.ReadFile("builtin/" + name + ".jinja")
	if err != nil {
		return "", fmt.Errorf("chat: there is no built-in template %.40q: the names are %s", name, strings.Join(BuiltinNames(), ", "))
	}
	return string(raw), nil
}

// BuiltinNames lists the built-in templates in alphabetical order.
func BuiltinNames() []string {
	entries, err := builtins.ReadDir("builtin")
	if err != nil {
		return nil // cannot be: the folder is part of the binary
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".jinja")
	}
	return names
}

// ParseAny is Parse, but a source that is nothing but the name of a built-in
// template stands for that template, and an empty one for the plain template.
func ParseAny(source string, o Options) (*Template, error) {
	name := strings.TrimSpace(source)
	if name == "" {
		name = PlainName
	}
	if !strings.ContainsAny(name, "{ \n") {
		text, err := Builtin(name)
		if err != nil {
			return nil, err
		}
		source = text
	}
	return Parse(source, o)
}
