package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
)

func service(t *testing.T) *complete.Service {
	t.Helper()
	path := modeltest.Write(t, t.TempDir(), modeltest.Options{Story: []string{"Once", " upon", " a", " time", "<|im_end|>"},
		Template: "{% for m in messages %}{{ m.content }}{% endfor %}"})
	m, err := model.Open(path, model.Options{Threads: 1, Context: 512, Seqs: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Load(); err != nil {
		t.Fatal(err)
	}
	s, err := complete.New(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestWrite stops between two runs, and leaves half a line behind.
func TestWrite(t *testing.T) {
	s, path := service(t), filepath.Join(t.TempDir(), "stories.jsonl")
	o := options{parallel: 1, each: 2, top: 3}
	if err := write(s, path, 4, o); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"ids":[1,2`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if n, err := lines(path); n != 4 || err != nil {
		t.Fatalf("%d stories are there, %v; want 4", n, err)
	}
	if err := write(s, path, 8, o); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(all) != 6 { // the third prompt may have been under way
		t.Errorf("%d stories in all, want 6", len(all))
	}
	for _, l := range all {
		var st story
		if err := json.Unmarshal([]byte(l), &st); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		if n := len(st.IDs); n == 0 || len(st.Top) != n || len(st.Prob) != n {
			t.Errorf("%d ids, %d lists of likeliest, %d of probabilities", n, len(st.Top), len(st.Prob))
		}
		for i := range st.Top {
			if len(st.Top[i]) != len(st.Prob[i]) || len(st.Top[i]) > o.top {
				t.Errorf("place %d: %d likeliest with %d probabilities", i, len(st.Top[i]), len(st.Prob[i]))
			}
		}
	}
}

func TestJudge(t *testing.T) {
	s, o := service(t), options{parallel: 2, top: 2}
	for asked, losses := range map[string]int{"": 3, "Tell a story": 4} {
		var out bytes.Buffer
		if err := o.judge(s, asked, strings.NewReader(`{"text": "Once upon a time"}`+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		var j judged
		if err := json.Unmarshal(out.Bytes(), &j); err != nil {
			t.Fatal(err)
		}
		if j.N != losses || !(j.NLL > 0) || j.NLL > float64(losses)*0.5 || math.IsNaN(j.NLL) {
			t.Errorf("asked %q: loss %.3f of %d tokens, want little of %d", asked, j.NLL, j.N, losses)
		}
		if len(j.IDs) != 5 || len(j.Top) != 5 || s.Tok.Text(j.IDs[4]) != "<|im_end|>" {
			t.Errorf("asked %q: ids %v, want four and the end", asked, j.IDs)
		}
	}
	if err := o.judge(s, "", strings.NewReader("{\n"), &bytes.Buffer{}); err == nil {
		t.Error("a broken line is taken")
	}
}

func TestPrompt(t *testing.T) {
	seen := map[string]bool{}
	for i := range uint64(200) {
		seen[prompt(i)] = true
	}
	if len(seen) < 195 {
		t.Errorf("only %d of 200 prompts differ", len(seen))
	}
}
