package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inferflow/inferflow/chat"
)

const chatHelp = `/help               this list
/clear              forget the conversation
/undo               take back the last message and its answer
/again              answer the last message anew
/system [TEXT]      show or set the system message; /system - removes it
/set [NAME [VALUE]] show or change settings: temperature, max-tokens, seed, …
/show               model, use of the context, system message and settings
/save FILE          write the conversation as text
/quit               leave (or Ctrl-D)

Enter sends. Several lines: paste them, or Alt-Enter, a \ at a line's end, or
""" before and after the text. A message that begins with a slash: put a space
before it. Up and Down: earlier messages; Ctrl-R: the last one that holds what
stands on the line. Ctrl-C stops an answer.`

// commandNames in the order in which Tab tries them.
var commandNames = []string{"/help", "/clear", "/undo", "/again", "/system", "/set", "/show", "/save", "/quit", "/exit", "/bye", "/?"}

// commandsIn takes a text apart: one command, which may go over several lines,
// or a list of them, one a line. It is nil where the text is a message.
func commandsIn(text string) []string {
	if !strings.HasPrefix(text, "/") {
		return nil
	}
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(s string) bool { return strings.TrimSpace(s) == "" })
	if !slices.ContainsFunc(lines, func(s string) bool { return !strings.HasPrefix(s, "/") }) {
		return lines
	}
	if slices.Contains(commandNames, strings.Fields(text)[0]) {
		return []string{text}
	}
	return nil
}

// completeCommand lengthens the beginning of a command to as much as all that
// begin so have in common, and of a setting's name likewise.
func completeCommand(s string) string {
	if name, ok := strings.CutPrefix(s, "/set "); ok {
		var names []string
		for _, v := range settings {
			names = append(names, v.name)
		}
		return "/set " + extend(name, names)
	}
	if len(s) > 1 && s[0] == '/' {
		return extend(s, commandNames)
	}
	return s
}

func extend(s string, all []string) string {
	found := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !strings.HasPrefix(n, s) })
	switch len(found) {
	case 0:
		return s
	case 1:
		return found[0] + " "
	}
	common := found[0]
	for _, n := range found[1:] {
		for !strings.HasPrefix(n, common) {
			common = common[:len(common)-1]
		}
	}
	return common
}

// command runs a text that begins with a slash.
func (t *talk) command(ctx context.Context, text string) {
	text = strings.TrimSpace(text)
	name := strings.Fields(text)[0]
	rest := strings.TrimSpace(strings.TrimPrefix(text, name))
	var err error
	switch name {
	case "/help", "/?":
		fmt.Fprintln(t.notes, chatHelp)
	case "/quit", "/exit", "/bye":
		t.ended = true
	case "/clear":
		fmt.Fprintf(t.notes, "The conversation (%s) is forgotten; system message and settings stay.\n", messages(len(t.history)))
		t.history, t.from, t.told = nil, 0, false
	case "/undo":
		err = t.undo()
	case "/again":
		err = t.again(ctx)
	case "/system":
		err = t.setSystem(rest)
	case "/set":
		err = t.set(rest)
	case "/show":
		t.show()
	case "/save":
		err = t.save(rest)
	default:
		err = fmt.Errorf("%s is not a command; /help lists them, and a space before the slash makes it a message", name)
	}
	if err != nil {
		fmt.Fprintln(t.notes, "error:", err)
	}
}

func messages(n int) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

// undo drops the last message and what followed it.
func (t *talk) undo() error {
	for n := len(t.history) - 1; n >= 0; n-- {
		if m := t.history[n]; m.Role == "user" {
			t.history, t.from = t.history[:n:n], 0
			fmt.Fprintf(t.notes, "Taken back: %q and its answer; %s left.\n", shortened(m.Content, 40), messages(n))
			return nil
		}
	}
	return errors.New("there is nothing to take back")
}

func shortened(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// again replaces the last answer; where no new one comes, the old one stays.
func (t *talk) again(ctx context.Context) error {
	n := len(t.history)
	if n < 2 {
		return errors.New("there is no answer yet")
	}
	before, from := t.history, t.from
	t.history = t.history[: n-1 : n-1]
	if t.p.Sample.Temperature > 0 {
		t.p.Sample.Seed++
	} else {
		fmt.Fprintln(t.notes, "At temperature 0 the answer is the same each time; /set temperature 1 varies it.")
	}
	if !t.answer(ctx) {
		t.history, t.from = before, from
	}
	return nil
}

func (t *talk) setSystem(text string) error {
	if !t.s.Converses() {
		return errors.New("the model has no chat template, and so no system message")
	}
	switch text {
	case "":
	case "-":
		if t.system == "" {
			return errors.New("there is no system message to remove")
		}
		t.system = ""
		fmt.Fprintln(t.notes, "The system message is removed.")
		return nil
	default:
		t.system = unquote(text)
	}
	fmt.Fprintln(t.notes, t.systemLine())
	return nil
}

func (t *talk) systemLine() string {
	if t.system == "" {
		return "system message: none"
	}
	return fmt.Sprintf("system message: %q", t.system)
}

// show tells the state of the conversation.
func (t *talk) show() {
	fmt.Fprintf(t.notes, "model: %s\n", t.s.Model.Name)
	used, err := t.used()
	left := ""
	if t.from > 0 {
		left = fmt.Sprintf(", the oldest %d of them left out", t.from)
	}
	if err != nil {
		fmt.Fprintf(t.notes, "context: %d tokens; %s%s\n", t.context(), messages(len(t.history)), left)
	} else {
		fmt.Fprintf(t.notes, "context: %d of %d tokens; %s%s\n", used, t.context(), messages(len(t.history)), left)
	}
	if t.s.Converses() {
		fmt.Fprintln(t.notes, t.systemLine())
	}
	fmt.Fprintln(t.notes, "settings:")
	t.showSettings()
}

// save writes the conversation to a new file.
func (t *talk) save(path string) error {
	if path == "" {
		return errors.New("/save needs a file")
	}
	if home, err := os.UserHomeDir(); err == nil && (strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`)) {
		path = filepath.Join(home, path[2:])
	}
	if len(t.history) == 0 {
		return errors.New("there is nothing to save yet")
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	var b strings.Builder
	for _, m := range append([]chat.Message{{Role: "system", Content: t.system}}, t.history...) {
		if m.Content != "" {
			fmt.Fprintf(&b, "[%s]\n%s\n\n", m.Role, m.Content)
		}
	}
	if err := writeNew(path, b.String()); err != nil {
		return err
	}
	fmt.Fprintf(t.notes, "Saved %s to %s\n", messages(len(t.history)), path)
	return nil
}

// writeNew writes a file that must not exist yet.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and is not overwritten; choose another name", path)
	}
	if err != nil {
		return err
	}
	if _, err = io.WriteString(f, text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
