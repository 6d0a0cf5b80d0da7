// Package model opens a model's files, resolves its specification, compiles
// and loads it over devices, and runs batches through the stages. It must
// never import engine, server or chat. Read Model first.
package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/device"
	"github.com/inferflow/inferflow/internal/device/cpu"
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/attn"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
	"github.com/inferflow/inferflow/tokenizer"
)

// Options chooses how a model is opened and loaded. Zero values mean defaults.
type Options struct {
	Spec        spec.Options
	Threads     int          // 0: all usable cores
	Keys        string       // "f16", "f32", "bf16"; "": f32 where sequences are whole, else f16
	Values      string       // as Keys
	Context     int          // tokens of one sequence at most; 0: see Load
	KVMemory    int64        // bytes of keys and values; 0: see Load
	Rows        int          // rows of a batch at most; 0: 512
	Seqs        int          // sequences of a batch at most; 0: 64
	Beams       int          // of the searches that the default of KVMemory has room for; 0: those that the files ask for
	Cut         []int        // layers before which the program is cut into stages
	Profile     bool         // measure each step
	Unfused     bool         // every node as an Op step
	NoTokenizer bool         // do not read the tokenizer: ids only
	Matching    *Matching    // in place of the model's own tokenizer; nil: that
	Output      string       // the output that is computed: "logits", spec.OutputEmbedding, "scores", …; "": the first
	Notice      func(string) // told, once each, what a user should know; nil: dropped
}

// Model is an opened model. Load makes it ready to run.
type Model struct {
	Path      string
	Name      string
	Traced    *spec.Traced
	Program   *program.Program // before it is cut
	Tokenizer *tokenizer.Tokenizer
	// TokenizerErr says why Tokenizer is nil.
	TokenizerErr error
	Template     string // source of the chat template, "" if there is none
	Generation   Generation
	Sentence     Sentence // what the folder says of embeddings
	MaxContext   int      // positions the model was made for, 0 if unknown
	Limits       device.Limits
	KVBytes      int64 // bytes of the key/value pool
	StateBytes   int64 // bytes of the recurrent states of Limits.States sequences
	BlockBytes   int   // of one block of batch.BlockTokens positions

	o      Options
	files  *files
	stages []device.Stage
	team   *sys.Team
	memory func() (free int64, source string) // nil: sys.MemoryLimit
}

// Open opens the model at path: a GGUF file, a safetensors file or a folder.
// The specification is traced and compiled; weights are not touched.
func Open(path string, o Options) (*Model, error) {
	f, err := openFiles(path)
	if err != nil {
		return nil, err
	}
	m := &Model{Path: path, Name: nameOf(path), o: o, files: f}
	if err := m.open(); err != nil {
		f.Close()
		return nil, err
	}
	return m, nil
}

// Extensions are the usual endings of a model's file name. A file is told by
// its contents, not by them.
var Extensions = []string{".gguf", ".safetensors", ".bin", ".pt", ".pth"}

func nameOf(path string) string {
	base := filepath.Base(filepath.Clean(path))
	if abs, err := filepath.Abs(path); err == nil {
		base = filepath.Base(abs)
	}
	base = strings.TrimSuffix(base, ".zip.d") // an archive that the cache unpacked
	if ext := filepath.Ext(base); slices.Contains(Extensions, ext) {
		base = base[:len(base)-len(ext)]
	}
	return base
}

func (m *Model) open() error {
	so := m.o.Spec
	so.Output = m.o.Output
	if err := m.sentence(); err != nil {
		return err
	}
	m.files.ownSpec(&so)
	s, err := spec.Resolve(m.files, so)
	if err != nil {
		return err
	}
	if s.Foreign {
		m.notice(fmt.Sprintf("using the specification %s, which is not one of the shipped ones", s.Name))
	}
	if m.Traced, err = s.Trace(m.files); err != nil {
		return err
	}
	for _, n := range m.Traced.Notes {
		m.notice(n)
	}
	if m.Program, err = compile.Fuse(m.Traced.Graph, compile.Options{NoFusion: m.o.Unfused}); err != nil {
		return err
	}
	if !m.o.NoTokenizer {
		if m.Tokenizer, m.TokenizerErr = m.readTokenizer(); m.TokenizerErr != nil && !errors.Is(m.TokenizerErr, tokenizer.ErrNoTokenizer) {
			m.notice(fmt.Sprintf("no text goes in or out, for the tokenizer cannot be read: %v", m.TokenizerErr))
		}
		if m.Template, err = m.files.template(); err != nil {
			return err
		}
		if t := m.Traced.Chat.Template; t != "" {
			m.Template = t
		}
	}
	m.MaxContext = m.Traced.MaxPositions
	if m.o.Output == spec.OutputEmbedding && m.meanByDefault() {
		m.notice("the model's files do not say how its rows become a vector: their mean is taken; one that was not trained for embeddings gives poor ones")
	}
	return m.generation()
}

func (m *Model) readTokenizer() (*tokenizer.Tokenizer, error) {
	if m.o.Matching != nil {
		return m.o.Matching.open(m.files.folderConfig())
	}
	return m.files.tokenizer()
}

// TokenizerHint says where the tokenizer of such a model is looked for.
func (m *Model) TokenizerHint() string {
	switch {
	case m.files.meta == nil:
		return "a folder needs tokenizer.json beside config.json"
	case m.files.Kind() == "gguf":
		return "a GGUF file holds it among its metadata"
	}
	return "tokenizer.bin must lie beside the file"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (m *Model) notice(s string) {
	if m.o.Notice != nil {
		m.o.Notice(s)
	}
}

// TensorBytes is the stored size of all tensors.
func (m *Model) TensorBytes() (n int64) {
	for _, t := range m.files.Tensors() {
		n += int64(len(t.Data))
	}
	return n
}

// Tensors lists the stored tensors; the slice is the file's own.
func (m *Model) Tensors() []tensor.View { return m.files.Tensors() }

// Tensor finds a stored tensor by its name in the file.
func (m *Model) Tensor(name string) (tensor.View, bool) { return m.files.Tensor(name) }

// KVTypes are the types of stored keys and values; they need no Load.
func (m *Model) KVTypes() (keys, values attn.Elem, err error) {
	if keys, err = m.elem(m.o.Keys); err == nil {
		values, err = m.elem(m.o.Values)
	}
	return keys, values, err
}

// Whole says that the model takes each sequence as a whole, in one batch: rows
// see later ones, or are pooled. (The source of an encoder-decoder is a matter
// of its own.)
func (m *Model) Whole() bool { return !m.Encodes() && graph.Whole(m.Traced.Graph) }

// BlockSize is the bytes of one key/value block of batch.BlockTokens
// positions; unlike BlockBytes it is known before Load.
func (m *Model) BlockSize() (int, error) {
	keys, values, err := m.KVTypes()
	return cpu.BlockBytes(m.Traced.Graph.Caches, func(int) bool { return true }, keys, values), err
}

// Reserve asks Load for a context of tokens and a pool of blocks, in place of
// what the options say. It must precede Load.
func (m *Model) Reserve(tokens, blocks int) error {
	size, err := m.BlockSize()
	m.o.Context, m.o.KVMemory = tokens, int64(blocks)*int64(size)
	return err
}

// SetContext asks Load for sequences of so many tokens, in place of what the
// options say. It must precede Load.
func (m *Model) SetContext(tokens int) { m.o.Context = tokens }

// WeightBytes is the size of the packed weights of all stages, 0 before Load.
func (m *Model) WeightBytes() (n int64) {
	for _, s := range m.stages {
		if w, ok := s.(interface{ WeightBytes() int }); ok {
			n += int64(w.WeightBytes())
		}
	}
	return n
}

// Exact is the machine that runs the graph as it stands; it needs no Load. What
// is the same for all tokens takes as much memory as there: see Fits.
func (m *Model) Exact() *ref.Machine {
	r := ref.New(m.Traced.Graph, m.files)
	r.RefuseNaN = true
	if m.o.Threads > 0 {
		r.Threads = m.o.Threads
	}
	return r
}

// Graph is the traced graph.
func (m *Model) Graph() *graph.Graph { return m.Traced.Graph }

// maxThreads bounds a team before anything is allocated for it.
const maxThreads = 1024

// Load packs the weights and reserves the key/value pool.
func (m *Model) Load() error {
	threads := m.o.Threads
	if threads <= 0 {
		threads = sys.UsableCPUs()
	}
	if threads > maxThreads {
		return fmt.Errorf("model: %d threads were asked for; %d are possible", threads, maxThreads)
	}
	if runtime.GOMAXPROCS(0) < threads+2 {
		runtime.GOMAXPROCS(threads + 2)
	}
	keys, values, err := m.KVTypes()
	if err != nil {
		return err
	}
	if err := m.Fits(); err != nil {
		return err
	}
	if m.team, err = sys.NewTeam(threads); err != nil {
		return err
	}
	programs, err := program.Cut(m.Program, m.o.Cut...)
	if err != nil {
		return err
	}
	if err := m.size(keys, values); err != nil {
		return err
	}
	for _, p := range programs {
		program.Assign(p)
		s, err := cpu.Load(p, m.files, cpu.Options{Limits: m.Limits, Team: m.team, Keys: keys, Values: values,
			Profile: m.o.Profile, RefuseNaN: true, Release: func(name string) { _ = m.files.Release(name) }})
		if errors.Is(err, syscall.ENOMEM) {
			return fmt.Errorf("model: %s: %w", m.Name, err)
		}
		if err != nil {
			return err
		}
		m.stages = append(m.stages, s)
	}
	return nil
}

// elem is a stored type by name. Where keys and values live for one batch only,
// exact ones cost nothing.
func (m *Model) elem(name string) (attn.Elem, error) {
	if name == "" {
		if name = "f16"; m.Whole() {
			name = "f32"
		}
	}
	switch name {
	case "f16":
		return attn.F16, nil
	case "f32":
		return attn.F32, nil
	case "bf16":
		return attn.BF16, nil
	}
	return 0, fmt.Errorf("model: key/value type %q: use f16, bf16 or f32", name)
}

// Forward runs one batch through all stages. Logits are valid until the next call.
func (m *Model) Forward(b *batch.Batch) error {
	var vals [][]float32
	var err error
	for _, s := range m.stages {
		if vals, err = s.Run(b, vals); err != nil {
			return err
		}
	}
	return nil
}

// Logits is row i of the last Forward's wanted rows, [vocabulary].
func (m *Model) Logits(i int) []float32 { return m.stages[len(m.stages)-1].Logits(i) }

// Vocab is the number of logits of a row.
func (m *Model) Vocab() int {
	g := m.Traced.Graph
	return g.Nodes[g.Outputs[0].Node].Width()
}

// Diagnose runs a batch again and names the first step with a value that is not finite.
func (m *Model) Diagnose(b *batch.Batch) string {
	var vals [][]float32
	for _, s := range m.stages {
		if found := s.Diagnose(b, vals); found != "" {
			return found
		}
		var err error
		if vals, err = s.Run(b, vals); err != nil {
			return err.Error()
		}
	}
	return ""
}

// Profile returns the times of the steps of each stage since the last call.
func (m *Model) Profile() [][]device.StepTime {
	var out [][]device.StepTime
	for _, s := range m.stages {
		out = append(out, s.Profile())
	}
	return out
}

// Close gives everything back.
func (m *Model) Close() error {
	var first error
	for _, s := range m.stages {
		if err := s.Close(); err != nil && first == nil {
			first = err
		}
	}
	if m.team != nil {
		m.team.Close()
	}
	if err := m.files.Close(); err != nil && first == nil {
		first = err
	}
	return first
}
