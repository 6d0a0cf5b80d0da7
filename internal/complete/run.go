package complete

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/inferflow/inferflow/internal/engine"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/tokenizer"
)

// Chunk is a piece of one answer, or of the prompt's log-probabilities.
type Chunk struct {
	Choice  int
	Prompt  bool
	Text    string // never half a rune, and nothing that a stop string may yet swallow
	ID      int32
	Logprob float32
	Top     []sample.TokenLogprob
	Last    bool          // no more chunks of this choice
	Finish  engine.Finish // with the last chunk
	Score   *float32      // of an answer that a search with beams found, with its last chunk
	Err     error
}

// Run is a request under way.
type Run struct {
	s       *Service
	p       Params
	ctx     context.Context
	cancel  context.CancelFunc
	stream  *engine.Stream
	choices []choice
	over    int

	searched bool // with beams: the answers come at the end
}

type choice struct {
	dec  *tokenizer.Decoder
	stop *sample.Stopper
	done bool
}

// Next returns the next chunk, io.EOF after the last. Where the context ended the
// run, it is the context's cause.
func (r *Run) Next() (Chunk, error) {
	for {
		if r.over == len(r.choices) {
			r.cancel()
			return Chunk{}, io.EOF
		}
		ev, err := r.stream.Next(r.ctx)
		if err != nil {
			if r.ctx.Err() != nil {
				err = context.Cause(r.ctx)
			}
			return Chunk{}, err
		}
		if !r.choices[ev.Choice].done {
			return r.chunk(ev), nil
		}
	}
}

func (r *Run) chunk(ev engine.Event) Chunk {
	c := &r.choices[ev.Choice]
	out := Chunk{Choice: ev.Choice, Prompt: ev.Prompt, ID: ev.ID, Logprob: ev.Logprob, Top: ev.Top, Finish: ev.Finish, Err: ev.Err}
	if ev.Prompt {
		out.Text = r.s.Tok.Text(ev.ID)
		return out
	}
	if r.searched && ev.Finish != engine.FinishNone && ev.Err == nil {
		out.Score = &ev.Score
	}
	stopped := false
	if ev.Err == nil && ev.Finish != engine.FinishStop {
		out.Text, stopped = c.stop.Push(c.dec.Next(ev.ID))
	}
	if ev.Finish != engine.FinishNone && !stopped {
		var tail string
		tail, stopped = c.stop.Push(c.dec.Flush())
		out.Text += tail
		if !stopped {
			out.Text += c.stop.Flush()
		}
	}
	if stopped {
		out.Finish = engine.FinishStop
	}
	if out.Finish != engine.FinishNone {
		out.Last, c.done = true, true
		r.over++
		r.stream.CancelChoice(ev.Choice) // a stop string is seen here first
	}
	return out
}

// Timings of the request so far.
func (r *Run) Timings() engine.Timings { return r.stream.Timings() }

// Cancel ends the request.
func (r *Run) Cancel() { r.cancel() }

// Answer collects a whole answer of a single choice.
type Answer struct {
	Text    string
	IDs     []int32
	Finish  engine.Finish
	Score   *float32 // of a search with beams
	Timings engine.Timings
}

// Collect reads a run of one choice to its end, passing each text to show.
func (r *Run) Collect(show func(text string)) (Answer, error) {
	defer r.cancel()
	var a Answer
	var text strings.Builder
	for {
		c, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = c.Err
		}
		if err != nil {
			a.Text, a.Timings = text.String(), r.Timings()
			return a, err
		}
		if c.Prompt {
			continue
		}
		a.IDs = append(a.IDs, c.ID)
		text.WriteString(c.Text)
		if show != nil {
			show(c.Text)
		}
		if c.Last {
			a.Finish, a.Score = c.Finish, c.Score
		}
	}
	a.Text, a.Timings = text.String(), r.Timings()
	return a, nil
}
