package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/inferflow/inferflow/internal/near"
)

// missingLoad is the first name that a load statement asks of a module of the
// standard library which lacks it, as an error; nil where there is none. It is told before all else, as
// names are undefined only for it.
func missingLoad(source, file string) error {
	f, err := fileOptions.Parse(file, source, 0)
	if err != nil {
		return nil
	}
	for _, stmt := range f.Stmts {
		load, ok := stmt.(*syntax.LoadStmt)
		if !ok {
			continue
		}
		m, err := loadStd(nil, load.ModuleName())
		if err != nil {
			return fmt.Errorf("%s: %w", load.Load, err)
		}
		for _, id := range load.From {
			if _, ok := m[id.Name]; !ok {
				return fmt.Errorf("%s: %s has no %s%s", id.NamePos, load.ModuleName(), id.Name, near.Hint(id.Name, m.Keys()))
			}
		}
	}
	return nil
}

// undefined tells of a name that nothing defines which one was meant: a word of
// another library, a function of the standard library that is not loaded, else
// the nearest that the interpreter or the language knows.
func undefined(e resolve.Error) error {
	rest, ok := strings.CutPrefix(e.Msg, "undefined: ")
	if !ok {
		return e
	}
	name, local, _ := strings.Cut(rest, " (did you mean ")
	local = strings.TrimSuffix(local, "?)")
	hint := ""
	if word := otherWords[name]; word != "" {
		hint = " (" + word + ")"
	} else if module := definedIn(name); module != "" {
		hint = fmt.Sprintf(" (it is in the standard library: load(%q, %q))", module, name)
	} else {
		words := slices.Concat(slices.Sorted(maps.Keys(predeclared)), slices.Sorted(maps.Keys(starlark.Universe)))
		if local != "" {
			words = append(words, local)
		}
		meant := near.Name(name, words)
		if meant == "" {
			meant = local
		}
		if meant != "" {
			hint = " (did you mean " + meant + "?)"
		}
	}
	return fmt.Errorf("%s: undefined: %s%s", e.Pos, name, hint)
}

// definedIn is the module of the standard library that has a name, "" if none.
func definedIn(name string) string {
	for _, module := range stdNames() {
		if m, err := loadStd(nil, module); err == nil && m.Has(name) {
			return module
		}
	}
	return ""
}
