package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
)

func limits(rows, seqs, tokens int) sched.Limits {
	return sched.Limits{Rows: rows, Seqs: seqs, Tokens: tokens}
}

func start(t *testing.T, m *fake, o Options) *Engine {
	e := New(m, o)
	t.Cleanup(e.Close)
	return e
}

func ids(n int, seed uint64) []int32 {
	r := rand.New(rand.NewPCG(seed, 9))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(r.IntN(40))
	}
	return out
}

// collect reads a stream to its end: the ids and the finish of each choice.
func collect(t *testing.T, s *Stream) (tokens [][]int32, finish []Finish, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tokens, finish = make([][]int32, s.Request.N), make([]Finish, s.Request.N)
	for {
		ev, e := s.Next(ctx)
		switch {
		case errors.Is(e, io.EOF):
			return tokens, finish, err
		case e != nil:
			t.Fatal(e)
		case ev.Prompt:
			continue
		case ev.Err != nil:
			err = ev.Err
		default:
			tokens[ev.Choice] = append(tokens[ev.Choice], ev.ID)
		}
		if ev.Finish != FinishNone {
			finish[ev.Choice] = ev.Finish
		}
	}
}

func submit(t *testing.T, e *Engine, r Request) *Stream {
	t.Helper()
	s, err := e.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// settled waits until the loop has nothing to do and everything is free.
func settled(t *testing.T, e *Engine) Stats {
	t.Helper()
	for range 2000 {
		if st := e.Stats(); st.Running == 0 && st.Waiting == 0 && st.BlocksUsed == 0 {
			return st
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("not all is free: %+v", e.Stats())
	return Stats{}
}

func requests() []Request {
	var rs []Request
	for i := range 24 {
		p := sample.Defaults()
		p.Seed, p.Temperature = uint64(i), []float64{0, 1, 0.7}[i%3]
		if i%4 == 3 {
			p.RepetitionPenalty, p.TopK = 1.2, 12
		}
		rs = append(rs, Request{Prompt: ids(1+i*3, uint64(i)), Params: p, Max: 1 + i, N: 1 + i%3, End: []int32{11}, PromptLogprobs: i%5 == 0})
	}
	return rs
}

// TestCompany: an answer does not depend on the company that a request keeps:
// alone, in a crowd, in small chunks, and where memory is so short that tasks
// are parked and computed again.
func TestCompany(t *testing.T) {
	alone := start(t, newFake(t), Options{Limits: limits(512, 64, 128), Blocks: 64})
	var want [][][]int32
	for _, r := range requests() {
		tokens, _, err := collect(t, submit(t, alone, r))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, tokens)
	}
	for _, o := range []Options{{Limits: limits(512, 64, 128), Blocks: 400}, {Limits: limits(7, 3, 128), Blocks: 64}, {Limits: limits(32, 64, 128), Blocks: 9},
		{Limits: withStates(3), Blocks: 400}, {Limits: withStates(64), Blocks: 9}} {
		e := start(t, newFake(t).keeping(o.Limits.States), o)
		var wg sync.WaitGroup
		for i, r := range requests() {
			s := submit(t, e, r)
			wg.Go(func() {
				got, finish, err := collect(t, s)
				if err != nil || !slices.EqualFunc(got, want[i], slices.Equal) {
					t.Errorf("%+v: request %d: %v (%v), alone %v", o.Limits, i, got, err, want[i])
				}
				for k, f := range finish {
					if last := got[k][len(got[k])-1]; (f == FinishStop) != (last == 11) || f == FinishNone {
						t.Errorf("request %d ended %q with token %d", i, f, last)
					}
				}
			})
		}
		wg.Wait()
		if st := settled(t, e); o.Blocks == 9 && st.Parked == 0 {
			t.Errorf("nothing was parked: %+v", st)
		}
	}
}

// withStates is a model with so many slots of recurrent states.
func withStates(n int) sched.Limits { return sched.Limits{Rows: 32, Seqs: 64, Tokens: 128, States: n} }

// keeping makes the model keep recurrent states where there are slots for them.
func (m *fake) keeping(slots int) *fake {
	if slots > 0 {
		m.slots = map[int32][]int32{}
	}
	return m
}

// gated makes a model wait before each step until the test lets it go on.
func gated(t *testing.T) *fake {
	m := newFake(t)
	m.gate, m.enter = make(chan struct{}), make(chan struct{})
	return m
}

// step waits for a Forward to begin and lets it end.
func (m *fake) step() { <-m.enter; m.gate <- struct{}{} }

// open lets the step that has begun and all further ones run.
func (m *fake) open() {
	m.mu.Lock()
	gate := m.gate
	m.gate, m.enter = nil, nil
	m.mu.Unlock()
	gate <- struct{}{}
}

// TestCancelWithinAStep: when the step under way ends, nothing of a cancelled
// request is left in the next.
func TestCancelWithinAStep(t *testing.T) {
	m := gated(t)
	e := start(t, m, Options{Limits: limits(64, 8, 128), Blocks: 60})
	ctx, cancel := context.WithCancel(context.Background())
	gone, err := e.Submit(ctx, Request{Prompt: ids(40, 1), Params: sample.Defaults(), N: 3})
	if err != nil {
		t.Fatal(err)
	}
	<-m.enter
	stays := submit(t, e, Request{Prompt: ids(10, 2), Params: sample.Defaults(), Max: 50})
	m.gate <- struct{}{}
	m.step()
	<-m.enter
	if st := e.Stats(); st.Running != 4 || st.BlocksUsed != 3+3+1 {
		t.Errorf("before: %+v", st)
	}
	cancel()
	for { // AfterFunc runs in a goroutine of its own
		e.mu.Lock()
		n := len(e.cancels)
		e.mu.Unlock()
		if n > 0 {
			break
		}
	}
	m.gate <- struct{}{}
	<-m.enter
	if st := e.Stats(); st.Running != 1 || st.BlocksUsed != 1 || st.Cancelled != 1 {
		t.Errorf("one step later: %+v", st)
	}
	m.open()
	if _, err := drain(gone); !errors.Is(err, io.EOF) {
		t.Errorf("the cancelled stream ends with %v", err)
	}
	if got, _, err := collect(t, stays); err != nil || len(got[0]) != 50 {
		t.Errorf("the other request got %d tokens: %v", len(got[0]), err)
	}
	settled(t, e)
}

func drain(s *Stream) (n int, err error) {
	for {
		if _, err = s.Next(context.Background()); err != nil {
			return n, err
		}
		n++
	}
}

// TestCancelChoice: one of three answers ends, the others go on.
func TestCancelChoice(t *testing.T) {
	m := gated(t)
	e := start(t, m, Options{Limits: limits(64, 8, 128), Blocks: 60})
	s := submit(t, e, Request{Prompt: ids(20, 1), Params: sample.Defaults(), N: 4, Max: 30})
	<-m.enter
	s.CancelChoice(3) // before the prompt is computed
	m.gate <- struct{}{}
	m.step()
	<-m.enter
	s.CancelChoice(1)
	s.CancelChoice(1)
	s.CancelChoice(17)
	m.gate <- struct{}{}
	<-m.enter
	if st := e.Stats(); st.Running != 2 || st.BlocksUsed != 2+2 || st.Cancelled != 0 {
		t.Errorf("with two choices left: %+v", st)
	}
	m.open()
	got, _, err := collect(t, s)
	if err != nil || len(got[0]) != 30 || len(got[2]) != 30 || len(got[1]) > 3 || len(got[3]) > 0 {
		t.Errorf("lengths %d %d %d %d: %v", len(got[0]), len(got[1]), len(got[2]), len(got[3]), err)
	}
	whole := submit(t, e, Request{Prompt: ids(20, 1), Params: sample.Defaults(), N: 2, Max: 100})
	whole.CancelChoice(0)
	whole.CancelChoice(1)
	if _, err := drain(whole); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	settled(t, e)
}

func TestQueueFull(t *testing.T) {
	m := gated(t)
	e := start(t, m, Options{Limits: limits(64, 1, 128), Blocks: 60, Queue: 2})
	r := Request{Prompt: ids(5, 1), Params: sample.Defaults(), Max: 3}
	first := submit(t, e, r)
	<-m.enter
	second, third := submit(t, e, r), submit(t, e, r)
	if _, err := e.Submit(context.Background(), r); !errors.Is(err, ErrQueueFull) {
		t.Errorf("a full queue gives %v", err)
	}
	if st := e.Stats(); st.Waiting != 2 {
		t.Errorf("%d wait", st.Waiting)
	}
	m.open()
	for _, s := range []*Stream{first, second, third} {
		if got, _, err := collect(t, s); err != nil || len(got[0]) != 3 {
			t.Errorf("%v %v", got, err)
		}
	}
}

func TestRefused(t *testing.T) {
	e := start(t, newFake(t), Options{Limits: limits(64, 8, 64), Blocks: 60})
	hot := sample.Defaults()
	hot.Temperature = -1
	d := sample.Defaults()
	for name, r := range map[string]Request{
		"no tokens":   {Params: d},
		"64 tokens":   {Prompt: ids(64, 1), Params: d},
		"answers":     {Prompt: ids(4, 1), Params: d, N: 129},
		"negative":    {Prompt: ids(4, 1), Params: d, Max: -1},
		"temperature": {Prompt: ids(4, 1), Params: hot},
		"from 0 to":   {Prompt: []int32{1, 40}, Params: d},
		"ids go":      {Prompt: []int32{-1}, Params: d},
	} {
		if _, err := e.Submit(context.Background(), r); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bias := d
	bias.LogitBias = map[int32]float32{99: 1}
	if _, _, err := collect(t, submit(t, e, Request{Prompt: ids(4, 1), Params: bias, N: 2})); !errors.Is(err, ErrRequest) {
		t.Errorf("a bias outside the vocabulary: %v", err)
	}
	settled(t, e)
}

// TestPromptLogprobs holds the events of a prompt in chunks against the logits
// of its prefixes.
func TestPromptLogprobs(t *testing.T) {
	p := sample.Defaults()
	p.TopLogprobs, p.Logprobs = 3, true
	prompt := ids(50, 4)
	var want []string
	for _, rows := range []int{512, 7} {
		e := start(t, newFake(t), Options{Limits: limits(rows, 8, 128), Blocks: 60})
		s := submit(t, e, Request{Prompt: prompt, Params: p, Max: 2, N: 2, PromptLogprobs: true})
		var got []string
		for at := 1; ; {
			ev, err := s.Next(context.Background())
			if err != nil {
				break
			}
			if !ev.Prompt {
				continue
			}
			if ev.ID != prompt[at] || ev.Choice != 0 || len(ev.Top) != 3 || ev.Top[0].Logprob < ev.Top[1].Logprob || ev.Top[0].Logprob < ev.Logprob {
				t.Errorf("event %d: %+v", at, ev)
			}
			at++
			got = append(got, fmt.Sprintf("%+v", ev))
		}
		if want == nil {
			want = got
		}
		if len(got) != 49 || !slices.Equal(got, want) {
			t.Errorf("rows %d: %d events", rows, len(got))
		}
	}
}

func TestLogprob(t *testing.T) {
	logits := []float32{1, 3, 2, float32(math.Inf(-1))}
	sum := 0.0
	for i := range logits {
		sum += math.Exp(Logprob(logits, int32(i)))
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("probabilities sum to %v", sum)
	}
}

// TestNonFinite: the request with the bad row ends with the layer named, its
// neighbours go on.
func TestNonFinite(t *testing.T) {
	m := newFake(t)
	m.nan = 39
	e := start(t, m, Options{Limits: limits(64, 8, 128), Blocks: 60})
	var p sample.Params = sample.Defaults()
	p.LogitBias = map[int32]float32{39: -100}
	good := []int32{1, 2, 3}
	bad := submit(t, e, Request{Prompt: []int32{4, 39}, Params: p, N: 3})
	fine := submit(t, e, Request{Prompt: good, Params: p, Max: 20})
	told := submit(t, e, Request{Prompt: []int32{39, 4}, Params: p, N: 2, PromptLogprobs: true})
	for _, s := range []*Stream{bad, told} {
		_, finish, err := collect(t, s)
		if !errors.Is(err, sample.ErrNonFinite) || !strings.Contains(err.Error(), "layer 3") {
			t.Errorf("bad logits end with %v", err)
		}
		for _, f := range finish {
			if f != FinishError {
				t.Errorf("a choice ends %q", f)
			}
		}
	}
	if got, _, err := collect(t, fine); err != nil || len(got[0]) != 20 {
		t.Errorf("the neighbour got %d tokens: %v", len(got[0]), err)
	}
	settled(t, e)
	if m.asked > 3 {
		t.Errorf("the batch was run %d times again", m.asked)
	}
}

// TestFailure: a device that fails ends the requests of its batch, all choices
// of them, and the engine goes on.
func TestFailure(t *testing.T) {
	m := newFake(t)
	m.fail = 39
	e := start(t, m, Options{Limits: limits(64, 8, 128), Blocks: 60})
	_, finish, err := collect(t, submit(t, e, Request{Prompt: []int32{39}, Params: sample.Defaults(), N: 3}))
	if !errors.Is(err, errBroken) || slices.Contains(finish, FinishNone) {
		t.Errorf("%v %v", finish, err)
	}
	p := sample.Defaults()
	p.LogitBias = map[int32]float32{39: -100}
	if got, _, err := collect(t, submit(t, e, Request{Prompt: []int32{1}, Params: p, Max: 4})); err != nil || len(got[0]) != 4 {
		t.Errorf("afterwards: %v %v", got, err)
	}
	if st := settled(t, e); st.Errors != 1 {
		t.Errorf("%d errors are counted", st.Errors)
	}
}

// TestContained: of several requests in one batch only the one that the device
// refuses ends; the others say what they say alone.
func TestContained(t *testing.T) {
	p := sample.Defaults()
	p.Temperature, p.LogitBias = 0, map[int32]float32{39: -100}
	said := func(fail int32, states int) [][]int32 {
		m := gated(t).keeping(states)
		m.fail = fail
		l := limits(64, 8, 128)
		l.States = states
		e := start(t, m, Options{Limits: l, Blocks: 60})
		first := submit(t, e, Request{Prompt: []int32{1}, Params: p, Max: 9})
		<-m.enter // the others queue while this step runs, and meet in the next
		var streams []*Stream
		for i := range 6 {
			r := Request{Prompt: []int32{int32(i + 2), 38, 3}, Params: p, Max: 6, N: 1 + i%2, PromptLogprobs: i == 4}
			if i == 3 {
				r.Prompt[1] = 39
			}
			streams = append(streams, submit(t, e, r))
		}
		go m.open()
		var out [][]int32
		for i, s := range append([]*Stream{first}, streams...) {
			got, _, err := collect(t, s)
			if bad := i == 4 && fail != 0; bad != errors.Is(err, errBroken) {
				t.Errorf("request %d ends with %v", i, err)
			} else if !bad {
				out = append(out, got...)
			}
		}
		if st := settled(t, e); fail != 0 && st.Errors != 1 {
			t.Errorf("%d errors are counted", st.Errors)
		}
		return out
	}
	want := slices.Delete(said(0, 0), 5, 7)
	for _, states := range []int{0, 16, 8} {
		if got := said(39, states); !reflect.DeepEqual(got, want) {
			t.Errorf("with a guilty one (%d states): %v\nwithout: %v", states, got, want)
		}
	}
}

// short is a model whose embedding lacks the last ids.
type short struct{ *fake }

func (short) Embeds() int { return 30 }

// TestEmbeds: a prompt holds only ids that the embedding has rows for.
func TestEmbeds(t *testing.T) {
	e := New(short{newFake(t)}, Options{Limits: limits(64, 8, 64), Blocks: 60})
	t.Cleanup(e.Close)
	_, err := e.Submit(context.Background(), Request{Prompt: []int32{1, 30}, Params: sample.Defaults()})
	if !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), "from 0 to 29") {
		t.Errorf("%v", err)
	}
	if _, _, err := collect(t, submit(t, e, Request{Prompt: []int32{29}, Params: sample.Defaults(), Max: 2})); err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	m := gated(t)
	e := New(m, Options{Limits: limits(8, 2, 128), Blocks: 60})
	r := Request{Prompt: ids(20, 1), Params: sample.Defaults(), N: 2}
	var streams []*Stream
	for range 5 {
		streams = append(streams, submit(t, e, r))
	}
	<-m.enter
	go m.open()
	e.Close()
	e.Close()
	for i, s := range streams {
		_, finish, err := collect(t, s)
		if !errors.Is(err, ErrClosed) || slices.Contains(finish, FinishNone) {
			t.Errorf("request %d ends %v with %v", i, finish, err)
		}
	}
	if _, err := e.Submit(context.Background(), r); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed engine takes requests: %v", err)
	}
	if st := e.Stats(); st.Running+st.Waiting+st.BlocksUsed != 0 {
		t.Errorf("after the end: %+v", st)
	}
}

// TestSlowReader: nobody who does not read his events holds up the others.
func TestSlowReader(t *testing.T) {
	e := start(t, newFake(t), Options{Limits: limits(64, 8, 128), Blocks: 60})
	slow := submit(t, e, Request{Prompt: ids(5, 1), Params: sample.Defaults(), Max: 100, N: 4})
	if got, _, err := collect(t, submit(t, e, Request{Prompt: ids(5, 2), Params: sample.Defaults(), Max: 100})); err != nil || len(got[0]) != 100 {
		t.Error(err)
	}
	settled(t, e)
	if n, err := drain(slow); n != 400 || !errors.Is(err, io.EOF) {
		t.Errorf("%d events: %v", n, err)
	}
	if tm := slow.Timings(); tm.Tokens != 400 || tm.PromptTokens != 5 || tm.Decode <= 0 {
		t.Errorf("%+v", tm)
	}
}

// TestStorm submits, reads, cancels and closes from many goroutines.
func TestStorm(t *testing.T) {
	for _, l := range []sched.Limits{limits(24, 6, 64), {Rows: 24, Seqs: 6, Tokens: 64, States: 4}} {
		storm(t, l)
	}
}

func storm(t *testing.T, l sched.Limits) {
	e := start(t, newFake(t).keeping(l.States), Options{Limits: l, Blocks: 14, Queue: 1000})
	var wg sync.WaitGroup
	for i := range 120 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 3))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s, err := e.Submit(ctx, Request{Prompt: ids(1+r.IntN(50), uint64(i)), Params: sample.Defaults(), Max: 1 + r.IntN(20), N: 1 + r.IntN(3), End: []int32{3}})
			if err != nil {
				t.Error(err)
				return
			}
			for n := r.IntN(60); n >= 0; n-- {
				ev, err := s.Next(ctx)
				if err != nil {
					break
				}
				if r.IntN(10) == 0 {
					s.CancelChoice(ev.Choice)
				}
			}
			if r.IntN(2) == 0 {
				s.Cancel()
			}
		})
	}
	wg.Wait()
	settled(t, e)
}

// TestLogprobBounds: an id without a logit has no probability, and ends nothing.
func TestLogprobBounds(t *testing.T) {
	for _, id := range []int32{-1, 2, 1 << 30} {
		if p := Logprob([]float32{0, 1}, id); !math.IsNaN(p) {
			t.Errorf("id %d: %g", id, p)
		}
	}
	if p := Logprob([]float32{0, 0}, 1); math.Abs(p+math.Ln2) > 1e-12 {
		t.Errorf("one of two: %g", p)
	}
}
