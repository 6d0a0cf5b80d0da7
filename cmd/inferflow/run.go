package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/engine"
)

// runFlags are what `run` takes beside model and sampling.
type runFlags struct {
	model    modelFlags
	sampling samplingFlags
	beams    beamFlags
	raw      bool
	json     bool
	system   string
	stats    bool
	special  bool
	task     string
}

func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [MODEL] PROMPT",
		Short: "Answer one prompt",
		Long: `Answers one prompt and ends. MODEL is a name (smollm2), a file (.gguf,
.safetensors), a folder, hf:owner/repo/file or pypi:package/member; without it
the small demo model inside this program answers. PROMPT "-" is read from
standard input. An .ini file with a query_list answers that list.`,
		Example: `  inferflow run "Once upon a time"
  inferflow run smollm2 "Why is the sky blue?"
  inferflow run ./model.gguf "Write a haiku." --temperature 0 -n 64
  inferflow run ./model.gguf "def fib(n):" --raw --json
  inferflow run ./translator --task translate:en-fr "The house is small."`,
		Args: argsBetween(1, 2, "a prompt, or a model and a prompt"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if len(args) == 1 && isINI(args[0]) {
				return f.queries(ctx, args[0], c.Flags())
			}
			return f.run(ctx, args)
		},
	}
	f.model.add(c.Flags())
	f.sampling.add(c.Flags())
	f.beams.add(c.Flags())
	c.Flags().BoolVar(&f.raw, "raw", false, "continue the prompt as plain text, without the chat template")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object: text, prompt_ids, ids, finish, timings")
	c.Flags().StringVar(&f.system, "system", "", "system message before the prompt")
	c.Flags().BoolVar(&f.stats, "stats", false, "print tokens per second on standard error")
	c.Flags().StringVar(&f.task, "task", "", "what an encoder-decoder is to do with the text: summarize, translate:en-fr, …")
	c.Flags().BoolVar(&f.special, "show-special", false, "print special tokens too")
	return c
}

func (f *runFlags) run(ctx context.Context, args []string) error {
	ref, prompt := demoName, args[len(args)-1]
	if len(args) == 2 {
		ref = args[0]
	} else if isModel(prompt) {
		return usagef("%s is a model; give a prompt too: inferflow run %s \"…\"", prompt, prompt)
	}
	if prompt == "-" {
		var err error
		if prompt, err = readAll(os.Stdin, "standard input"); err != nil {
			return err
		}
	}
	prompt = strings.ToValidUTF8(prompt, "\uFFFD")
	o, err := f.model.options()
	if err != nil {
		return err
	}
	o.Beams = f.beams.beams
	var s *complete.Service
	if err := until(ctx, func() (err error) { s, err = openService(ctx, ref, o); return err }); err != nil {
		return err
	}
	defer s.Close()
	p, err := f.sampling.params(s.Defaults())
	if err != nil {
		return err
	}
	if err := f.beams.apply(&f.sampling, &p); err != nil {
		return err
	}
	p.ShowSpecial = f.special
	ids, err := f.prompt(s, prompt, &p)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return usagef("the prompt is empty, and this model begins no text by itself")
	}
	run, err := s.Start(ctx, ids, p)
	if err != nil {
		return err
	}
	if continued := (f.raw || !s.Converses()) && !s.Encodes(); continued && !f.json && term.IsTerminal(int(os.Stdout.Fd())) {
		fmt.Print(prompt) // a person reads the whole text; a pipe gets the answer alone
	}
	return f.print(run, ids)
}

// prompt encodes the prompt: as a conversation where the model has a chat
// template, as the source of a task where one is named.
func (f *runFlags) prompt(s *complete.Service, prompt string, p *complete.Params) ([]int32, error) {
	if f.task != "" {
		if f.raw || f.system != "" {
			return nil, usagef("--task stands alone: it says itself how the text is put, so neither --raw nor --system goes with it")
		}
		ids, err := s.Task(f.task, prompt, p)
		if errors.Is(err, complete.ErrTask) {
			err = usageError{err}
		}
		return ids, err
	}
	if f.raw || !s.Converses() {
		if f.system != "" {
			return nil, usagef("--system needs a chat template: the model has none, or --raw was given")
		}
		if !f.raw && s.Model.Name != demoName && !s.Encodes() {
			notice("this model has no chat template: it goes on with the prompt as plain text")
		}
		return s.Text(prompt, f.raw)
	}
	in := chat.Input{AddGenerationPrompt: true, Messages: []chat.Message{{Role: "user", Content: prompt}}}
	if f.system != "" {
		in.Messages = append([]chat.Message{{Role: "system", Content: f.system}}, in.Messages...)
	}
	return s.Chat(in)
}

func (f *runFlags) print(run *complete.Run, ids []int32) error {
	var show func(string)
	var lost error
	if !f.json {
		show = func(t string) {
			if _, err := os.Stdout.WriteString(t); err != nil && lost == nil {
				lost = fmt.Errorf("standard output: %w", err)
				run.Cancel()
			}
		}
	}
	a, err := run.Collect(show)
	if lost != nil {
		return lost
	}
	if err != nil && len(a.IDs) == 0 {
		return err
	}
	if f.json {
		if err := printAnswer(os.Stdout, ids, a); err != nil {
			return err
		}
	} else if !strings.HasSuffix(a.Text, "\n") {
		if _, err := fmt.Println(); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
	}
	if f.stats {
		t := a.Timings
		fmt.Fprintf(os.Stderr, "prompt %d tokens, %s; answer %d tokens, %s\n", t.PromptTokens, rate(t.PromptTokens, t.Prefill.Seconds()),
			t.Tokens, rate(t.Tokens-1, t.Decode.Seconds()))
	}
	return err
}

// printAnswer writes the JSON object that scripts read.
func printAnswer(w io.Writer, ids []int32, a complete.Answer) error {
	return json.NewEncoder(w).Encode(struct {
		Text    string        `json:"text"`
		Prompt  []int32       `json:"prompt_ids"`
		IDs     []int32       `json:"ids"`
		Finish  engine.Finish `json:"finish"`
		Score   *float32      `json:"score,omitempty"` // of a search with beams
		Timings jsonTimings   `json:"timings"`
	}{a.Text, ids, a.IDs, a.Finish, a.Score, timingsOf(a.Timings)})
}

type jsonTimings struct {
	Prompt          int     `json:"prompt_tokens"`
	Tokens          int     `json:"tokens"`
	PrefillSeconds  float64 `json:"prefill_seconds"`
	DecodeSeconds   float64 `json:"decode_seconds"`
	PromptPerSecond float64 `json:"prompt_tokens_per_second"`
	TokensPerSecond float64 `json:"tokens_per_second"`
}

func timingsOf(t engine.Timings) jsonTimings {
	j := jsonTimings{Prompt: t.PromptTokens, Tokens: t.Tokens, PrefillSeconds: t.Prefill.Seconds(), DecodeSeconds: t.Decode.Seconds()}
	if j.PrefillSeconds > 0 {
		j.PromptPerSecond = float64(t.PromptTokens) / j.PrefillSeconds
	}
	if j.DecodeSeconds > 0 && t.Tokens > 1 {
		j.TokensPerSecond = float64(t.Tokens-1) / j.DecodeSeconds
	}
	return j
}
