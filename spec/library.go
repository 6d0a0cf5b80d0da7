package spec

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

//go:embed library/*.star std/*.star
var sources embed.FS

// Library lists the shipped specifications by name, sorted.
func Library() []string {
	entries, err := sources.ReadDir("library")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".star"))
	}
	slices.Sort(names)
	return names
}

// librarySource is the text of a shipped specification.
func librarySource(name string) (string, error) {
	if src, ok := librarySources()[name]; ok {
		return src, nil
	}
	return "", fs.ErrNotExist
}

// librarySources are the texts of all shipped specifications, read once: the
// choice of one looks into each.
var librarySources = sync.OnceValue(func() map[string]string {
	texts := map[string]string{}
	for _, name := range Library() {
		if b, err := sources.ReadFile("library/" + name + ".star"); err == nil {
			texts[name] = string(b)
		}
	}
	return texts
})

// The language: no while, no recursion, no reassignment of globals.
var fileOptions = &syntax.FileOptions{}

const stdPrefix = "@std/"

// std keeps the modules of the standard library, which are frozen and so
// shared by all traces: their functions find the trace by the thread.
var std struct {
	sync.Mutex
	modules map[string]starlark.StringDict
}

// loadStd runs load("@std/NAME"); nothing else can be loaded.
func loadStd(_ *starlark.Thread, module string) (starlark.StringDict, error) {
	std.Lock()
	defer std.Unlock()
	if std.modules == nil {
		std.modules = map[string]starlark.StringDict{}
	}
	l := &stdLoader{modules: std.modules, read: func(name string) ([]byte, error) { return sources.ReadFile("std/" + name) }}
	return l.load(nil, module)
}

// stdLoader runs files of the standard library, which may load each other, but
// not in a circle.
type stdLoader struct {
	modules map[string]starlark.StringDict
	open    []string // being run, each loaded by the one before it
	read    func(name string) ([]byte, error)
}

func (l *stdLoader) load(_ *starlark.Thread, module string) (starlark.StringDict, error) {
	name, ok := strings.CutPrefix(module, stdPrefix)
	if !ok || path.Base(name) != name {
		return nil, fmt.Errorf("load: %q: only the standard library can be loaded: %s", module, strings.Join(stdNames(), ", "))
	}
	if m, ok := l.modules[module]; ok {
		return m, nil
	}
	if slices.Contains(l.open, module) {
		return nil, fmt.Errorf("load: files of the standard library load each other in a circle: %s", strings.Join(append(l.open, module), " → "))
	}
	src, err := l.read(name)
	if err != nil {
		return nil, fmt.Errorf("load: there is no %q; there are %s", module, strings.Join(stdNames(), ", "))
	}
	l.open = append(l.open, module)
	defer func() { l.open = l.open[:len(l.open)-1] }()
	m, err := starlark.ExecFileOptions(fileOptions, &starlark.Thread{Name: module, Load: l.load}, module, src, predeclared)
	if err != nil {
		return nil, err
	}
	m.Freeze()
	l.modules[module] = m
	return m, nil
}

func stdNames() []string {
	entries, _ := sources.ReadDir("std")
	var names []string
	for _, e := range entries {
		names = append(names, stdPrefix+e.Name())
	}
	return names
}
