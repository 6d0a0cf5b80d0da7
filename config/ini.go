// Package config reads the serving configuration of the C++ Inferflow: its .ini
// files with macros, model sections, prompt templates and query lists, with
// their documented meaning. It knows no models and imports nothing of the
// project. Read Service first, then INI.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Errors that callers tell apart.
var (
	ErrSyntax = errors.New("the file is no configuration")
	ErrValue  = errors.New("the value cannot be used")
)

// Limits of a file; hand-written ones are far below.
const (
	maxFile   = 16 << 20
	maxValue  = 1 << 20 // bytes of a value after its macros are filled in
	maxDepth  = 32      // macros inside macros
	maxMacros = 10000   // macros that are filled in for one value, those inside others too
)

// INI is a parsed file: sections of keys, in the order of the file.
type INI struct {
	Path     string
	sections []*Section
	byName   map[string]*Section
}

// Section is a part of a file under [Name]; keys before the first one stand in "".
type Section struct {
	Name string
	Line int
	keys []Entry
	at   map[string]int
}

// Entry is one line KEY = VALUE. Value is as written; macros are not filled in.
type Entry struct {
	Key, Value string
	Line       int
}

// located says where in the file an error lies, unless it says so itself.
func (f *INI) located(where string, err error) error {
	if strings.HasPrefix(err.Error(), "config: "+f.Path+":") {
		return err
	}
	return fmt.Errorf("config: %s: %s: %w", f.Path, where, err)
}

// kindError refuses a file of another kind than was asked for.
type kindError string

func (e kindError) Error() string { return string(e) }

// Unwrap makes it an ErrSyntax.
func (e kindError) Unwrap() error { return ErrSyntax }

// ReadINI reads a file. It fails with ErrSyntax where a line is neither a
// comment (; or # at its beginning), a section nor a key.
func ReadINI(path string) (*INI, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("config: %s is no regular file of at most %d MiB", path, maxFile>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return ParseINI(path, data)
}

// ParseINI parses the text of a file; path stands in messages and macros.
func ParseINI(path string, data []byte) (*INI, error) {
	f := &INI{Path: path, byName: map[string]*Section{}}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("config: %s: %w: it is not UTF-8", path, ErrSyntax)
	}
	s := f.section("", 0)
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == ';' || line[0] == '#':
		case line[0] == '[':
			name, rest, ok := strings.Cut(line[1:], "]")
			if !ok || strings.TrimSpace(rest) != "" || strings.TrimSpace(name) == "" {
				return nil, fmt.Errorf("config: %s:%d: %w: %q is no [section]", path, i+1, ErrSyntax, clip(line))
			}
			s = f.section(strings.TrimSpace(name), i+1)
		default:
			key, value, ok := strings.Cut(line, "=")
			if key = strings.TrimSpace(key); !ok || key == "" {
				return nil, fmt.Errorf("config: %s:%d: %w: %q is neither KEY = VALUE, a [section] nor a comment", path, i+1, ErrSyntax, clip(line))
			}
			s.put(Entry{key, strings.TrimSpace(value), i + 1})
		}
	}
	return f, nil
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

func (f *INI) section(name string, line int) *Section {
	if s := f.byName[name]; s != nil {
		return s
	}
	s := &Section{Name: name, Line: line, at: map[string]int{}}
	f.sections = append(f.sections, s)
	f.byName[name] = s
	return s
}

// put adds an entry; a key that is given twice has its last value.
func (s *Section) put(e Entry) {
	if i, ok := s.at[e.Key]; ok {
		s.keys[i] = e
		return
	}
	s.at[e.Key] = len(s.keys)
	s.keys = append(s.keys, e)
}

// Section finds a section by name; nil if there is none.
func (f *INI) Section(name string) *Section { return f.byName[name] }

// Sections lists those whose name begins with a prefix, in order.
func (f *INI) Sections(prefix string) (list []*Section) {
	for _, s := range f.sections {
		if strings.HasPrefix(s.Name, prefix) {
			list = append(list, s)
		}
	}
	return list
}

// Entries lists the keys of a section in order.
func (s *Section) Entries() []Entry {
	if s == nil {
		return nil
	}
	return s.keys
}

// Raw finds a key of a section.
func (s *Section) Raw(key string) (Entry, bool) {
	if s == nil {
		return Entry{}, false
	}
	i, ok := s.at[key]
	if !ok {
		return Entry{}, false
	}
	return s.keys[i], true
}

// Text is a key's value with its macros filled in; ok is false where it is
// missing. Macros are ${x} and $(x): a name of extra, config_dir, app_dir,
// app_name, run_name, data_root_dir, a key of the same section or of [main],
// or SECTION/KEY.
func (f *INI) Text(s *Section, key string, extra map[string]string) (v string, ok bool, err error) {
	e, ok := s.Raw(key)
	if !ok {
		return "", false, nil
	}
	x := &expansion{f: f, extra: extra, open: map[string]bool{s.Name + "/" + key: true}}
	v, err = x.expand(e.Value, s)
	if err == nil && len(v) > maxValue {
		err = fmt.Errorf("%w: it has more than %d bytes", ErrValue, maxValue)
	}
	if err != nil {
		err = fmt.Errorf("config: %s:%d: %s: %w", f.Path, e.Line, key, err)
	}
	return v, true, err
}

// expansion fills in the macros of one value.
type expansion struct {
	f     *INI
	extra map[string]string
	open  map[string]bool // keys whose values are being filled in
	count int
}

func (x *expansion) expand(v string, s *Section) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(v, '$')
		if i < 0 || i+1 >= len(v) {
			b.WriteString(v)
			return b.String(), nil
		}
		end := map[byte]byte{'{': '}', '(': ')'}[v[i+1]]
		if end == 0 {
			b.WriteString(v[:i+1])
			v = v[i+1:]
			continue
		}
		n := strings.IndexByte(v[i:], end)
		if n < 0 {
			return "", fmt.Errorf("%w: the macro %q is not closed", ErrValue, clip(v[i:]))
		}
		if x.count++; x.count > maxMacros {
			return "", fmt.Errorf("%w: it takes more than %d macros", ErrValue, maxMacros)
		}
		filled, err := x.macro(v[i+2:i+n], s)
		if err != nil {
			return "", err
		}
		b.WriteString(v[:i])
		b.WriteString(filled)
		if b.Len() > maxValue {
			return "", fmt.Errorf("%w: its macros grow beyond %d bytes", ErrValue, maxValue)
		}
		v = v[i+n+1:]
	}
}

func (x *expansion) macro(name string, s *Section) (string, error) {
	f := x.f
	if v, ok := x.extra[name]; ok {
		return v, nil
	}
	if v, ok := f.given(name); ok {
		return v, nil
	}
	where := s
	key := name
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		where, key = f.Section(name[:i]), name[i+1:]
	} else if _, ok := s.Raw(key); !ok {
		where = f.Section("main")
		if _, ok := where.Raw(key); !ok {
			where = f.Section("app_env.base")
		}
	}
	e, ok := where.Raw(key)
	if !ok {
		if name == "data_root_dir" {
			return f.dir(), nil
		}
		return "", fmt.Errorf("%w: the macro ${%s} is defined nowhere", ErrValue, clip(name))
	}
	id := where.Name + "/" + key
	if x.open[id] {
		return "", fmt.Errorf("%w: the macro ${%s} leads back to itself", ErrValue, clip(name))
	}
	if len(x.open) > maxDepth {
		return "", fmt.Errorf("%w: the macro ${%s} lies more than %d macros deep", ErrValue, clip(name), maxDepth)
	}
	x.open[id] = true
	defer delete(x.open, id)
	return x.expand(e.Value, where)
}

// given are the macros that the program itself defines.
func (f *INI) given(name string) (string, bool) {
	switch name {
	case "config_dir":
		return f.dir(), true
	case "app_dir":
		exe, err := os.Executable()
		if err != nil {
			return "", false
		}
		return filepath.Dir(exe) + "/", true
	case "app_name", "run_name":
		base := filepath.Base(f.Path)
		return strings.TrimSuffix(base, filepath.Ext(base)), true
	}
	return "", false
}

// dir is the folder of the file, with a slash at its end.
func (f *INI) dir() string {
	dir := filepath.ToSlash(filepath.Dir(f.Path))
	return strings.TrimSuffix(dir, "/") + "/"
}
