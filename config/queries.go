package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Query is one entry of a query list.
type Query struct {
	Text    string
	System  string
	Prefix  string    // the answer's beginning
	Encoder *Template // in place of the model's encoder_input_template; nil: the model's
	Decoder *Template // in place of its prompt_template
}

// Queries is what a file for a batch of queries says.
type Queries struct {
	Service     *Service
	List        []Query
	Seed        uint64
	Temperature float64 // −1: not given
	Notes       []string
}

// batchKeys are those of [main] that files for tools have beside a service's.
var batchKeys = []string{"inference_engine_config", "query_list", "query_random_seed", "temperature", "long_context_test", "test_data_file", "max_length", "stride"}

// engineFile is the file that inference_engine_config names: "" where it names
// none, or the file itself.
func (r *reader) engineFile() string {
	name, ok := r.text("inference_engine_config")
	if !ok || name == "" || filepath.Clean(name) == filepath.Clean(r.f.Path) {
		return ""
	}
	return filepath.Clean(name)
}

// Engine interprets the file as a service's, or as that of a tool which names
// one by inference_engine_config.
func (f *INI) Engine() (*Service, error) {
	if f.Section("transformer_engine") != nil {
		return f.Service()
	}
	r := f.reader(f.Section("main"), nil)
	name := r.engineFile()
	r.tool()
	switch {
	case r.err != nil:
		return nil, r.err
	case name != "":
		service, err := ReadINI(name)
		if err != nil {
			return nil, err
		}
		return service.Service()
	}
	if _, ok := r.s.Raw("service"); ok {
		return nil, fmt.Errorf("config: %s: %w", f.Path, kindError("it is a client's file: it names a service, and a request to send there"))
	}
	return f.Service()
}

// Queries interprets the file as one for a batch of queries: its
// inference_engine_config names the service file, which may be itself.
func (f *INI) Queries() (*Queries, error) {
	r := f.reader(f.Section("main"), nil)
	q := &Queries{Temperature: -1}
	list, ok := r.text("query_list")
	if !ok || r.err != nil {
		return nil, first(r.err, fmt.Errorf("config: %s: %w", f.Path, kindError("[main] has no query_list to answer; inferflow serve serves the file of a service, inferflow perplexity runs one with a test_data_file")))
	}
	q.Seed = uint64(r.number("query_random_seed", 0, 1<<31-1))
	long, _ := r.text("long_context_test")
	if q.Temperature = r.temperature(); r.err != nil {
		return nil, r.err
	}
	if long == "true" {
		q.Notes = append(q.Notes, "long_context_test has no effect; see inferflow bench")
	}
	var err error
	if q.Service, err = f.Engine(); err != nil {
		return nil, err
	}
	q.List, err = f.queryList(list)
	return q, err
}

// tool reads what a tool's file has beside a service's: what is broken there is
// refused by whoever reads the file.
func (r *reader) tool() {
	r.temperature()
	r.number("query_random_seed", 0, 1<<31-1)
	r.number("max_length", 0, 1<<28)
	r.number("stride", 0, 1<<28)
}

// temperature is that of the queries; −1 where none is given.
func (r *reader) temperature() float64 {
	v, ok := r.text("temperature")
	if !ok || r.err != nil {
		return -1
	}
	t, err := strconv.ParseFloat(v, 64)
	if err != nil || !(t >= 0 && t <= 1000) {
		r.err = fmt.Errorf("config: %s: temperature: %w: %q", r.f.Path, ErrValue, clip(v))
	}
	return t
}

// maxQueries bounds query_count.
const maxQueries = 1 << 16

func (f *INI) queryList(name string) ([]Query, error) {
	sec := f.Section(name)
	if sec == nil {
		return nil, fmt.Errorf("config: %s: %w: query_list names %q and there is no such section", f.Path, ErrValue, name)
	}
	values, err := f.numbered(sec, "query_count", "query", maxQueries)
	if err != nil {
		return nil, err
	}
	list := make([]Query, len(values))
	for i, v := range values {
		if list[i], err = parseQuery(v); err != nil {
			return nil, f.located(fmt.Sprintf("[%s] query%d", clip(name), i+1), err)
		}
	}
	return list, nil
}

// breaks are what a query that is plain text may hold in place of white space.
var breaks = strings.NewReplacer(`{\r}`, "\r", `{\n}`, "\n", `{\t}`, "\t")

// parseQuery reads a query: JSON with a text or res_prefix, or plain text.
func parseQuery(v string) (Query, error) {
	var o struct {
		Text    *string `json:"text"`
		System  string  `json:"system_prompt"`
		Prefix  *string `json:"res_prefix"`
		Encoder string  `json:"encoder_input_template"`
		Decoder string  `json:"decoder_input_template"`
	}
	if !strings.HasPrefix(v, "{") || json.Unmarshal([]byte(v), &o) != nil || o.Text == nil && o.Prefix == nil {
		return Query{Text: breaks.Replace(v)}, nil
	}
	q := Query{System: o.System}
	if o.Text != nil {
		q.Text = *o.Text
	}
	if o.Prefix != nil {
		q.Prefix = *o.Prefix
	}
	var err error
	if o.Encoder != "" {
		q.Encoder, err = ParseTemplate(o.Encoder)
	}
	if err == nil && o.Decoder != "" {
		q.Decoder, err = ParseFrame(o.Decoder)
	}
	return q, err
}

// Perplexity is what a file for measuring perplexity says.
type Perplexity struct {
	Service *Service
	Text    string // the file of text
	Length  int    // max_length: tokens of a window; 0: not given
	Stride  int    // 0: not given
	Notes   []string
}

// Perplexity interprets the file as one for measuring perplexity.
func (f *INI) Perplexity() (*Perplexity, error) {
	r := f.reader(f.Section("main"), nil)
	p := &Perplexity{}
	text, ok := r.text("test_data_file")
	p.Length, p.Stride = r.number("max_length", 0, 1<<28), r.number("stride", 0, 1<<28)
	if r.temperature() >= 0 {
		p.Notes = append(p.Notes, "temperature has no effect on perplexity")
	}
	if r.err != nil || !ok || text == "" {
		return nil, first(r.err, fmt.Errorf("config: %s: %w", f.Path, kindError("[main] has no test_data_file")))
	}
	p.Text = filepath.Clean(text)
	var err error
	p.Service, err = f.Engine()
	return p, err
}

// numbered reads prefix1 … prefixN, N by the key count.
func (f *INI) numbered(s *Section, count, prefix string, most int) ([]string, error) {
	r := f.reader(s, nil)
	n := r.number(count, 0, most)
	var list []string
	for i := 1; i <= n && r.err == nil; i++ {
		v, ok := r.text(prefix + strconv.Itoa(i))
		if !ok && r.err == nil {
			r.err = fmt.Errorf("config: %s:%d: [%s]: %w: %s is %d and %s%d is missing", f.Path, s.Line, s.Name, ErrValue, count, n, prefix, i)
		}
		list = append(list, v)
	}
	return slices.Clip(list), r.err
}
