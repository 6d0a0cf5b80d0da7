package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/term"
)

// messageSource is where messages come from.
type messageSource interface {
	// read returns the next message; errInterrupt and io.EOF are not faults.
	read(ctx context.Context) (string, error)
	// watch calls interrupt on Ctrl-C until stop is called: while an answer is shown.
	watch(interrupt func()) (stop func())
	// remember takes a message into the history.
	remember(text string) error
}

// quotes begin and end a text of several lines.
const quotes = `"""`

// unquote takes the quotes from around a message.
func unquote(s string) string {
	t := strings.TrimSpace(s)
	if len(t) >= 2*len(quotes) && strings.HasPrefix(t, quotes) && strings.HasSuffix(t, quotes) && strings.Count(t, quotes) == 2 {
		return strings.Trim(t[len(quotes):len(t)-len(quotes)], "\n")
	}
	return s
}

// openSource says where messages come from and which file is the screen of the
// person who writes them, nil if none does.
func openSource(notes io.Writer) (src messageSource, screen *os.File, done func(), err error) {
	for _, f := range []*os.File{os.Stderr, os.Stdout} {
		if term.IsTerminal(int(f.Fd())) {
			screen = f
		}
	}
	switch {
	case !term.IsTerminal(int(os.Stdin.Fd())) || screen == nil:
		return &plainSource{r: bufio.NewReader(os.Stdin)}, nil, func() {}, nil
	case os.Getenv("TERM") == "dumb":
		return &plainSource{r: bufio.NewReader(os.Stdin), prompt: screen}, screen, func() {}, nil
	}
	h := &messageHistory{}
	path, err := historyPath()
	if err == nil {
		h, err = openHistory(path)
	}
	if err != nil {
		io.WriteString(notes, err.Error()+"\n")
	}
	e, done, err := openEditor(os.Stdin, screen, h)
	if err != nil {
		return nil, nil, nil, err
	}
	e.complete = completeCommand
	return e, screen, done, nil
}

// plainSource reads messages a line at a time, from a pipe, a file or a
// terminal that can do no more.
type plainSource struct {
	r      *bufio.Reader
	prompt io.Writer // nil: nobody waits for one
}

// read reads a line, or several: after a \ at the end, or between quotes.
func (p *plainSource) read(context.Context) (string, error) {
	line, err := p.line(firstPrompt)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(strings.TrimSpace(line), quotes) {
		text := line
		for strings.Count(text, quotes) < 2 {
			if line, err = p.line(morePrompt); err != nil {
				return strings.Replace(text, quotes, "", 1), nil
			}
			text += "\n" + line
		}
		return unquote(text), nil
	}
	text := line
	for strings.HasSuffix(text, `\`) {
		text = strings.TrimSuffix(text, `\`)
		if line, err = p.line(morePrompt); err != nil {
			return text, nil
		}
		text += "\n" + line
	}
	return text, nil
}

func (p *plainSource) line(prompt string) (string, error) {
	if p.prompt != nil {
		io.WriteString(p.prompt, prompt)
	}
	s, err := p.r.ReadString('\n')
	if err == io.EOF && s != "" {
		err = nil
	}
	return strings.TrimRight(s, "\r\n"), err
}

func (p *plainSource) watch(interrupt func()) (stop func()) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	quit := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			interrupt()
		case <-quit:
		}
	}()
	return func() { close(quit); cancel() }
}

func (p *plainSource) remember(string) error { return nil }
