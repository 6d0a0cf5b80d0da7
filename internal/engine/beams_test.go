package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/sched"
)

// hypothesis is a text with its score.
type hypothesis struct {
	text  []int32
	score float64
	done  bool
}

// plainBeams is the search written out as transformers has it: K = (1 + ends) ·
// N continuations are taken, those that stop are pushed out of the running
// ones by −1e9, and finished ones are merged into N placeholders.
func plainBeams(b sample.Beams, prompt []int32, most int, end []int32) []hypothesis {
	n, limit := b.N, len(prompt)+most
	running := []hypothesis{{text: prompt}}
	finished := make([]hypothesis, n)
	for i := range finished {
		finished[i].score = -1e9
	}
	best := func(h []hypothesis, k int) []hypothesis {
		slices.SortStableFunc(h, func(a, b hypothesis) int { return cmp.Compare(b.score, a.score) })
		return h[:min(k, len(h))]
	}
	for length := len(prompt) + 1; ; length++ {
		var all []hypothesis
		for _, h := range running {
			row := hashed(h.text, 40)
			norm := logSumExp(row)
			for id, l := range row {
				all = append(all, hypothesis{text: append(slices.Clone(h.text), int32(id)), score: h.score + float64(l) - norm})
			}
		}
		all = best(all, max(2, 1+len(end))*n)
		var open []hypothesis
		merged := slices.Clone(finished)
		for i, h := range all {
			stops := length >= limit || slices.Contains(end, h.text[length-1])
			if stops && i < n {
				merged = append(merged, hypothesis{h.text, h.score / math.Pow(float64(length-len(prompt)), b.LengthPenalty), true})
			}
			if !stops {
				open = append(open, h)
			}
		}
		running, finished = best(open, n), best(merged, n)
		full := finished[n-1].done
		if length >= limit || full && b.Early == sample.EarlyYes {
			return finished
		}
		at := length
		if b.Early == sample.EarlyNever && b.LengthPenalty > 0 {
			at = limit
		}
		if full && running[0].score/math.Pow(float64(at-len(prompt)), b.LengthPenalty) <= finished[n-1].score {
			return finished
		}
	}
}

// beamRequests are searches of all kinds.
func beamRequests(n int) (list []Request) {
	for i := range n {
		p := sample.Defaults()
		p.Beams = sample.Beams{N: 2 + i%4, LengthPenalty: []float64{1, 0.4, 0, 2, -1}[i%5], Early: sample.Early(i % 3)}
		p.Logprobs = i%2 == 0
		list = append(list, Request{Prompt: ids(1+5*i%37, uint64(i)), Params: p, Max: 1 + 7*i%40, N: 1 + i%(2+i%4), End: [][]int32{nil, {3}, {3, 8}}[i%3]})
	}
	return list
}

// TestBeams holds searches against the plain one: alone, many at once, with few
// rows, little memory, recurrent states, and beside answers that are drawn.
func TestBeams(t *testing.T) {
	for _, o := range []Options{{Limits: limits(64, 8, 100), Blocks: 400}, {Limits: limits(9, 5, 100), Blocks: 60}, {Limits: limits(24, 16, 100), Blocks: 23},
		{Limits: sched.Limits{Rows: 24, Seqs: 16, Tokens: 100, States: 9}, Blocks: 23}} {
		m := newFake(t).keeping(o.Limits.States)
		e := start(t, m, o)
		var wg sync.WaitGroup
		for i, r := range beamRequests(30) {
			s := submit(t, e, r)
			if i%3 == 0 {
				submit(t, e, Request{Prompt: ids(1+i, 99), Params: sample.Defaults(), Max: 30, N: 2})
			}
			wg.Go(func() {
				want := plainBeams(r.Params.Beams, r.Prompt, r.Max, r.End)
				got, finish, err := collect(t, s)
				for k := range r.N {
					if err != nil || !slices.Equal(got[k], want[k].text[len(r.Prompt):]) || (finish[k] == FinishStop) != slices.Contains(r.End, got[k][len(got[k])-1]) {
						t.Errorf("%+v: request %d, answer %d: %v %s (%v), the plain search has %v", o, i, k, got[k], finish[k], err, want[k].text[len(r.Prompt):])
					}
				}
			})
		}
		wg.Wait()
		settled(t, e)
		if parked := e.Stats().Parked; (parked > 0) != (o.Blocks == 23) {
			t.Errorf("%+v: %d parked", o, parked)
		}
	}
}

// TestBeamScores checks scores and log-probabilities of the events.
func TestBeamScores(t *testing.T) {
	e := start(t, newFake(t), Options{Limits: limits(64, 8, 100), Blocks: 400})
	p := sample.Defaults()
	p.Beams, p.Logprobs = sample.Beams{N: 3, LengthPenalty: 0.7}, true
	r := Request{Prompt: ids(9, 4), Counted: 2, Params: p, Max: 12, N: 3, End: []int32{3}}
	s := submit(t, e, r)
	sums, lengths := make([]float64, 3), make([]int, 3)
	last := math.Inf(1)
	for {
		ev, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || ev.Err != nil {
			t.Fatal(err, ev.Err)
		}
		sums[ev.Choice] += float64(ev.Logprob)
		lengths[ev.Choice]++
		if ev.Finish != FinishNone {
			want := sums[ev.Choice] / math.Pow(float64(lengths[ev.Choice]+2), 0.7)
			if math.Abs(float64(ev.Score)-want) > 1e-4 || float64(ev.Score) > last {
				t.Errorf("answer %d scores %g, its tokens %g", ev.Choice, ev.Score, want)
			}
			last = float64(ev.Score)
		}
	}
	if tm := s.Timings(); tm.Tokens != lengths[0]+lengths[1]+lengths[2] || tm.Decode <= 0 || tm.PromptTokens != 9 {
		t.Errorf("%+v", tm)
	}
}

// TestBeamLimits refuses what the limits cannot hold, and cuts what was left open.
func TestBeamLimits(t *testing.T) {
	e := start(t, newFake(t).keeping(6), Options{Limits: sched.Limits{Rows: 64, Seqs: 8, Tokens: 2000, States: 6}, Blocks: 30})
	ask := func(change func(r *Request)) error {
		p := sample.Defaults()
		p.Beams.N = 3
		r := Request{Prompt: ids(20, 1), Params: p, Max: 40}
		change(&r)
		_, err := e.Submit(context.Background(), r)
		return err
	}
	for want, change := range map[string]func(r *Request){
		"num_beams is 65; it must be from 1 to 64": func(r *Request) { r.Params.Beams.N = 65 },
		"4 answers were asked for":                 func(r *Request) { r.N = 4 },
		"64 of 8 sequences":                        func(r *Request) { r.Params.Beams.N = 9 },
		"7 beams have a recurrent state each":      func(r *Request) { r.Params.Beams.N = 7 },
		"need up to 49 blocks":                     func(r *Request) { r.Max = 250 },
		"length_penalty is NaN":                    func(r *Request) { r.Params.Beams.LengthPenalty = math.NaN() },
		"top_logprobs does not go":                 func(r *Request) { r.Params.TopLogprobs = 2 },
		"mirostat, fsd_alpha":                      func(r *Request) { r.Params.FSD.Alpha = 0.5 },
		"20 of 20 tokens of the prompt count":      func(r *Request) { r.Counted = 20 },
	} {
		if err := ask(change); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	p := sample.Defaults()
	p.Beams = sample.Beams{N: 4, Early: sample.EarlyNever, LengthPenalty: 5}
	got, finish, err := collect(t, submit(t, e, Request{Prompt: ids(20, 1), Params: p}))
	if n := sched.GroupTokens(4, 0, 20, 30); err != nil || len(got[0]) != n || finish[0] != FinishLength {
		t.Errorf("%d tokens, %s, %v; there is room for %d", len(got[0]), finish[0], err, n)
	}
	settled(t, e)
}

// TestBeamErrors: whatever ends one beam ends its request, and no other.
func TestBeamErrors(t *testing.T) {
	for _, spoil := range []func(m *fake){func(m *fake) { m.nan = 7 }, func(m *fake) { m.fail = 7 }} {
		m := newFake(t)
		spoil(m)
		e := start(t, m, Options{Limits: limits(64, 40, 100), Blocks: 400})
		p := sample.Defaults()
		p.Beams = sample.Beams{N: 32, LengthPenalty: 1} // one of them will say 7
		bad := submit(t, e, Request{Prompt: []int32{1, 2, 4}, Params: p, Max: 30, N: 2})
		good := submit(t, e, Request{Prompt: []int32{5}, Params: sample.Defaults(), Max: 1})
		if _, finish, err := collect(t, bad); err == nil || finish[0] != FinishError || finish[1] != FinishError {
			t.Errorf("%v, %v", finish, err)
		}
		if _, _, err := collect(t, good); err != nil {
			t.Error(err)
		}
		settled(t, e)
	}
	// Rules that leave one continuation find one answer.
	p := sample.Defaults()
	p.Beams, p.Rules = sample.Beams{N: 2, LengthPenalty: 1}, &sample.Rules{MaxLength: 2, Last: []int32{9}}
	e := start(t, newFake(t), Options{Limits: limits(64, 8, 100), Blocks: 40})
	got, finish, err := collect(t, submit(t, e, Request{Prompt: []int32{1}, Params: p, Max: 1, N: 2}))
	if !slices.Equal(got[0], []int32{9}) || finish[1] != FinishError || !errors.Is(err, sample.ErrNoCandidate) {
		t.Errorf("%v, %v, %v", got, finish, err)
	}
}

// TestBeamStorm submits, reads, cancels and closes from many goroutines.
func TestBeamStorm(t *testing.T) {
	for _, l := range []sched.Limits{limits(24, 6, 64), {Rows: 24, Seqs: 6, Tokens: 64, States: 4}} {
		e := start(t, newFake(t).keeping(l.States), Options{Limits: l, Blocks: 21, Queue: 1000})
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 3))
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				p := sample.Defaults()
				p.Beams = sample.Beams{N: 1 + r.IntN(4), LengthPenalty: 1, Early: sample.Early(r.IntN(3))}
				s, err := e.Submit(ctx, Request{Prompt: ids(1+r.IntN(40), uint64(i)), Params: p, Max: 1 + r.IntN(20), N: 1 + r.IntN(p.Beams.N), End: []int32{3}})
				if err != nil {
					t.Error(err)
					return
				}
				switch r.IntN(4) {
				case 0:
					time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
				case 1:
					s.CancelChoice(0)
				default:
					for n := r.IntN(60); n >= 0; n-- {
						if _, err := s.Next(ctx); err != nil {
							break
						}
					}
				}
				if r.IntN(2) == 0 {
					s.Cancel()
				}
			})
		}
		wg.Wait()
		settled(t, e)
		if n := len(e.live); n > 0 {
			t.Errorf("%d tasks are left", n)
		}
	}
}

// TestSteadyBeams: once lists have grown, a step of a search allocates nothing.
func TestSteadyBeams(t *testing.T) {
	m := &flat{hashed([]int32{1}, 60)}
	o := Options{Limits: sched.Limits{Rows: 64, Seqs: 16, Tokens: 20000}, Blocks: 20000, Queue: 8}
	e := newEngine(m, o)
	p := sample.Defaults()
	p.Beams = sample.Beams{N: 8, LengthPenalty: 1}
	p.RepetitionPenalty = 1.1
	if _, err := e.Submit(context.Background(), Request{Prompt: []int32{1, 2, 3}, Params: p}); err != nil {
		t.Fatal(err)
	}
	step := func() {
		e.receive()
		e.tasks = e.sched.Next(&e.b, e.tasks)
		e.publish()
		e.step()
	}
	for range 700 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n > 2 {
		t.Errorf("a step allocates %.1f times", n)
	}
}
