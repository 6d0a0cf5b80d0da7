package spec

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// nameTable maps the reference's tensor names to those of the files. Patterns
// have placeholders in braces for numbers: "model.layers.{i}.mlp.gate_proj".
type nameTable struct {
	binding  string
	entries  nameMap     // the files' names
	aliases  nameMap     // other names in the reference's style
	prefixes [][2]string // alternative beginnings

	stored []string     // the files' names, by which beginnings are left out that none has
	joined []respelling // of prefixes, all that may follow from them; nil: not made yet
	of     int          // prefixes that joined is made of
}

// nameMap holds entries by pattern, # standing for each placeholder.
type nameMap struct {
	m       map[string]nameEntry
	literal bool // some pattern names a number itself, as "list.{i}.0"
}

type nameEntry struct {
	holes []string // placeholder names in order
	alts  []string // names in the file, the first that exists counts
}

func newNameTable(binding string) *nameTable {
	return &nameTable{binding: binding, entries: nameMap{m: map[string]nameEntry{}}, aliases: nameMap{m: map[string]nameEntry{}}}
}

// loadNames starts the table with the standard names of the binding.
func (t *tracer) loadNames() error {
	if t.files.Binding() != GGUF {
		return nil
	}
	m, err := loadStd(nil, stdPrefix+"gguf.star")
	if err != nil {
		return fmt.Errorf("spec: standard names: %w", err)
	}
	d, ok := m["NAMES"].(*starlark.Dict)
	if !ok {
		return fmt.Errorf("spec: standard names: NAMES is no dict")
	}
	return t.names.entries.add(d)
}

// add merges {pattern: name or list of names}; later entries win.
func (m *nameMap) add(d *starlark.Dict) error {
	for _, item := range d.Items() {
		pattern, ok := starlark.AsString(item[0])
		if !ok {
			return fmt.Errorf("names: a pattern is a string, got %s", item[0].Type())
		}
		alts, err := stringList(item[1])
		if err != nil {
			return fmt.Errorf("names: %s: %w", pattern, err)
		}
		key, parts := generalise(pattern)
		keep, holes := 0, parts[:0:0]
		for i, p := range parts {
			if isNumber(p) {
				keep |= 1 << i
			} else {
				holes = append(holes, p)
			}
		}
		m.literal = m.literal || keep != 0
		m.m[specialise(key, parts, keep)] = nameEntry{holes: holes, alts: alts}
	}
	return nil
}

// stringList reads a string or a list of strings.
func stringList(v starlark.Value) ([]string, error) {
	if s, ok := starlark.AsString(v); ok {
		return []string{s}, nil
	}
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("expected a string or a list of strings, got %s", v.Type())
	}
	var list []string
	i := it.Iterate()
	defer i.Done()
	for item := starlark.Value(nil); i.Next(&item); {
		s, ok := starlark.AsString(item)
		if !ok {
			return nil, fmt.Errorf("expected strings, got %s", item.Type())
		}
		list = append(list, s)
	}
	return list, nil
}

// generalise replaces each dotted part that is a number or a placeholder by #
// and returns those parts in order.
func generalise(name string) (key string, parts []string) {
	if !strings.ContainsAny(name, "0123456789{") {
		return name, nil
	}
	var b strings.Builder
	b.Grow(len(name))
	for i, rest := 0, name; ; i++ {
		part, tail, more := strings.Cut(rest, ".")
		if i > 0 {
			b.WriteByte('.')
		}
		switch {
		case isNumber(part):
			parts = append(parts, part)
			b.WriteByte('#')
		case len(part) > 2 && part[0] == '{' && part[len(part)-1] == '}':
			parts = append(parts, part)
			b.WriteByte('#')
		default:
			b.WriteString(part)
		}
		if !more {
			return b.String(), parts
		}
		rest = tail
	}
}

func isNumber(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// fill writes the captured parts into the holes of a file name.
func fill(alt string, holes, parts []string) string {
	if !strings.Contains(alt, "{") {
		return alt
	}
	for i, h := range holes {
		if i < len(parts) {
			alt = strings.ReplaceAll(alt, h, parts[i])
		}
	}
	return alt
}

// plain says that every tensor stands under its reference name.
func (n *nameTable) plain() bool {
	return n.binding == HF && len(n.aliases.m) == 0 && len(n.prefixes) == 0
}

// maxNumbers bounds the numbers of a name for patterns that name one themselves.
const maxNumbers = 6

// specialise puts back the numbers whose bit is set in keep.
func specialise(key string, parts []string, keep int) string {
	if keep == 0 {
		return key
	}
	var b strings.Builder
	n := 0
	for _, r := range key {
		if r != '#' {
			b.WriteRune(r)
			continue
		}
		if n < len(parts) && keep&(1<<n) != 0 {
			b.WriteString(parts[n])
		} else {
			b.WriteRune('#')
		}
		n++
	}
	return b.String()
}

// find lists the entry's names for a tensor; ok is false where no pattern fits.
func (m *nameMap) find(key string, parts []string) (names []string, ok bool) {
	last := 0
	if m.literal && len(parts) <= maxNumbers {
		last = 1<<len(parts) - 1
	}
	for keep := last; keep >= 0; keep-- { // the most literal pattern first
		e, ok := m.m[specialise(key, parts, keep)]
		if !ok {
			continue
		}
		var free []string
		for i, p := range parts {
			if keep&(1<<i) == 0 {
				free = append(free, p)
			}
		}
		for _, a := range e.alts {
			names = append(names, fill(a, e.holes, free))
		}
		return names, true
	}
	return nil, false
}

// lookup is find for the whole name, then for the name without .weight or
// .bias, which is put back.
func (m *nameMap) lookup(name string) (names []string, ok bool) {
	if len(m.m) == 0 {
		return nil, false
	}
	key, parts := generalise(name)
	if names, ok = m.find(key, parts); ok {
		return names, true
	}
	base, suffix := cutSuffix(key)
	if suffix == "" {
		return nil, false
	}
	names, ok = m.find(base, parts)
	for i := range names {
		names[i] += suffix
	}
	return names, ok
}

// candidates lists the names under which a tensor may stand in the files, the
// likeliest first. name is the reference's, with or without .weight or .bias,
// and may have placeholders.
func (n *nameTable) candidates(name string) []string {
	var list []string
	for _, ref := range n.references(name) {
		if n.binding == GGUF {
			if names, ok := n.entries.lookup(ref); ok {
				list = append(list, names...)
				continue
			}
		}
		list = append(list, ref)
	}
	return list
}

// cutSuffix splits .weight or .bias off.
func cutSuffix(name string) (base, suffix string) {
	for _, s := range []string{".weight", ".bias"} {
		if b, ok := strings.CutSuffix(name, s); ok {
			return b, s
		}
	}
	return name, ""
}

func baseName(name string) string { b, _ := cutSuffix(name); return b }

// matcher is a pattern of ignored tensors: * stands for any characters, {…}
// for a number. A number that is written out stands for itself.
type matcher struct {
	text    string // as it was written, of ignore(…)
	glob    string
	literal bool   // holds the names as they are, numbers and all
	head    string // what every name that fits begins with
}

// fits says that the pattern is for a name, or for it without .weight or .bias.
func (m *matcher) fits(name, key string) bool {
	n := key
	if m.literal {
		n = name
	}
	if m.match(n) {
		return true
	}
	base, suffix := cutSuffix(n)
	return suffix != "" && m.match(base)
}

func newMatcher(pattern string) (matcher, error) {
	key, parts := generalise(pattern)
	m := matcher{literal: slices.ContainsFunc(parts, isNumber)}
	if m.literal {
		keep := 0
		for i, p := range parts {
			if isNumber(p) {
				keep |= 1 << i
			}
		}
		key = strings.ReplaceAll(specialise(key, parts, keep), "#", "[0-9]*")
	}
	m.glob = key
	if !m.literal {
		m.glob = strings.ReplaceAll(key, "[", "\\[")
	}
	m.glob = strings.ReplaceAll(m.glob, "/", "\\/")
	if i := strings.IndexAny(m.glob, "*?[\\"); i > 0 {
		m.head = m.glob[:i]
	}
	_, err := path.Match(m.glob, "")
	return m, err
}

// match is path.Match, at once where nothing but stars stands in the pattern.
func (m matcher) match(name string) bool {
	if !strings.HasPrefix(name, m.head) {
		return false
	}
	if strings.ContainsAny(m.glob, "[?\\") || strings.Contains(name, "/") {
		ok, _ := path.Match(m.glob, name)
		return ok
	}
	head, rest, star := strings.Cut(m.glob, "*")
	if !star {
		return name == m.glob
	}
	name, ok := strings.CutPrefix(name, head)
	for ok {
		var part string
		if part, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(name, part)
		}
		at := strings.Index(name, part)
		if at < 0 {
			return false
		}
		name = name[at+len(part):]
	}
	return false
}

// standardIgnored are buffers that checkpoints carry and nothing needs.
var standardIgnored = []matcher{
	{glob: "*rotary_emb.inv_freq"}, {glob: "*rotary_pos_emb.inv_freq"}, {glob: "*rope.freqs"}, {glob: "*.masked_bias"}, {glob: "*position_ids"}, {glob: "*token_type_ids"},
	{glob: "*rotary_emb.cos_cached"}, {glob: "*rotary_emb.sin_cached"}, {glob: "rope_freqs.weight"},
}

func (t *tracer) ignored(name string) bool {
	key, _ := generalise(name)
	lists := [][]matcher{standardIgnored, t.ignores}
	if t.quantized().method != "" {
		lists = append(lists, scaleIgnored)
	}
	for _, list := range lists {
		for i := range list {
			if list[i].fits(name, key) {
				return true
			}
		}
	}
	return false
}

// idleIgnores are the patterns of ignore(…) that fit none of the tensors that
// nothing reads.
func (t *tracer) idleIgnores(unread []string) (idle []string) {
	for i := range t.ignores {
		m := &t.ignores[i]
		if !slices.ContainsFunc(unread, func(name string) bool { key, _ := generalise(name); return m.fits(name, key) }) {
			idle = append(idle, m.text)
		}
	}
	return idle
}
