package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/complete"
)

// chatFlags are what `chat` takes beside the model.
type chatFlags struct {
	model    modelFlags
	sampling samplingFlags
	system   string
}

func chatCommand() *cobra.Command {
	var f chatFlags
	c := &cobra.Command{
		Use:   "chat [MODEL]",
		Short: "Talk with a model in the terminal",
		Long: `Talks with a model. The conversation is remembered until /clear; when it
outgrows the context, its oldest turns are left out. /help lists the commands.

Enter sends a message. A pasted text stays one message until Enter; Alt-Enter,
a \ at a line's end and """ before and after a text make several lines too.
Ctrl-C stops an answer, not the program; Ctrl-D or /quit ends it. What is typed
during an answer waits on the line for the next Enter.

Where standard input is no terminal each line is a message, the answers go to
standard output and everything else to standard error.

Messages, but not commands, are kept for the Up key and Ctrl-R in the file
inferflow/chat_history of the user's configuration directory ($XDG_CONFIG_HOME
or ~/.config on Linux), which only the user may read.`,
		Example: `  inferflow chat smollm2
  inferflow chat ./model.gguf --system "Answer in one sentence." --temperature 0.3`,
		Args: argsBetween(0, 1, "one model"),
		RunE: func(c *cobra.Command, args []string) error {
			ref := demoName
			if len(args) == 1 {
				ref = args[0]
			}
			return f.run(c, ref)
		},
	}
	f.model.add(c.Flags())
	f.sampling.add(c.Flags())
	c.Flags().StringVar(&f.system, "system", "", "system message")
	return c
}

func (f *chatFlags) run(c *cobra.Command, ref string) error {
	o, err := f.model.options()
	if err != nil {
		return err
	}
	s, err := openService(c.Context(), ref, o)
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := f.sampling.params(s.Defaults())
	if err != nil {
		return err
	}
	if f.system != "" && !s.Converses() {
		return usagef("--system needs a chat template, and the model has none")
	}
	t := &talk{s: s, p: p, system: f.system, out: os.Stdout, notes: os.Stderr}
	if !c.Flags().Changed("max-tokens") && !s.Converses() && !s.Encodes() {
		t.p.Max = max(t.context()/4, 64) // a plain text has no end of its own
	}
	src, screen, done, err := openSource(os.Stderr)
	if err != nil {
		return err
	}
	defer done()
	ctx := c.Context()
	if t.src = src; screen != nil {
		t.person, t.notes, t.dims = true, screen, os.Getenv("NO_COLOR") == ""
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		fmt.Fprintf(t.notes, "%s · /help for help, Ctrl-D to leave\n", s.Model.Name)
	}
	if term.IsTerminal(int(os.Stdout.Fd())) {
		t.out = screenText{os.Stdout}
	}
	if s.Encodes() {
		fmt.Fprintln(t.notes, "This model reads each message by itself: what was said before is not part of it.")
	} else if !s.Converses() {
		fmt.Fprintln(t.notes, "This model has no chat template: it goes on with your text.")
	}
	return t.loop(ctx)
}

// talk is a conversation.
type talk struct {
	s       *complete.Service
	p       complete.Params
	system  string
	history []chat.Message
	from    int  // messages before this one no longer fit the context
	told    bool // that some do not
	src     messageSource
	out     io.Writer // answers
	notes   io.Writer // everything else
	dims    bool      // notes is a terminal that shows lesser weight
	person  bool      // somebody sees what fails
	failed  bool      // a message has no answer
	ended   bool
}

// loop reads messages and commands until the source or a command ends it. Where
// nobody watches, it returns an error if a message had no answer.
func (t *talk) loop(ctx context.Context) error {
	if err := t.converse(ctx); err != nil {
		return err
	}
	if t.failed && !t.person {
		return errors.New("chat: not every message was answered")
	}
	return nil
}

func (t *talk) converse(ctx context.Context) error {
	interrupted := false
	for !t.ended {
		text, err := t.src.read(ctx)
		switch {
		case errors.Is(err, errInterrupt):
			if interrupted {
				return nil
			}
			interrupted = true
			fmt.Fprintln(t.notes, "(Ctrl-C again, Ctrl-D or /quit leaves)")
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("chat: %w", err)
		}
		interrupted = false
		t.message(ctx, text)
	}
	return nil
}

// message does what a text asks for: commands, or an answer.
func (t *talk) message(ctx context.Context, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if list := commandsIn(text); list != nil {
		for _, c := range list {
			if !t.ended {
				t.command(ctx, c)
			}
		}
		return
	}
	if err := t.src.remember(text); err != nil {
		fmt.Fprintln(t.notes, err)
	}
	before := *t
	t.history = append(t.history, chat.Message{Role: "user", Content: text})
	if !t.answer(ctx) {
		t.history, t.from, t.failed = before.history, before.from, true
	}
}

// answer adds and shows an answer to the last message. Ctrl-C keeps what was
// said so far; false where nothing was.
func (t *talk) answer(ctx context.Context) bool {
	ids, err := t.fit()
	if err != nil {
		fmt.Fprintln(t.notes, "error:", err)
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer t.src.watch(cancel)()
	run, err := t.s.Start(ctx, ids, t.p)
	if err != nil {
		fmt.Fprintln(t.notes, "error:", err)
		return false
	}
	a, err := run.Collect(func(s string) { io.WriteString(t.out, s) })
	if a.Text != "" && !strings.HasSuffix(a.Text, "\n") {
		fmt.Fprintln(t.out)
	}
	stopped := errors.Is(err, context.Canceled)
	if err != nil && !stopped {
		fmt.Fprintln(t.notes, "error:", err)
	}
	if a.Text == "" && err != nil {
		fmt.Fprintln(t.notes, "(no answer; the message is taken back)")
		return false
	}
	t.history = append(t.history, chat.Message{Role: "assistant", Content: a.Text})
	t.statistics(a, stopped)
	return true
}

// statistics writes the line below an answer.
func (t *talk) statistics(a complete.Answer, stopped bool) {
	m, note := a.Timings, ""
	switch {
	case stopped:
		note = " · stopped"
	case a.Finish == "length" && t.p.Max > 0 && m.Tokens >= t.p.Max:
		note = fmt.Sprintf(" · cut off by max-tokens %d", t.p.Max)
	case a.Finish == "length":
		note = fmt.Sprintf(" · cut off by the end of the context of %d tokens", t.context())
	case a.Text == "":
		note = " · an empty answer"
	}
	s := fmt.Sprintf("%d + %d tokens, prompt %s, answer %s%s", m.PromptTokens, m.Tokens, rate(m.PromptTokens, m.Prefill.Seconds()),
		rate(m.Tokens-1, m.Decode.Seconds()), note)
	if t.dims {
		s = "\x1b[2m" + s + "\x1b[0m"
	}
	fmt.Fprintln(t.notes, s)
}

// screenText writes a model's text to a terminal, which must not obey control
// characters in it.
type screenText struct{ w io.Writer }

func (s screenText) Write(b []byte) (int, error) {
	_, err := io.WriteString(s.w, strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, string(b)))
	return len(b), err
}
