package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/internal/sample"
)

// script is a source of messages that were written beforehand.
type script struct {
	lines     []string
	kept      []string
	interrupt bool // Ctrl-C before each answer
}

func (s *script) read(context.Context) (string, error) {
	if len(s.lines) == 0 {
		return "", io.EOF
	}
	l := s.lines[0]
	s.lines = s.lines[1:]
	if l == "^C" {
		return "", errInterrupt
	}
	return l, nil
}

func (s *script) watch(interrupt func()) func() {
	if s.interrupt {
		interrupt()
	}
	return func() {}
}

func (s *script) remember(text string) error { s.kept = append(s.kept, text); return nil }

const chatTemplate = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

func chatTalk(t *testing.T, o modeltest.Options) (tk *talk, s *script, out, notes *bytes.Buffer) {
	t.Helper()
	m, err := model.Open(modeltest.Write(t, t.TempDir(), o), model.Options{Threads: 1, Rows: 64, Seqs: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(); err != nil {
		m.Close()
		t.Fatal(err)
	}
	svc, err := complete.New(m, 0)
	if err != nil {
		m.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { svc.Close() })
	p := sample.Defaults()
	p.Temperature = 0
	s, out, notes = &script{}, &bytes.Buffer{}, &bytes.Buffer{}
	return &talk{s: svc, p: complete.Params{Sample: p}, src: s, out: out, notes: notes, person: true}, s, out, notes
}

func (s *script) play(t *testing.T, tk *talk, lines ...string) {
	t.Helper()
	s.lines = lines
	if err := tk.loop(context.Background()); err != nil {
		t.Fatal(err)
	}
}

var chatStory = []string{"Once", " upon", " a", " time", ".", "<|im_end|>"}

// TestTalk: answers alone go to out; commands confirm what they did in notes
// and stay out of the history.
func TestTalk(t *testing.T) {
	tk, s, out, notes := chatTalk(t, modeltest.Options{Story: chatStory, Template: chatTemplate})
	dir := t.TempDir()
	file := filepath.Join(dir, "talk.txt")
	s.play(t, tk, "Hi", "two\nlines", " ", "/undo", "/system Be brief.", "/set top-k 5", "/set top-p 3", "/set", "/show", "/save "+file, "/save "+file,
		"/system -", "/system -", "/clear", "/undo", "/again", "/nothing", "/usr/bin\nis a folder", "/set seed 7\n/set min-p", "^C", "^C", "unread")
	if got := out.String(); got != strings.Repeat("Once upon a time.\n", 3) {
		t.Errorf("answers: %q", got)
	}
	if want := []string{"Hi", "two\nlines", "/usr/bin\nis a folder"}; fmt.Sprint(s.kept) != fmt.Sprint(want) {
		t.Errorf("history: %q", s.kept)
	}
	text := notes.String()
	for _, want := range []string{`Taken back: "two\nlines" and its answer; 2 messages left.`, `system message: "Be brief."`, "top-k is 5 now (was 0)",
		`error: top-p cannot be "3"; allowed: above 0, at most 1`, "  repetition-penalty 1 ", "of 512 tokens; 2 messages\n", "Saved 2 messages to " + file,
		file + " exists and is not overwritten", "The system message is removed.", "error: there is no system message to remove",
		"The conversation (2 messages) is forgotten", "error: there is nothing to take back", "error: there is no answer yet",
		"error: /nothing is not a command", "seed is 7 now (was 0)", "min-p is 0; allowed: 0 (all tokens) to 1", "(Ctrl-C again"} {
		i := strings.Index(text, want)
		if i < 0 {
			t.Fatalf("no %q in what is left of the notes: %s", want, text)
		}
		text = text[i+len(want):]
	}
	b, err := os.ReadFile(file)
	if err != nil || string(b) != "[system]\nBe brief.\n\n[user]\nHi\n\n[assistant]\nOnce upon a time.\n\n" {
		t.Errorf("saved %q, %v", b, err)
	}
	if len(s.lines) != 1 {
		t.Errorf("left: %q", s.lines)
	}
}

// TestOldTurns: a conversation that outgrows the context goes on without its
// oldest turns, which is said once; a message that cannot fit is taken back.
func TestOldTurns(t *testing.T) {
	for _, template := range []string{chatTemplate, ""} {
		tk, s, out, notes := chatTalk(t, modeltest.Options{Story: chatStory, Template: template, Context: 128})
		tk.p.Max = 16
		lines := make([]string, 12)
		for i := range lines {
			lines[i] = fmt.Sprintf("message number %d", i)
		}
		s.play(t, tk, append(lines, strings.Repeat("too long ", 100), "/show")...)
		if n := strings.Count(out.String(), "\n"); n != len(lines) {
			t.Errorf("%d answers to %d messages: %s", n, len(lines), notes)
		}
		if n := strings.Count(notes.String(), "no longer fits"); n != 1 {
			t.Errorf("said %d times: %s", n, notes)
		}
		if !strings.Contains(notes.String(), "error: the message has") || len(tk.history) != 2*len(lines) || tk.from == 0 || tk.history[tk.from].Role != "user" {
			t.Errorf("%d messages from %d; %s", len(tk.history), tk.from, notes)
		}
		if ids, err := tk.prompt(tk.history[tk.from:], true); err != nil || len(ids) >= 128 {
			t.Errorf("%d tokens, %v", len(ids), err)
		}
	}
}

// TestStopped: an answer that is stopped before its first token leaves nothing
// behind, and /again keeps the answer that there was.
func TestStopped(t *testing.T) {
	tk, s, out, notes := chatTalk(t, modeltest.Options{Story: chatStory, Template: chatTemplate})
	tk.person = false
	s.play(t, tk, "Hi")
	tk.person = true
	s.interrupt = true
	s.play(t, tk, "again?", "/again")
	if len(tk.history) != 2 || out.String() != "Once upon a time.\n" || strings.Count(notes.String(), "taken back") == 0 {
		t.Errorf("%v; %q; %s", tk.history, out, notes)
	}
	tk.person = false
	if err := tk.loop(context.Background()); err == nil {
		t.Error("nobody is told of the message without an answer")
	}
}

func TestJoined(t *testing.T) {
	m := func(role, s string) chat.Message { return chat.Message{Role: role, Content: s} }
	if got := joined([]chat.Message{m("user", "Once"), m("assistant", " upon a dog."), m("user", "And"), m("assistant", " so\n"), m("user", "on"), m("user", ", …")}); got != "Once upon a dog. And so\non, …" {
		t.Errorf("%q", got)
	}
}

func TestCommandsIn(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
	}{
		{"hello", "[]"}, {" /show", "[]"}, {"/show", `["/show"]`}, {"/usr", `["/usr"]`}, {"/usr\nis", "[]"}, {"/set a 1\n\n/show\n", `["/set a 1" "/show"]`},
		{"/system one\ntwo", `["/system one\ntwo"]`}, {"/\n", `["/"]`},
	} {
		if got := fmt.Sprintf("%q", commandsIn(c.text)); got != c.want {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

func TestComplete(t *testing.T) {
	for in, want := range map[string]string{"/": "/", "/q": "/quit ", "/s": "/s", "/sy": "/system ", "/set te": "/set temperature ", "/set top": "/set top-", "x": "x", "/zz": "/zz"} {
		if got := completeCommand(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestPlainSource(t *testing.T) {
	p := &plainSource{r: bufio.NewReader(strings.NewReader("one\r\ntwo\\\nlines\n\"\"\"a\n\nb\"\"\"\n\"\"\"open\nend"))}
	for _, want := range []string{"one", "two\nlines", "a\n\nb", "open\nend"} {
		if got, err := p.read(context.Background()); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if _, err := p.read(context.Background()); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestScreenText(t *testing.T) {
	var b bytes.Buffer
	if n, err := (screenText{&b}).Write([]byte("a\x1b[2J\r\n\tb\u009b猫")); n != len("a\x1b[2J\r\n\tb\u009b猫") || err != nil || b.String() != "a[2J\n\tb猫" {
		t.Errorf("%d, %v, %q", n, err, b.String())
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "chat_history")
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{"one", "two\nlines", `back\slash \n`, "猫\ttab"}
	for _, s := range append(list, list[3], " ") {
		if err := h.add(s); err != nil {
			t.Fatal(err)
		}
	}
	if h, err = openHistory(path); err != nil || fmt.Sprintf("%q", h.entries) != fmt.Sprintf("%q", list) {
		t.Errorf("%q, %v", h.entries, err)
	}
	if i, err := os.Stat(path); err != nil || i.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", i.Mode(), err)
	}
	for i := range historyEntries {
		if err := h.append(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	h, err = openHistory(path)
	b, _ := os.ReadFile(path)
	if err != nil || len(h.entries) != historyEntries || h.entries[0] != "0" || bytes.Count(b, []byte("\n")) != historyEntries {
		t.Errorf("%d entries from %q, %v; %d lines", len(h.entries), h.entries[0], err, bytes.Count(b, []byte("\n")))
	}
	old, young := filepath.Join(filepath.Dir(path), "chat_history.123"), filepath.Join(filepath.Dir(path), "chat_history.456")
	for i, p := range []string{old, young} {
		at := time.Now().Add(-stale * time.Duration(3-2*i) / 2)
		if err := errors.Join(os.WriteFile(p, nil, 0o600), os.Chtimes(p, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	h.sweep()
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Error("what a killed run left stays")
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("what another run writes is gone: %v", err)
	}
	if h, err = openHistory(t.TempDir()); err == nil || h.add("x") != nil || h.find("x", 1) != 0 {
		t.Errorf("a folder as history: %v", err)
	}
}
