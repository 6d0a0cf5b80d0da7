package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	historyEntries = 1000
	// An entry longer than this is remembered for the session alone.
	historyEntryBytes = 1 << 20
)

// messageHistory holds the messages of this and earlier sessions, the oldest
// first. Its file has one entry a line; a newline is written \n, a backslash \\.
type messageHistory struct {
	entries []string
	path    string // "": kept in memory alone
}

// historyPath is where the messages of earlier sessions are kept.
func historyPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "inferflow", "chat_history"), nil
}

// openHistory reads the file, which need not exist. Where it cannot be used,
// the history lasts as long as the program, and the error says why.
func openHistory(path string) (*messageHistory, error) {
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return &messageHistory{}, fmt.Errorf("chat: history: %w", err)
	}
	h := &messageHistory{path: path}
	for line := range strings.Lines(string(b)) {
		if s := unescapeEntry(strings.TrimRight(line, "\r\n")); s != "" {
			h.entries = append(h.entries, s)
		}
	}
	if n := len(h.entries); n > historyEntries {
		h.entries = h.entries[n-historyEntries:]
		return h, h.rewrite()
	}
	return h, nil
}

// add remembers a message, unless it repeats the last one.
func (h *messageHistory) add(s string) error {
	if n := len(h.entries); strings.TrimSpace(s) == "" || n > 0 && h.entries[n-1] == s {
		return nil
	}
	h.entries = append(h.entries, s)
	if n := len(h.entries); n > historyEntries {
		h.entries = h.entries[n-historyEntries:]
	}
	if h.path == "" || len(s) > historyEntryBytes {
		return nil
	}
	if err := h.append(s); err != nil {
		h.path = "" // said once
		return fmt.Errorf("chat: history: %w; messages are remembered until the end of the program", err)
	}
	return nil
}

func (h *messageHistory) append(s string) error {
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(escapeEntry(s) + "\n"); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// stale is the age from which on a file of rewrite's was left by a killed run.
const stale = time.Hour

// sweep removes what killed runs left half rewritten.
func (h *messageHistory) sweep() {
	left, err := os.ReadDir(filepath.Dir(h.path))
	if err != nil {
		return
	}
	for _, e := range left {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), "chat_history.") && info.Mode().IsRegular() && time.Since(info.ModTime()) > stale {
			os.Remove(filepath.Join(filepath.Dir(h.path), e.Name()))
		}
	}
}

// rewrite shortens the file to what is remembered.
func (h *messageHistory) rewrite() error {
	h.sweep()
	f, err := os.CreateTemp(filepath.Dir(h.path), "chat_history.*")
	if err != nil {
		return fmt.Errorf("chat: history: %w", err)
	}
	w := bufio.NewWriter(f)
	for _, s := range h.entries {
		w.WriteString(escapeEntry(s) + "\n")
	}
	err = w.Flush()
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), h.path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("chat: history: %w", err)
	}
	return nil
}

// find is the newest entry before index that holds part, -1 if none does.
func (h *messageHistory) find(part string, index int) int {
	for i := index - 1; i >= 0; i-- {
		if strings.Contains(h.entries[i], part) {
			return i
		}
	}
	return -1
}

var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

func escapeEntry(s string) string { return escaper.Replace(s) }

var unescaper = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")

func unescapeEntry(s string) string { return unescaper.Replace(s) }
