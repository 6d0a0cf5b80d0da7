package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/pull"
	"github.com/inferflow/inferflow/spec"
)

// checkFlags are what spec check takes.
type checkFlags struct {
	all, json, allowUnused bool
	set                    []string
}

func specCheckCommand() *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use:   "check [SPEC] MODEL",
		Short: "Trace a specification over a model's files and list all that does not fit",
		Long: `Traces SPEC (a file, or the name of a shipped one; without it the one that
serves the model) over the configuration and the tensors' shapes, and lists what
does not fit: tensors that are missing, unused or of another shape. No weight is
read: of MODEL it is enough that the folder holds config.json and the headers of
its safetensors files, or their index (then shapes are not checked).
Exit status 1 where something does not fit.`,
		Example: `  inferflow spec check my.star ./folder
  inferflow spec check ./folder --json`,
		Args: argsBetween(1, 2, "a specification and a model"),
		RunE: func(c *cobra.Command, args []string) error {
			return runCheck(c, args, f)
		},
	}
	c.Flags().BoolVar(&f.all, "all", false, "print every problem, also where only a layer's number differs")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	c.Flags().BoolVar(&f.allowUnused, "allow-unused", false, "stored tensors that the specification does not use are no problem")
	c.Flags().StringArrayVar(&f.set, "set", nil, "override a configuration value, KEY=VALUE (as in config.json)")
	return c
}

// chooseSpec is spec.Choose, but that a folder, which is no specification, does
// not hide a shipped one of its name.
func chooseSpec(ref string) spec.Options {
	if info, err := os.Stat(ref); err == nil && info.IsDir() && slices.Contains(spec.Library(), ref) {
		return spec.Options{Name: ref}
	}
	return spec.Choose(ref)
}

func runCheck(c *cobra.Command, args []string, f checkFlags) error {
	ref := ""
	if len(args) == 2 {
		ref = args[0]
	}
	o := chooseSpec(ref)
	o.AllowUnused = f.allowUnused
	set, err := parseSet(f.set)
	if err != nil {
		return err
	}
	o.Set = set
	path, err := pull.Resolve(c.Context(), args[len(args)-1], pull.Options{Progress: pull.Terminal(os.Stderr), Note: notice})
	if err != nil {
		return err
	}
	s, err := model.OpenSketch(path)
	if err != nil {
		return err
	}
	defer s.Close()
	o.FolderSpec = s.OwnSpec
	chosen, err := spec.Resolve(s, o)
	if err != nil {
		return err
	}
	tr, err := chosen.Trace(s)
	return reportCheck(newCheckResult(chosen.Name, s, tr, err), f)
}

// parseSet reads the values of --set.
func parseSet(list []string) (map[string]any, error) {
	var set map[string]any
	for _, s := range list {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, usagef("--set %q: want KEY=VALUE", s)
		}
		if set == nil {
			set = map[string]any{}
		}
		value, err := parseValue(v)
		if err != nil {
			return nil, usagef("--set %s=%s: %w", k, v, err)
		}
		set[k] = value
	}
	return set, nil
}

// checkResult is the outcome of a check, as it is printed with --json.
type checkResult struct {
	Spec     string         `json:"spec"`
	Fits     bool           `json:"fits"`
	Partly   string         `json:"partly,omitempty"` // what could not be checked
	Problems []checkProblem `json:"problems"`
	Ignored  []string       `json:"ignored_tensors,omitempty"`
	Unread   []string       `json:"unread_keys,omitempty"`
	Notes    []string       `json:"notes,omitempty"`
	Nodes    int            `json:"operations,omitempty"`
	Layers   int            `json:"layers,omitempty"`
	problems []spec.Problem
}

type checkProblem struct {
	Kind   string `json:"kind"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Tensor string `json:"tensor,omitempty"`
	Text   string `json:"text"`
}

// dull are keys of config.json that say nothing of what is computed.
var dull = []string{"transformers_version", "architectures", "model_type", "torch_dtype", "dtype", "use_cache", "_name_or_path", "auto_map", "vocab_size", "max_position_embeddings",
	"tie_word_embeddings", "return_dict", "_attn_implementation_autoset", "is_encoder_decoder", "chunk_size_feed_forward", "problem_type", "id2label", "label2id", "pretraining_tp",
	"output_router_logits", "router_aux_loss_coef", "router_z_loss_coef", "gradient_checkpointing", "finetuning_task", "tokenizer_class", "task_specific_params", "prefix", "_commit_hash",
	"hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads"} // held against the tensors anyway

// dullParts are what keys of training, of special tokens and of what is put out hold.
var dullParts = []string{"dropout", "layerdrop", "drop_path", "_pdrop", "initializer", "init_std", "jitter", "_token_id", "_token_index", "output_attentions", "output_hidden_states"}

// tells says that a key of config.json that nothing asked for is worth a look.
func tells(key string) bool {
	last := key[strings.LastIndexByte(key, '.')+1:]
	return !slices.Contains(dull, last) && !slices.ContainsFunc(dullParts, func(part string) bool { return strings.Contains(last, part) })
}

func newCheckResult(name string, s *model.Sketch, tr *spec.Traced, err error) checkResult {
	r := checkResult{Spec: name, Fits: err == nil, Partly: s.Note, Problems: []checkProblem{}}
	var unread []string
	var fit *spec.FitError
	switch {
	case errors.As(err, &fit):
		for _, p := range fit.Problems {
			if !s.NoTensors || p.Kind != spec.ProblemMissing {
				r.problems = append(r.problems, p)
			}
		}
		r.Fits, unread, r.Notes = len(r.problems) == 0, fit.Unread, fit.Printed
	case err != nil:
		r.problems = []spec.Problem{{Kind: spec.ProblemStop, Text: strings.TrimPrefix(err.Error(), "spec: "+spec.ErrTrace.Error()+": ")}}
	default:
		unread, r.Notes, r.Ignored = tr.Unread, tr.Notes, tr.Ignored
		if len(tr.IdleIgnores) > 0 && !slices.Contains(spec.Library(), strings.TrimSuffix(name, ".star")) {
			r.Notes = append(r.Notes, fmt.Sprintf("ignore(…) names what no unread tensor fits: %s", strings.Join(tr.IdleIgnores, ", ")))
		}
		if tr.Graph != nil && !tr.Sketch {
			r.Nodes, r.Layers = len(tr.Graph.Nodes), tr.Graph.Layers
		}
	}
	for _, k := range unread {
		if s.Binding() == spec.HF && tells(k) {
			r.Unread = append(r.Unread, k)
		}
	}
	for _, p := range r.problems {
		r.Problems = append(r.Problems, checkProblem{p.Kind, p.Line.File, p.Line.Line, p.Tensor, p.Text})
	}
	return r
}

// reportCheck prints the result; it is an error that something does not fit.
func reportCheck(r checkResult, f checkFlags) error {
	if f.json {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if e := enc.Encode(r); e != nil {
			return e
		}
	} else {
		fmt.Print(r.text(f.all))
	}
	if !r.Fits {
		return fmt.Errorf("spec check: %s does not fit the model", r.Spec)
	}
	return nil
}

// checkTitles are the kinds of problems in the order in which they are told.
var checkTitles = []struct{ kind, title string }{
	{spec.ProblemMissing, "tensors that the specification reads and the files lack"},
	{spec.ProblemUnused, "stored tensors that the specification does not read"},
	{spec.ProblemShape, "operations whose inputs do not fit"},
	{spec.ProblemOther, "other contradictions"},
	{spec.ProblemStop, "the trace stopped early"},
}

func (r *checkResult) text(all bool) string {
	var b strings.Builder
	for _, k := range checkTitles {
		var list []spec.Problem
		for _, p := range r.problems {
			if p.Kind == k.kind {
				list = append(list, p)
			}
		}
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s (%d)\n", k.title, len(list))
		counts := make([]int, len(list))
		if !all {
			list, counts = spec.Grouped(list)
		}
		for i, p := range list {
			more := ""
			if counts[i] > 1 {
				more = fmt.Sprintf(" (and %d more of the kind)", counts[i]-1)
			}
			fmt.Fprintf(&b, "  %s%s\n", strings.TrimSuffix(p.String(), ": name it in ignore(…) if it is not needed"), more)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	if len(r.Unread) > 0 {
		fmt.Fprintf(&b, "keys of config.json that nothing asked for: %s\n", strings.Join(r.Unread, ", "))
	}
	if r.Partly != "" {
		fmt.Fprintf(&b, "note: %s\n", r.Partly)
	}
	if r.Fits {
		fmt.Fprintf(&b, "%s fits", r.Spec)
		if r.Nodes > 0 {
			fmt.Fprintf(&b, ": %d operations, %d layers, every stored tensor read or ignored (%d)", r.Nodes, r.Layers, len(r.Ignored))
		}
		b.WriteByte('\n')
	}
	return plain(b.String())
}
