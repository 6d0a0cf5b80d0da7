package sched

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/kv"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// talk is a scheduler that a text drives.
type talk struct {
	s     *Scheduler
	b     batch.Batch
	tasks []*Task
	names map[*Task]string
	byID  map[string]*Task
	forks map[string][]string // due when the task is next due for a token
	out   strings.Builder
}

func (k *talk) say(format string, a ...any) { fmt.Fprintf(&k.out, "    "+format+"\n", a...) }

// command runs one line of a conversation.
func (k *talk) command(line string) {
	var name, other string
	var n, m int
	is := func(format string, into ...any) bool {
		c, _ := fmt.Sscanf(line, format, into...)
		return c == len(into)
	}
	switch {
	case is("limits rows %d seqs %d tokens %d blocks", new(int), new(int), new(int)):
		var l Limits
		var blocks int
		fmt.Sscanf(line, "limits rows %d seqs %d tokens %d blocks %d states %d", &l.Rows, &l.Seqs, &l.Tokens, &blocks, &l.States)
		if _, after, ok := strings.Cut(line, "source "); ok {
			fmt.Sscan(after, &l.Source)
		}
		k.s = New(l, kv.NewPool(blocks))
		k.names, k.byID, k.forks = map[*Task]string{}, map[string]*Task{}, map[string][]string{}
	case is("add %s prompt %d max %d", &name, &n, &m):
		t := &Task{Prompt: n, Max: m, AllOut: strings.HasSuffix(line, "all")}
		if _, after, ok := strings.Cut(line, "source "); ok {
			length := 0
			fmt.Sscan(after, &length)
			t.Source = make([]int32, length)
		}
		for i := range n {
			t.Tokens = append(t.Tokens, int32(100+i))
		}
		if err := k.s.Add(t); err != nil {
			k.say("%v", err)
			return
		}
		k.names[t], k.byID[name] = name, t
	case is("fork %s as %s", &name, &other):
		k.forks[name] = append(k.forks[name], other)
	case is("cancel %s", &name):
		k.s.Remove(k.byID[name])
	case is("step %d", &n):
		for range n {
			k.step()
		}
	case line == "step":
		k.step()
	case line == "finish":
		for i := 0; i < 1000 && k.step(); i++ {
		}
	default:
		k.say("unknown command")
	}
}

// step runs a batch, commits a token to each task that is due and says what happened.
func (k *talk) step() bool {
	parks := k.s.parks
	k.tasks = k.s.Next(&k.b, k.tasks)
	var parts []string
	for i, t := range k.tasks {
		q := k.b.Seqs[i]
		part := fmt.Sprintf("%s %d", k.names[t], q.Start)
		if q.N > 1 {
			part += fmt.Sprintf("…%d", q.Start+q.N-1)
		}
		if k.b.Encode {
			part = fmt.Sprintf("%s encodes %d", k.names[t], q.N)
			k.s.Encoded(t)
		}
		parts = append(parts, part)
	}
	var ended []string
	for i, t := range k.tasks {
		if k.b.Encode {
			break
		}
		k.s.Computed(t, int(k.b.Seqs[i].N))
		if t.Done() == len(t.Tokens) {
			for _, name := range k.forks[k.names[t]] {
				f := k.s.Fork(t)
				k.names[f], k.byID[name] = name, f
				k.s.Commit(f, int32(len(f.Tokens)))
			}
			delete(k.forks, k.names[t])
		}
		if t.Done() == len(t.Tokens) && !k.s.Commit(t, int32(len(t.Tokens))) {
			k.s.Remove(t)
			ended = append(ended, k.names[t])
		}
	}
	st := k.s.Stats()
	line := fmt.Sprintf("[%s] out %d · running %d, waiting %d, blocks %d", strings.Join(parts, ", "), len(k.b.Out), st.Running, st.Waiting, st.BlocksUsed)
	if len(ended) > 0 {
		line += " · ends: " + strings.Join(ended, ", ")
	}
	if k.s.parks > parks {
		line += fmt.Sprintf(" · parked: %d", k.s.parks-parks)
	}
	k.say("%s", line)
	if err := k.s.Check(); err != nil {
		k.say("BROKEN: %v", err)
	}
	for _, c := range k.b.Copies {
		k.say("    state %d → %d", c.From, c.To)
	}
	return len(k.tasks) > 0
}

// TestConversations replays testdata/*.txt: lines that are not indented are
// commands, those below are what the scheduler does.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d conversations: %v", len(files), err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		k := &talk{}
		for line := range strings.Lines(string(want)) {
			if strings.HasPrefix(line, "    ") {
				continue
			}
			k.out.WriteString(line)
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				k.command(line)
			}
		}
		got := k.out.String()
		if strings.Contains(got, "BROKEN") {
			t.Errorf("%s:\n%s", file, got)
		}
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if got != string(want) {
			t.Errorf("%s: the scheduler does otherwise (-update accepts it):\n%s", file, got)
		}
	}
}
