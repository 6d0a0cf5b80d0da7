package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/ergochat/readline"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/pull"
)

func chatCommand() *cobra.Command {
	var f modelFlags
	var sampling samplingFlags
	var system string
	c := &cobra.Command{
		Use:   "chat [MODEL]",
		Short: "Talk with a model in the terminal",
		Long: `Talks with a model. The conversation is remembered until /clear. Ctrl-C stops an
answer, not the program; Ctrl-D or /quit ends it. A line that ends with \ goes
on in the next; """ begins and ends a text of several lines. /help lists the
commands.`,
		Example: `  inferflow chat smollm2
  inferflow chat ./model.gguf --system "Answer in one sentence." --temperature 0.3`,
		Args: argsBetween(0, 1, "one model"),
		RunE: func(c *cobra.Command, args []string) error {
			ref := demoName
			if len(args) == 1 {
				ref = args[0]
			}
			o, err := f.options()
			if err != nil {
				return err
			}
			s, err := openService(c.Context(), ref, o)
			if err != nil {
				return err
			}
			defer s.Close()
			p, err := sampling.params(s.Defaults())
			if err != nil {
				return err
			}
			t := &talk{s: s, p: p, system: system, out: os.Stdout}
			return t.loop(c.Context())
		},
	}
	f.add(c.Flags())
	sampling.add(c.Flags())
	c.Flags().StringVar(&system, "system", "", "system message")
	return c
}

// talk is a conversation in the terminal.
type talk struct {
	s       *complete.Service
	p       complete.Params
	system  string
	history []chat.Message
	out     io.Writer
	ended   bool
}

// lines is where a person's lines come from.
type lines interface {
	Readline() (string, error)
	SetPrompt(string)
}

// plainLines reads lines that no person types.
type plainLines struct{ r *lineReader }

func (p plainLines) Readline() (string, error) { return p.r.next() }
func (p plainLines) SetPrompt(string)          {}

func openLines() (lines, func(), error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return plainLines{newLineReader(os.Stdin)}, func() {}, nil
	}
	cfg := &readline.Config{Prompt: "> ", HistoryLimit: 1000, DisableAutoSaveHistory: false}
	if dir, err := pull.CacheDir(); err == nil && os.MkdirAll(dir, 0o755) == nil {
		cfg.HistoryFile = filepath.Join(dir, "chat_history")
	}
	rl, err := readline.NewFromConfig(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("chat: terminal: %w", err)
	}
	return rl, func() { rl.Close() }, nil
}

func (t *talk) loop(ctx context.Context) error {
	in, done, err := openLines()
	if err != nil {
		return err
	}
	defer done()
	if _, ok := in.(plainLines); !ok {
		fmt.Fprintf(t.out, "%s · /help for help, Ctrl-D to leave\n", t.s.Model.Name)
	}
	if !t.s.Converses() {
		fmt.Fprintln(t.out, "This model has no chat template: it goes on with your text.")
	}
	interrupted := false
	for !t.ended {
		text, err := readText(in)
		switch {
		case errors.Is(err, readline.ErrInterrupt):
			if interrupted {
				return nil
			}
			interrupted = true
			fmt.Fprintln(t.out, "(Ctrl-C again, Ctrl-D or /quit leaves)")
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("chat: %w", err)
		}
		interrupted = false
		if strings.TrimSpace(text) == "" {
			continue
		}
		if strings.HasPrefix(text, "/") {
			t.command(ctx, text)
			continue
		}
		t.turn(ctx, text)
	}
	return nil
}

// readText reads a line, or several: after a \ at the end, or between """.
func readText(in lines) (string, error) {
	in.SetPrompt("> ")
	line, err := in.Readline()
	if err != nil {
		return "", err
	}
	block := strings.HasPrefix(strings.TrimSpace(line), `"""`)
	if block {
		line = strings.TrimPrefix(strings.TrimSpace(line), `"""`)
	}
	var all []string
	in.SetPrompt("… ")
	for {
		switch end := strings.HasSuffix(strings.TrimRight(line, " "), `"""`); {
		case block && end:
			return strings.Join(append(all, strings.TrimSuffix(strings.TrimRight(line, " "), `"""`)), "\n"), nil
		case !block && !strings.HasSuffix(line, `\`):
			return strings.Join(append(all, line), "\n"), nil
		}
		all = append(all, strings.TrimSuffix(line, `\`))
		if line, err = in.Readline(); err != nil {
			return "", err
		}
	}
}

// turn sends a message and shows the answer. Ctrl-C keeps what was said so far.
func (t *talk) turn(ctx context.Context, text string) {
	t.history = append(t.history, chat.Message{Role: "user", Content: text})
	t.answer(ctx)
}

func (t *talk) answer(ctx context.Context) {
	ids, err := t.prompt()
	if err != nil {
		t.refuse(err)
		return
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	run, err := t.s.Start(ctx, ids, t.p)
	if err != nil {
		t.refuse(err)
		return
	}
	a, err := run.Collect(func(s string) { io.WriteString(t.out, s) })
	if !strings.HasSuffix(a.Text, "\n") {
		fmt.Fprintln(t.out)
	}
	note := ""
	switch {
	case errors.Is(err, context.Canceled):
		note = " · stopped"
	case err != nil:
		fmt.Fprintln(t.out, "error:", err)
	case a.Finish == "length":
		note = " · cut off by the limit of tokens"
	}
	t.history = append(t.history, chat.Message{Role: "assistant", Content: a.Text})
	m := a.Timings
	t.dim(fmt.Sprintf("%d + %d tokens, prompt %s, answer %s%s", m.PromptTokens, m.Tokens, rate(m.PromptTokens, m.Prefill.Seconds()),
		rate(m.Tokens-1, m.Decode.Seconds()), note))
}

// refuse takes back a message that could not be answered.
func (t *talk) refuse(err error) {
	fmt.Fprintln(t.out, "error:", err)
	if strings.Contains(err.Error(), "context") {
		fmt.Fprintln(t.out, "The conversation no longer fits: /clear begins anew, /undo takes back the last turn.")
	}
	if n := len(t.history); n > 0 {
		t.history = t.history[:n-1]
	}
}

func (t *talk) prompt() ([]int32, error) {
	if !t.s.Converses() {
		var b strings.Builder
		for _, m := range t.history {
			b.WriteString(m.Content)
		}
		return t.s.Text(b.String(), false), nil
	}
	in := chat.Input{AddGenerationPrompt: true, Messages: t.history}
	if t.system != "" {
		in.Messages = append([]chat.Message{{Role: "system", Content: t.system}}, t.history...)
	}
	return t.s.Chat(in)
}

// dim writes a line of lesser weight where the terminal can.
func (t *talk) dim(s string) {
	if f, ok := t.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" {
		s = "\x1b[2m" + s + "\x1b[0m"
	}
	fmt.Fprintln(t.out, s)
}
