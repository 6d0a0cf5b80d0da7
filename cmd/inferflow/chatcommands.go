package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/chat"
)

const chatHelp = `/help               this list
/clear              forget the conversation
/undo               take back the last question and its answer
/again              answer the last question anew
/system [TEXT]      show or set the system message
/set NAME VALUE     temperature, top-k, top-p, min-p, repetition-penalty, seed, max-tokens
/show               the settings
/save FILE          write the conversation as text
/quit               leave (or Ctrl-D)

A line that ends with \ goes on in the next one; """ begins and ends a text of
several lines. Ctrl-C stops an answer.`

// command runs a line that begins with a slash.
func (t *talk) command(ctx context.Context, line string) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "/help", "/?":
		fmt.Fprintln(t.out, chatHelp)
	case "/quit", "/exit", "/bye":
		t.ended = true
	case "/clear":
		t.history = nil
		fmt.Fprintln(t.out, "Forgotten.")
	case "/undo":
		t.undo()
		fmt.Fprintf(t.out, "%d messages remain.\n", len(t.history))
	case "/again":
		if n := len(t.history); n < 2 {
			fmt.Fprintln(t.out, "There is no answer yet.")
		} else {
			t.history = t.history[:n-1]
			if t.p.Sample.Temperature > 0 {
				t.p.Sample.Seed++
			}
			t.answer(ctx)
		}
	case "/system":
		if rest != "" {
			t.system = rest
		}
		fmt.Fprintf(t.out, "system message: %q\n", t.system)
	case "/set":
		if err := t.set(rest); err != nil {
			fmt.Fprintln(t.out, "error:", err)
		}
	case "/show":
		p := t.p.Sample
		fmt.Fprintf(t.out, "temperature %g, top-k %d, top-p %g, min-p %g, repetition-penalty %g, seed %d, max-tokens %d\n",
			p.Temperature, p.TopK, p.TopP, p.MinP, p.RepetitionPenalty, p.Seed, t.p.Max)
	case "/save":
		if err := t.save(rest); err != nil {
			fmt.Fprintln(t.out, "error:", err)
		}
	default:
		fmt.Fprintf(t.out, "%s is not a command; /help lists them.\n", name)
	}
}

// undo drops the last question and what followed it.
func (t *talk) undo() {
	for n := len(t.history) - 1; n >= 0; n-- {
		role := t.history[n].Role
		t.history = t.history[:n]
		if role == "user" {
			return
		}
	}
}

func (t *talk) set(arg string) error {
	name, value, _ := strings.Cut(arg, " ")
	x, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil {
		return fmt.Errorf("/set NAME VALUE: %q is not a number", value)
	}
	p := t.p
	switch name {
	case "temperature":
		p.Sample.Temperature = x
	case "top-k":
		p.Sample.TopK = int(x)
	case "top-p":
		p.Sample.TopP = x
	case "min-p":
		p.Sample.MinP = x
	case "repetition-penalty":
		p.Sample.RepetitionPenalty = x
	case "seed":
		p.Sample.Seed = uint64(x)
	case "max-tokens":
		p.Max = max(0, int(x))
	default:
		return fmt.Errorf("there is no setting %q; see /help", name)
	}
	if err := p.Sample.Validate(); err != nil {
		return err
	}
	t.p = p
	return nil
}

func (t *talk) save(path string) error {
	if path == "" {
		return fmt.Errorf("/save needs a file")
	}
	var b strings.Builder
	for _, m := range append([]chat.Message{{Role: "system", Content: t.system}}, t.history...) {
		if m.Content != "" {
			fmt.Fprintf(&b, "[%s]\n%s\n\n", m.Role, m.Content)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err = io.WriteString(f, b.String()); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// lineReader reads lines of any length from a pipe or file.
type lineReader struct{ r *bufio.Reader }

func newLineReader(r io.Reader) *lineReader { return &lineReader{bufio.NewReader(r)} }

func (l *lineReader) next() (string, error) {
	s, err := l.r.ReadString('\n')
	if err == io.EOF && s != "" {
		err = nil
	}
	return strings.TrimRight(s, "\r\n"), err
}
