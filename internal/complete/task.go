package complete

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tokenizer"
)

// ErrTask marks a task that the model does not have.
var ErrTask = errors.New("the model has no such task")

// Task encodes text as the source of a task, such as summarize or
// translate:en-fr, and changes p to what the task asks of its answers. What
// config.json of the folder says of a task goes before the specification.
func (s *Service) Task(name, text string, p *Params) ([]int32, error) {
	if !s.Encodes() {
		return nil, fmt.Errorf("complete: %w: %s is no encoder-decoder; say in the prompt what is to be done", ErrTask, s.Model.Name)
	}
	base, langs, named := strings.Cut(name, ":")
	for key, t := range s.Model.FolderTasks() {
		if key == name || folderName(key) == name {
			if p.decoding = &t.Decoding; t.Decoding.Repetition != 0 && p.Sample.RepetitionPenalty == s.defaults.RepetitionPenalty {
				p.Sample.RepetitionPenalty = t.Decoding.Repetition
			}
			return s.source(t.Prefix+text, false)
		}
	}
	for i := range s.Model.Traced.Tasks {
		if t := &s.Model.Traced.Tasks[i]; t.Name == base {
			return s.plan(t, langs, named, text, p)
		}
	}
	return nil, fmt.Errorf("complete: %w: %q; %s", ErrTask, name, s.taskList())
}

// taskList says which tasks there are.
func (s *Service) taskList() string {
	var names []string
	for key := range s.Model.FolderTasks() {
		names = append(names, folderName(key))
	}
	for _, t := range s.Model.Traced.Tasks {
		n := t.Name
		if languages(&t) {
			n += ":FROM-TO"
		}
		names = append(names, n)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return "it has none: give the source as plain text"
	}
	return "it has " + strings.Join(names, ", ")
}

var translation = regexp.MustCompile(`^translation_(.+)_to_(.+)$`)

// folderName is the name that a task of config.json goes by here.
func folderName(key string) string {
	if m := translation.FindStringSubmatch(key); m != nil {
		return "translate:" + m[1] + "-" + m[2]
	}
	if key == "summarization" {
		return "summarize"
	}
	return key
}

// languages says whether a task's texts name languages.
func languages(t *spec.Task) bool {
	all := strings.Join(slices.Concat([]string{t.Source}, t.First, t.SourceTag), " ")
	return strings.Contains(all, "{from}") || strings.Contains(all, "{to}")
}

// plan encodes the source of a task of the specification.
func (s *Service) plan(t *spec.Task, langs string, named bool, text string, p *Params) ([]int32, error) {
	if named && !languages(t) {
		return nil, fmt.Errorf("complete: %w: %s takes no languages, got %q", ErrTask, t.Name, langs)
	}
	tags := append(slices.Clone(t.First), t.SourceTag...)
	speaks := len(tags) > 0 && s.holds(tags)
	if languages(t) && !named && (speaks || strings.Contains(t.Source, "{to}")) {
		return nil, fmt.Errorf("complete: %w: %s needs languages, as in %s:en-fr; %s", ErrTask, t.Name, t.Name, s.known(t, tags))
	}
	if len(tags) > 0 && !speaks {
		if len(t.First) > 0 {
			return nil, fmt.Errorf("complete: %w: the vocabulary has no token of the form %s, so the language of the answer cannot be chosen", ErrTask, strings.Join(t.First, " or "))
		}
		return s.source(strings.ReplaceAll(t.Source, "{text}", text), false) // a model of one pair of languages
	}
	var bad error
	for i := range len(langs) + 1 { // codes may hold a "-" themselves
		if languages(t) && (i == len(langs) || langs[i] != '-') {
			continue
		}
		v := pair{s: s, t: t}
		if languages(t) {
			v.from, v.to = langs[:i], langs[i+1:]
		}
		ids, err := v.source(text, p)
		if err == nil {
			return ids, nil
		}
		if bad == nil {
			bad = err
		}
		if !languages(t) {
			break
		}
	}
	if bad == nil {
		bad = fmt.Errorf("complete: %w: %q names no two languages, as en-fr does", ErrTask, langs)
	}
	return nil, bad
}

// known says which languages a task has: those of its list, or of the vocabulary.
func (s *Service) known(t *spec.Task, tags []string) string {
	if len(tags) == 0 {
		return "it knows " + strings.Join(slices.Sorted(maps.Keys(t.Languages)), ", ")
	}
	return "the vocabulary has " + s.listed(tags)
}

// listed is a list of tokens of the form of tags, cut where it is long.
func (s *Service) listed(tags []string) string {
	const show = 12
	list := s.spoken(tags, show+1)
	if len(list) > show {
		list = append(list[:show], "…")
	}
	return strings.Join(list, ", ")
}

// form is a pattern of the tokens that a template of tags may become.
func form(tags []string) *regexp.Regexp {
	var parts []string
	for _, t := range tags {
		q := regexp.QuoteMeta(t)
		for _, hole := range []string{"{from}", "{to}"} {
			q = strings.ReplaceAll(q, regexp.QuoteMeta(hole), `[a-z]{2,3}(?:[_-][A-Za-z]{2,4})?`)
		}
		parts = append(parts, q)
	}
	return regexp.MustCompile("^(?:" + strings.Join(parts, "|") + ")$")
}

// holds says whether the vocabulary has a token of the form of tags. It is
// found out once: a vocabulary is long.
func (s *Service) holds(tags []string) bool {
	key := strings.Join(tags, " ")
	if known, ok := s.tags.Load(key); ok {
		return known.(bool)
	}
	found := len(s.spoken(tags, 1)) > 0
	s.tags.Store(key, found)
	return found
}

// spoken lists at most n tokens of the form of tags; those of plain text do not
// count, for some are words.
func (s *Service) spoken(tags []string, n int) (list []string) {
	f := form(tags)
	plain := slices.ContainsFunc(tags, func(t string) bool { return t == "{from}" || t == "{to}" })
	for id := range s.Tok.Size() {
		text := s.Tok.Text(int32(id))
		if f.MatchString(text) && (!plain || s.Tok.IsAdded(int32(id)) || s.Tok.IsControl(int32(id))) {
			if list = append(list, text); len(list) == n {
				break
			}
		}
	}
	return list
}

// pair is a task with its languages.
type pair struct {
	s        *Service
	t        *spec.Task
	from, to string
}

// names are what a language may be called in the task's texts.
func (v *pair) names(code string) []string {
	if n := v.t.Languages[code]; n != nil {
		return n
	}
	if len(v.t.First)+len(v.t.SourceTag) > 0 {
		return []string{code}
	}
	return nil
}

// tag finds the token that one of the templates becomes.
func (v *pair) tag(templates []string) (int32, error) {
	for _, t := range templates {
		code := v.from
		if strings.Contains(t, "{to}") {
			code = v.to
		}
		for _, name := range v.names(code) {
			text := strings.NewReplacer("{from}", name, "{to}", name).Replace(t)
			if id, ok := v.s.Tok.ID(text); ok {
				return id, nil
			}
		}
	}
	return 0, fmt.Errorf("complete: %w: the vocabulary has no token for the languages %s and %s; it has %s", ErrTask, v.from, v.to, v.s.listed(templates))
}

// source encodes text and says how the answer begins.
func (v *pair) source(text string, p *Params) ([]int32, error) {
	from, to := v.names(v.from), v.names(v.to)
	if (strings.Contains(v.t.Source, "{from}") && from == nil) || (strings.Contains(v.t.Source, "{to}") && to == nil) {
		return nil, fmt.Errorf("complete: %w: %s knows the languages %s, got %s and %s", ErrTask, v.t.Name,
			strings.Join(slices.Sorted(maps.Keys(v.t.Languages)), ", "), v.from, v.to)
	}
	words := []string{"{text}", text}
	if from != nil && to != nil {
		words = append(words, "{from}", from[0], "{to}", to[0])
	}
	said := strings.NewReplacer(words...).Replace(v.t.Source)
	d := v.s.Model.Generation.Decoding
	if len(v.t.First) > 0 {
		id, err := v.tag(v.t.First)
		if err != nil {
			return nil, err
		}
		v.begin(&d, id, p)
	}
	if len(v.t.SourceTag) == 0 {
		return v.s.source(said, false)
	}
	id, err := v.tag(v.t.SourceTag)
	if err != nil {
		return nil, err
	}
	return v.tagged(said, id)
}

// begin makes the answer begin with a token: in place of the start token where
// that is such a token itself.
func (v *pair) begin(d *model.Decoding, id int32, p *Params) {
	if f := form(v.t.First); f.MatchString(v.s.Tok.Text(d.Start)) {
		p.begin = []int32{id}
		return
	}
	p.begin, p.counted = []int32{d.Start, id}, 1
}

// tagged encodes a text with a token for its language: where the tokenizer puts
// one around every text, else in front.
func (v *pair) tagged(text string, tag int32) ([]int32, error) {
	f, found := form(v.t.SourceTag), false
	swap := func(ids []int32) []int32 {
		ids = slices.Clone(ids)
		for i, id := range ids {
			if f.MatchString(v.s.Tok.Text(id)) {
				ids[i], found = tag, true
			}
		}
		return ids
	}
	prefix, suffix := swap(v.s.Tok.Prefix()), swap(v.s.Tok.Suffix())
	if !found {
		prefix = append([]int32{tag}, prefix...)
	}
	ids, err := v.s.Tok.TryEncode(text, tokenizer.Options{})
	if err != nil {
		return nil, fmt.Errorf("complete: %w", err)
	}
	return v.s.around(prefix, ids, suffix), nil
}
