package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/config"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/server"
	"github.com/inferflow/inferflow/spec"
)

// shippedService opens a model of the file that the C++ engine comes with.
func shippedService(t *testing.T, name string) (*iniService, model.Options) {
	t.Helper()
	zoo, root := testZoo(t), t.TempDir()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "testdata", "ini", "inferflow_service.ini"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "bin", "s.ini")
	write(t, path, []byte(strings.Replace(string(text), "\nmodels = gemma_2b_it", "\nmodels = "+name, 1)))
	s, err := config.ReadService(path)
	if err != nil {
		t.Fatal(err)
	}
	standIn(t, s.Models[0].Dir, filepath.Join(zoo, strings.TrimPrefix(iniModels[name], "zoo/")))
	write(t, s.Models[0].SpecFile, tinySpec(t, s.Models[0].SpecFile))
	x, err := openINIService(path)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := model.Options{Context: 64, Spec: spec.Options{Executable: exe}}
	x.options(&o, pflag.NewFlagSet("", pflag.ContinueOnError))
	return x, o
}

func listed(t *testing.T, queries ...string) []config.Query {
	t.Helper()
	text := "[main]\nquery_list = q\n[transformer_engine]\nmodels = m\n[model.m]\nmodel_dir = .\nmodel_spec_file = x\n[q]\nquery_count = " + string(rune('0'+len(queries))) + "\n"
	for i, q := range queries {
		text += "query" + string(rune('1'+i)) + " = " + q + "\n"
	}
	ini, err := config.ParseINI("q.ini", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	q, err := ini.Queries()
	if err != nil {
		t.Fatal(err)
	}
	return q.List
}

// TestEncoderQueries frames the queries of an encoder-decoder by the templates
// of its section, or by their own.
func TestEncoderQueries(t *testing.T) {
	x, o := shippedService(t, "facebook_m2m100_418m")
	s, err := x.open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := func(words ...string) (ids []int32) {
		for _, w := range words {
			ids = append(ids, int32(slices.Index(tokensOfINI, w)))
		}
		return ids
	}
	for i, c := range []struct {
		q             config.Query
		source, begin []int32
	}{
		{listed(t, `the house`)[0], id("__zh__", "the", "house", "</s>"), id("</s>", "__en__")},
		{listed(t, `{"text": "the house", "encoder_input_template": "{__en__}{ }{query}{</s>}", "decoder_input_template": "{#2}{__zh__}"}`)[0],
			id("__en__", "the", "house", "</s>"), id("</s>", "__zh__")},
		{listed(t, `{"text": "the", "res_prefix": "house"}`)[0], id("__zh__", "the", "</s>"), id("</s>", "__en__", "house")},
		{listed(t, `{"text": "</s>the"}`)[0], id("__zh__", "<unk>", "</s>"), id("</s>", "__en__")}, // a user's text spells no token
	} {
		p := complete.Params{Sample: s.Defaults(), Max: 3}
		ids, err := queryIDs(context.Background(), s, x, c.q, &p)
		if err != nil || !slices.Equal(ids, c.source) {
			t.Errorf("%d: the source is %v, want %v, %v", i, ids, c.source, err)
		}
		_, a, err := answerQuery(context.Background(), s, x, c.q, p)
		if err != nil || a.Timings.PromptTokens != len(c.source)+len(c.begin) || !strings.HasPrefix(a.Text, c.q.Prefix) {
			t.Errorf("%d: %+v, %v", i, a, err)
		}
		if begin, err := x.frameIDs(s.Tok, orTemplate(c.q.Decoder, x.model.Prompt), c.q, decodes); err != nil || !slices.Equal(begin, c.begin) {
			t.Errorf("%d: the answer begins with %v, want %v, %v", i, begin, c.begin, err)
		}
	}
	bad := listed(t, `{"text": "the", "encoder_input_template": "{__de__}{query}"}`)[0]
	if _, _, err := answerQuery(context.Background(), s, x, bad, complete.Params{Sample: s.Defaults(), Max: 3}); err == nil || !strings.Contains(err.Error(), "{__de__}") {
		t.Errorf("a language that the vocabulary has not: %v", err)
	}
}

// TestMaskQueries fills masks of an encoder by the queries' own template too.
func TestMaskQueries(t *testing.T) {
	x, o := shippedService(t, "bert_base_multilingual_cased")
	e, err := x.openTexts(context.Background(), o, embed.OutputLogits)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	enc, err := e.EncodeMaskedBy(func(text string) ([]int32, error) {
		return x.frameIDs(e.Tok, listed(t, `{"text": "x", "encoder_input_template": "{[SEP]}{query}"}`)[0].Encoder, config.Query{Text: text}, reads)
	}, "[MASK] the")
	if want := []int32{5, 6, 13}; err != nil || !slices.Equal(enc.IDs, want) {
		t.Errorf("%v, want %v, %v", enc.IDs, want, err)
	}
	asked := []string{"the [MASK]", "no mask", "[MASK] the"}
	var done []int
	err = (&textFlags{}).fill(context.Background(), e, fillList{n: len(asked), top: 2, title: func(i int) string { return titleOf("query", i, asked[i]) },
		encode: func(i int) (embed.Text, error) {
			done = append(done, i)
			return e.EncodeMasked(asked[i])
		}})
	if err == nil || err.Error() != "1 of 3 were not answered" || len(done) != 3 {
		t.Errorf("a list with a bad query: %v after %v", err, done)
	}
	h := httptest.NewServer(server.NewTexts(e, server.Options{Name: "m"}))
	defer h.Close()
	for body, want := range map[string]string{
		`{"model": "m", "input": ["the [MASK]", "[MASK] <mask>"], "top_n": 2}`: `"object":"fill_mask","index":1,"masks":[[{"token":`,
		`{"model": "m", "input": "the house"}`:                                 "the text has no mask",
		`{"model": "m", "input": "[MASK]", "top_n": 0}`:                        "top_n: 0 is outside",
		`{"model": "m", "input": [null]}`:                                      "input: a string or a list",
		`{"model": "x", "input": "[MASK]"}`:                                    "is not served here",
	} {
		r, err := http.Post(h.URL+"/v1/fill-mask", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %s, %v", body, raw, err)
		}
	}
	v, err := x.openTexts(context.Background(), o, spec.OutputEmbedding)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	texts, err := v.Encode([]string{"the house"}, embed.Options{})
	if want := []int32{4, 13, 14, 5}; err != nil || !slices.Equal(texts[0].IDs, want) {
		t.Errorf("%+v, want %v, %v", texts, want, err)
	}
	if out, err := v.Vectors(context.Background(), texts, embed.Options{}); err != nil || len(out[0]) != 48 {
		t.Errorf("%d vectors, %v", len(out), err)
	}
}

// TestUntil gives up on what takes longer than the program is wanted.
func TestUntil(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	over := make(chan struct{})
	defer close(over)
	time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("enough")) })
	if err := until(ctx, func() error { <-over; return nil }); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Error(err)
	}
	if err := until(ctx, func() error { return os.ErrExist }); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
}
