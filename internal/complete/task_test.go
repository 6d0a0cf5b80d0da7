package complete

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/model"
)

// words is a tokenizer.json that knows whole words, some of them as added
// tokens, and puts before and after around every text.
func words(t *testing.T, plain, added []string, before, after []string) []byte {
	t.Helper()
	vocab, list := map[string]int{}, []map[string]any{}
	for _, w := range append(append([]string{}, plain...), added...) {
		vocab[w] = len(vocab)
	}
	for _, w := range added {
		list = append(list, map[string]any{"id": vocab[w], "content": w, "special": true})
	}
	single, special := []any{}, map[string]any{}
	for _, w := range before {
		single = append(single, map[string]any{"SpecialToken": map[string]any{"id": w, "type_id": 0}})
	}
	single = append(single, map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}})
	for _, w := range after {
		single = append(single, map[string]any{"SpecialToken": map[string]any{"id": w, "type_id": 0}})
	}
	for _, w := range append(append([]string{}, before...), after...) {
		special[w] = map[string]any{"id": w, "ids": []int{vocab[w]}, "tokens": []string{w}}
	}
	raw, err := json.Marshal(map[string]any{
		"added_tokens": list, "pre_tokenizer": map[string]any{"type": "WhitespaceSplit"},
		"post_processor": map[string]any{"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": special},
		"model":          map[string]any{"type": "WordLevel", "vocab": vocab, "unk_token": plain[0]},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// speaker is a model of the zoo with a tokenizer of its own.
func speaker(t *testing.T, family string, tok []byte, settings map[string]any) *Service {
	t.Helper()
	m := zooModel(t, family, settings)
	dir := m.Path
	m.Close()
	for name, raw := range map[string][]byte{"tokenizer.json": tok, "tokenizer_config.json": []byte(`{"eos_token": "</s>", "pad_token": "<pad>"}`)} {
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := model.Open(dir, model.Options{Threads: 1, Context: 64})
	if err == nil {
		err = m.Load()
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// spelled is ids as the tokens that they are.
func spelled(s *Service, ids []int32) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, s.Tok.Text(id))
	}
	return strings.Join(parts, " ")
}

var (
	plainWords = []string{"<unk>", "<pad>", "</s>", "translate", "English", "French", "to", "French:", "summarize:", "the", "house", ">>fra<<", ">>deu<<"}
	noWords    []string
)

// TestTasks spells the sources of tasks and what the answers begin with.
func TestTasks(t *testing.T) {
	nllb := []string{"eng_Latn", "fra_Latn", "zho_Hans"}
	m2m := []string{"__en__", "__fr__"}
	for _, c := range []struct {
		name, family         string
		added, before, after []string
		settings             map[string]any
		task                 string
		source, begin        string
	}{
		{"a prefix", "t5", noWords, noWords, []string{"</s>"}, nil, "summarize", "summarize: the house </s>", "<unk>"},
		{"no end in the tokenizer", "t5", noWords, noWords, noWords, nil, "summarize", "summarize: the house </s>", "<unk>"},
		{"languages in words", "t5", noWords, noWords, []string{"</s>"}, nil, "translate:en-fr", "translate English to French: the house </s>", "<unk>"},
		{"tokens before the source", "m2m_100", m2m, noWords, []string{"</s>"}, nil, "translate:en-fr", "__en__ the house </s>", "</s> __fr__"},
		{"in place of the tokenizer's own", "m2m_100", nllb, []string{"eng_Latn"}, []string{"</s>"}, nil, "translate:fr-en", "fra_Latn the house </s>", "</s> eng_Latn"},
		{"behind the source", "m2m_100", nllb, noWords, []string{"</s>", "eng_Latn"}, nil, "translate:fra_Latn-zho_Hans", "the house </s> fra_Latn", "</s> zho_Hans"},
		{"in place of the start", "m2m_100", nllb, noWords, []string{"</s>", "eng_Latn"}, map[string]any{"decoder_start_token_id": len(plainWords) + 1}, "translate:en-zh",
			"the house </s> eng_Latn", "zho_Hans"},
		{"a token for the target", "marian", noWords, noWords, []string{"</s>"}, nil, "translate:en-de", ">>deu<< the house </s>", "<pad>"},
		{"the files' own first token", "m2m_100", m2m, noWords, []string{"</s>"}, map[string]any{"forced_bos_token_id": len(plainWords) + 1}, "", "the house </s>", "</s> __fr__"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := speaker(t, c.family, words(t, plainWords, c.added, c.before, c.after), c.settings)
			var p Params
			ids := textIDs(t, s, "the house", false)
			if c.task != "" {
				var err error
				if ids, err = s.Task(c.task, "the house", &p); err != nil {
					t.Fatal(err)
				}
			}
			s.decode(&p)
			if got := spelled(s, ids); got != c.source {
				t.Errorf("the source is %q, want %q", got, c.source)
			}
			if got := spelled(s, p.begin); got != c.begin {
				t.Errorf("the answer begins with %q, want %q", got, c.begin)
			}
			p.Sample, p.Max = greedy(), 4
			run, err := s.Start(t.Context(), ids, p)
			if err != nil {
				t.Fatal(err)
			}
			if a, err := run.Collect(nil); err != nil || len(a.IDs) == 0 || a.Timings.PromptTokens != len(ids)+len(p.begin) {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

// TestBadTasks wants errors that say what there is.
func TestBadTasks(t *testing.T) {
	t5 := speaker(t, "t5", words(t, plainWords, noWords, noWords, noWords), nil)
	m2m := speaker(t, "m2m_100", words(t, plainWords, []string{"__en__", "__fr__"}, noWords, noWords), nil)
	marian := speaker(t, "marian", words(t, plainWords, noWords, noWords, noWords), nil)
	none := speaker(t, "m2m_100", words(t, plainWords, noWords, noWords, noWords), nil)
	for _, c := range []struct {
		s          *Service
		task, says string
	}{
		{t5, "paint", "summarize, translate:FROM-TO"},
		{t5, "", "summarize"},
		{t5, "translate", "needs languages, as in translate:en-fr; it knows de, en, fr, ro"},
		{m2m, "translate", "needs languages, as in translate:en-fr; the vocabulary has __en__, __fr__"},
		{marian, "translate", "needs languages, as in translate:en-fr; the vocabulary has >>fra<<, >>deu<<"},
		{none, "translate", "no token of the form"},
		{t5, "translate:en", "names no two languages"},
		{t5, "translate:en-xx", "knows the languages de, en, fr, ro"},
		{t5, "summarize:en-fr", "takes no languages"},
		{m2m, "translate:en-xx", "it has __en__, __fr__"},
		{m2m, "translate:-", "it has __en__, __fr__"},
		{none, "translate:en-fr", "no token of the form"},
	} {
		_, err := c.s.Task(c.task, "the house", &Params{})
		if !errors.Is(err, ErrTask) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want …%s…", c.task, err, c.says)
		}
	}
}

// TestFolderTasks reads tasks from config.json, which go before the specification's.
func TestFolderTasks(t *testing.T) {
	s := speaker(t, "t5", words(t, plainWords, noWords, noWords, noWords), nil)
	path := filepath.Join(s.Model.Path, "config.json")
	raw, err := os.ReadFile(path)
	var c map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	c["task_specific_params"] = map[string]any{
		"summarization":        map[string]any{"prefix": "house ", "max_length": 9, "min_length": 4, "no_repeat_ngram_size": 3},
		"translation_en_to_fr": map[string]any{"prefix": "to ", "num_beams": 4},
		"broken":               4,
	}
	if raw, err = json.Marshal(c); err == nil {
		err = os.WriteFile(path, raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(s.Model.Path, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	f := &Service{Model: m, Tok: m.Tokenizer}
	f.settle()
	p := Params{Sample: f.Defaults()}
	ids, err := f.Task("summarize", "the", &p)
	if err != nil || spelled(f, ids) != "house the </s>" {
		t.Errorf("%q, %v", spelled(f, ids), err)
	}
	f.decode(&p)
	if r := f.rules(ids, len(p.begin), &p, []int32{2}); p.Max != 8 || r.NoRepeat != 3 || r.MinLength != 4 || !slices.Equal(r.End, []int32{2}) {
		t.Errorf("at most %d, rules %+v", p.Max, r)
	}
	if ids, err = f.Task("translate:en-fr", "the", &p); err != nil || spelled(f, ids) != "to the </s>" {
		t.Errorf("%q, %v", spelled(f, ids), err)
	}
	if r, err := f.request(ids, &p); err != nil || r.Params.Beams.N != 4 || !slices.Equal(r.Source, ids) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err = f.Task("sing", "the", &p); err == nil || !strings.Contains(err.Error(), "summarize, translate:FROM-TO, translate:en-fr") {
		t.Error(err)
	}
}
