package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/config"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/embed"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tokenizer"
)

// isINI says that an argument is a service file of the C++ Inferflow.
func isINI(arg string) bool { return strings.EqualFold(filepath.Ext(arg), ".ini") }

// maxSpecFile bounds a model_spec.json; what is cut off is broken JSON.
const maxSpecFile = 64 << 20

// iniService is a service file joined with the flags: flags that were given win.
type iniService struct {
	file  *config.Service
	model config.Model
	files *spec.ModelSpec
	roles map[string]int32 // user_token, assistant_token
	path  string           // what is opened
}

// openINIService reads a service file and what it names.
func openINIService(path string) (*iniService, error) {
	s, err := config.ReadService(path)
	if err != nil {
		return nil, err
	}
	return readINIService(s)
}

// readINIService reads a service file and the model_spec.json that it names.
func readINIService(s *config.Service) (*iniService, error) {
	for _, n := range s.Notes {
		notice(n)
	}
	x := &iniService{file: s, model: s.Models[0]}
	if len(s.Models) > 1 {
		notice(fmt.Sprintf("%s lists %d models; %s, the first, is served", s.Path, len(s.Models), x.model.Name))
	}
	for _, n := range x.model.Strategy.Notes {
		notice(n)
	}
	f, err := sys.OpenRegular(x.model.SpecFile) // a pipe would be waited for
	if err != nil {
		return nil, fmt.Errorf("%s: [model.%s]: %w", s.Path, x.model.Name, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSpecFile))
	if err != nil {
		return nil, fmt.Errorf("%s: [model.%s]: %w", s.Path, x.model.Name, err)
	}
	if x.files, err = spec.ParseModelSpec(data); err != nil {
		return nil, fmt.Errorf("%s: %w", x.model.SpecFile, err)
	}
	if f := x.files.ConfigFile; f != "" && f != "config.json" {
		notice(fmt.Sprintf("%s names %s; config.json of the folder is read", x.model.SpecFile, f))
	}
	if err := x.readRoles(); err != nil {
		return nil, err
	}
	x.path = x.model.Dir
	switch x.files.Format {
	case "gguf", "ggml", "llama2.c":
		if len(x.files.ModelFiles) == 0 {
			return nil, fmt.Errorf("%s: it names no model_files", x.model.SpecFile)
		}
		name := filepath.FromSlash(x.files.ModelFiles[0])
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s: model_files: %q leads out of the model's folder", x.model.SpecFile, name)
		}
		x.path = filepath.Join(x.model.Dir, name)
	}
	return x, nil
}

// options fills in what the flags leave open.
func (x *iniService) options(o *model.Options, given *pflag.FlagSet) {
	set := func(name string) bool { f := given.Lookup(name); return f != nil && f.Changed }
	if !set("spec") {
		o.Spec.SpecFile = x.model.SpecFile
	}
	if a := strings.ToLower(x.files.Algorithm); a == "fmm" || a == "fmm2" { // others use what the model's own files say, which is more
		o.Matching = &model.Matching{Dir: x.model.Dir, Files: x.files.TokenizerFiles, Roles: x.files.Tokens, ByteAlphabet: x.files.ByteAlphabet}
	}
	if !set("threads") && x.file.Threads > 0 {
		o.Threads = min(x.file.Threads, sys.UsableCPUs())
		if o.Threads < x.file.Threads {
			notice(fmt.Sprintf("cpu_threads = %d: %d cores are usable, and so many threads run (--threads)", x.file.Threads, o.Threads))
		}
	}
	if !set("context") {
		o.Context = x.model.Context
	}
	if x.file.Parallel > 0 {
		o.Seqs = x.file.Parallel
	}
	if set("kv") {
		return
	}
	switch x.model.KVType {
	case "", "f16", "fp16":
	case "f32", "fp32":
		o.Keys, o.Values = "f32", "f32"
	default:
		notice(fmt.Sprintf("[model.%s] device_kv_cache_data_type = %s: keys and values are kept as f16", x.model.Name, x.model.KVType))
	}
}

// openModel opens the model, which is not loaded yet.
func (x *iniService) openModel(ctx context.Context, o model.Options) (*model.Model, error) {
	return openModel(ctx, x.path, o)
}

// open opens and loads the model as the file says.
func (x *iniService) open(ctx context.Context, o model.Options) (*complete.Service, error) {
	m, err := x.openModel(ctx, o)
	if err != nil {
		return nil, err
	}
	if err = x.settle(m); err == nil {
		err = m.Load()
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	s, err := complete.New(m, 0)
	if err != nil {
		m.Close()
		return nil, err
	}
	for _, n := range s.Notes {
		notice(n)
	}
	if err = s.SetDefaults(strategyParams(x.model.Strategy)); err == nil && s.Encodes() {
		err = x.frame(s)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// frame makes an encoder-decoder read and begin as the file's templates say.
func (x *iniService) frame(s *complete.Service) error {
	if err := x.checkFrame(s.Tok, x.model.Encoder, encodes); err != nil {
		return err
	}
	var source complete.Frame
	if x.model.Encoder != nil {
		source = func(system, text string) ([]int32, error) {
			return x.frameIDs(s.Tok, x.model.Encoder, config.Query{System: system, Text: text}, encodes)
		}
	}
	var begin []int32
	if t := x.model.Prompt; t != nil {
		if t.Has(config.PartQuery) {
			notice(fmt.Sprintf("[model.%s] decoder_input_template has a {query}: the encoder reads the query, and in the answer's beginning it stays empty", x.model.Name))
		}
		var err error
		if begin, err = x.frameIDs(s.Tok, t, config.Query{}, decodes); err != nil {
			return err
		}
	}
	s.SetFrame(source, begin)
	return nil
}

// whole says whether the model is an encoder alone, which reads whole texts.
func (x *iniService) whole(ctx context.Context, o model.Options) (bool, error) {
	o.Notice, o.NoTokenizer = nil, true // told when it is opened for good
	m, err := x.openModel(ctx, o)
	if err != nil {
		return false, err
	}
	defer m.Close()
	return m.Whole(), nil
}

// openTexts opens and loads a model that reads texts, for one of its outputs.
func (x *iniService) openTexts(ctx context.Context, o model.Options, output string) (*embed.Service, error) {
	o.Output = output
	m, err := x.openModel(ctx, o)
	if err != nil {
		return nil, err
	}
	if m.Encodes() {
		m.Close()
		return nil, usagef("[model.%s] is an encoder-decoder: it answers with a text, not with numbers", x.model.Name)
	}
	if m.Tokenizer != nil {
		err = x.checkFrame(m.Tokenizer, x.model.Encoder, reads)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	s, err := embed.Load(m)
	if err != nil {
		return nil, err
	}
	if t := x.model.Encoder; t != nil && s.Tok != nil {
		s.SetFrame(&embed.Frame{Suffix: frameSuffix(t), IDs: func(text string) ([]int32, error) {
			return x.frameIDs(s.Tok, t, config.Query{Text: text}, reads)
		}})
	}
	return s, nil
}

// settle gives the model the file's prompt template.
func (x *iniService) settle(m *model.Model) error {
	if x.model.Prompt == nil || m.Tokenizer == nil || m.Encodes() {
		return nil
	}
	t, err := x.model.Prompt.Jinja(x.token(m.Tokenizer), func(id int) (string, bool) {
		return m.Tokenizer.Text(int32(id)), id < m.Tokenizer.Size()
	})
	if err != nil {
		return fmt.Errorf("%s: [model.%s]: %w", x.file.Path, x.model.Name, err)
	}
	m.Template = t
	return nil
}

// token is the text of a named token: a role, or itself where the vocabulary has it.
func (x *iniService) token(tok *tokenizer.Tokenizer) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if text := x.files.Tokens[name]; text != "" {
			return text, true
		}
		if id, ok := x.roles[name]; ok && int(id) < tok.Size() {
			return tok.Text(id), true
		}
		if id, ok := tok.Named(name); ok {
			return tok.Text(id), true
		}
		if _, ok := tok.ID(name); ok {
			return name, true
		}
		return "", name == "bos" || name == "eos" // a vocabulary without them has nothing to put there
	}
}
