package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/program"
)

// ProfileInfo says what was run and how long it took in all.
type ProfileInfo struct {
	Prefill        int     `json:"prefill"`         // tokens of the prompt
	Decode         int     `json:"decode"`          // tokens decoded after it
	PrefillSeconds float64 `json:"prefill_seconds"` // in all
	DecodeSeconds  float64 `json:"decode_seconds"`  // a token
	PrefillOutside float64 `json:"prefill_outside"` // of them outside the steps
	DecodeOutside  float64 `json:"decode_outside"`
}

// AddProfile loads m, which must have been opened with Options.Profile, runs a
// prompt of random ids and greedy decode after it, and enters the times by
// step and by line. A fused step's time is shared among its lines by the
// weight bytes that each one's nodes read; evenly where none reads any.
func (e *Explanation) AddProfile(ctx context.Context, m *model.Model, prefill, decode int) error {
	if m.Encodes() {
		return ErrEncodes
	}
	if m.Whole() {
		decode = 0 // it reads whole texts
	}
	if m.MaxContext > 0 && prefill+decode > m.MaxContext {
		return fmt.Errorf("bench: profile: %d and %d tokens do not fit the model's %d positions; ask for fewer with --prefill and --decode", prefill, decode, m.MaxContext)
	}
	if err := m.Reserve(prefill+decode+warmSteps, max(2, blocksFor(prefill+decode+warmSteps))); err != nil {
		return err
	}
	if err := m.Load(); err != nil {
		return err
	}
	r := &runner{f: m, c: &Config{}, rows: m.Limits.Rows, pool: newPool(vocabulary(m))}
	r.pool.states = m.Limits.States > 0
	pre, dec := make([]float64, len(m.Program.Steps)), make([]float64, len(m.Program.Steps))
	p := &ProfileInfo{Prefill: prefill, Decode: decode}
	prompt, answer := Test{kindPrefill, prefill, 0, 1}, Test{kindDecode, decode, prefill, 1}
	var err error
	if p.PrefillSeconds, err = timed(ctx, m, r.prefill, prompt, prompt, pre); err != nil {
		return fmt.Errorf("bench: profile: %w", err)
	}
	if decode > 0 {
		if p.DecodeSeconds, err = timed(ctx, m, r.decode, Test{kindDecode, warmSteps, prefill, 1}, answer, dec); err != nil {
			return fmt.Errorf("bench: profile: %w", err)
		}
		p.DecodeSeconds /= float64(decode)
	}
	p.PrefillOutside, p.DecodeOutside = p.PrefillSeconds, p.DecodeSeconds
	for i := range dec {
		dec[i] /= float64(max(1, decode))
		p.PrefillOutside -= pre[i]
		p.DecodeOutside -= dec[i]
	}
	e.Profile = p
	e.enter(m, pre, dec)
	return nil
}

// timed runs a test once to warm up and once for the times of its steps.
func timed(ctx context.Context, m *model.Model, run func(context.Context, Test) (time.Duration, error), warm, t Test, steps []float64) (float64, error) {
	if _, err := run(ctx, warm); err != nil {
		return 0, err
	}
	m.Profile()
	d, err := run(ctx, t)
	if err != nil {
		return 0, err
	}
	at := 0
	for _, stage := range m.Profile() {
		for _, s := range stage {
			if i := at + s.Step; i < len(steps) {
				steps[i] += s.Seconds
			}
		}
		at += len(stage)
	}
	return d.Seconds(), nil
}

// enter spreads the times of the program's steps.
func (e *Explanation) enter(m *model.Model, pre, dec []float64) {
	for g := range e.Groups {
		for s := range e.Groups[g].Steps {
			st := &e.Groups[g].Steps[s]
			for _, i := range st.at {
				st.Prefill += pre[i]
				st.Decode += dec[i]
			}
		}
	}
	at := map[graph.Line]*Line{}
	for i := range e.Lines {
		at[graph.Line{File: e.Lines[i].File, Line: e.Lines[i].Line}] = &e.Lines[i]
	}
	for i := range m.Program.Steps {
		for l, share := range shares(m.Program, i, m) {
			if line := at[l]; line != nil {
				line.Prefill += share * pre[i]
				line.Decode += share * dec[i]
			}
		}
	}
}

// shares divides a step among the lines of its nodes.
func shares(p *program.Program, i int, src Source) map[graph.Line]float64 {
	bytes := map[graph.Line]float64{}
	total := 0.0
	for _, id := range p.Steps[i].Nodes {
		n := p.Graph.Nodes[id]
		bytes[n.Line] += 0
		for _, w := range graph.AttrWeights(n.Attr) {
			b := float64(packedBytes(src, w))
			bytes[n.Line] += b
			total += b
		}
	}
	for l := range bytes {
		if total > 0 {
			bytes[l] /= total
		} else {
			bytes[l] = 1 / float64(len(bytes))
		}
	}
	return bytes
}
