package spec

import (
	"embed"
	"fmt"
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
	b, err := sources.ReadFile("library/" + name + ".star")
	return string(b), err
}

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
	name, ok := strings.CutPrefix(module, stdPrefix)
	if !ok || path.Base(name) != name {
		return nil, fmt.Errorf("load: %q: only the standard library can be loaded: %s", module, strings.Join(stdNames(), ", "))
	}
	std.Lock()
	defer std.Unlock()
	if m, ok := std.modules[module]; ok {
		return m, nil
	}
	src, err := sources.ReadFile("std/" + name)
	if err != nil {
		return nil, fmt.Errorf("load: there is no %q; there are %s", module, strings.Join(stdNames(), ", "))
	}
	thread := &starlark.Thread{Name: module, Load: func(*starlark.Thread, string) (starlark.StringDict, error) {
		return nil, fmt.Errorf("load: the standard library's files load nothing")
	}}
	m, err := starlark.ExecFileOptions(fileOptions, thread, module, src, predeclared)
	if err != nil {
		return nil, err
	}
	m.Freeze()
	if std.modules == nil {
		std.modules = map[string]starlark.StringDict{}
	}
	std.modules[module] = m
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
