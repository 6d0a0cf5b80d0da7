package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/inferflow/inferflow/internal/sample"
)

// led is a fake that puts rows of its own before each prompt.
type led struct {
	*fake
	ids []int32
}

func (m led) Lead() []int32 { return m.ids }

// TestLead: rows before the text change the answers as that many tokens before
// the prompt would, in chunks and with beams; nothing tells of them but the room
// that they take.
func TestLead(t *testing.T) {
	lead := []int32{40, 41, 42, 43, 44, 45, 46, 47, 48}
	o := Options{Limits: limits(7, 5, 64), Blocks: 40}
	e := New(led{newFake(t), lead}, o)
	t.Cleanup(e.Close)
	p := sample.Defaults()
	p.Temperature, p.RepetitionPenalty = 0, 1.2
	prompt := ids(12, 3)
	text := slices.Concat(lead, prompt)
	var want []int32
	smp, err := sample.NewSampler(p, 40, prompt)
	if err != nil {
		t.Fatal(err)
	}
	for range 9 {
		res, err := smp.Next(hashed(text, 40), len(text), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		smp.Accept(res.ID)
		text, want = append(text, res.ID), append(want, res.ID)
	}
	s := submit(t, e, Request{Prompt: prompt, Params: p, Max: 9, N: 2, PromptLogprobs: true})
	told := 0
	var got []int32
	for {
		ev, err := s.Next(context.Background())
		if err != nil {
			break
		}
		switch {
		case ev.Prompt:
			if told++; ev.ID != prompt[told] {
				t.Errorf("prompt event %d is of token %d, want %d", told, ev.ID, prompt[told])
			}
			if want := float32(Logprob(hashed(slices.Concat(lead, prompt[:told]), 40), ev.ID)); ev.Logprob != want {
				t.Errorf("prompt event %d: log-probability %g, want %g", told, ev.Logprob, want)
			}
		case ev.Choice == 1:
			got = append(got, ev.ID)
		}
	}
	if told != len(prompt)-1 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d prompt events, answer %v, want %d and %v", told, got, len(prompt)-1, want)
	}
	if n := s.Timings().PromptTokens; n != len(prompt) {
		t.Errorf("the request counts %d tokens, not its %d", n, len(prompt))
	}
	if _, err := e.Submit(context.Background(), Request{Prompt: ids(64-len(lead), 1), Params: p}); !errors.Is(err, ErrRequest) {
		t.Errorf("a prompt that leaves no room beside the rows before it: %v", err)
	}
	full, _, err := collect(t, submit(t, e, Request{Prompt: ids(64-len(lead)-3, 1), Params: p}))
	if err != nil || len(full[0]) != 3 {
		t.Errorf("room for 3 tokens gives %v, %v", full, err)
	}
	if _, err := e.Submit(context.Background(), Request{Prompt: lead, Params: p}); !errors.Is(err, ErrRequest) {
		t.Errorf("ids of the rows before a text, given by a client: %v", err)
	}
	p = sample.Defaults()
	p.Beams.N = 3
	found, _, err := collect(t, submit(t, e, Request{Prompt: prompt, Params: p, Max: 6, N: 3}))
	plain := start(t, newFake(t), o)
	same, _, err2 := collect(t, submit(t, plain, Request{Prompt: prompt, Params: p, Max: 6, N: 3}))
	if err != nil || err2 != nil || len(found[0]) == 0 || fmt.Sprint(found) == fmt.Sprint(same) {
		t.Errorf("beams find %v (%v), without rows before %v (%v)", found, err, same, err2)
	}
	settled(t, e)
}
