package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inferflow/inferflow/chat/jinja"
)

// ErrRefused marks a conversation that the template itself refuses, for example
// because roles do not alternate; errors.Is finds it.
var ErrRefused = jinja.ErrRaised

// ErrSyntax marks a template that does not parse.
var ErrSyntax = jinja.ErrSyntax

// ErrLimit marks a template that exceeded a limit.
var ErrLimit = jinja.ErrLimit

// ErrVariable marks a variable of Input.Extra that the template cannot be given.
var ErrVariable = errors.New("template variable")

// Arguments says in which form a template gets the arguments of tool calls.
type Arguments uint8

// The forms; Auto finds by a trial rendering which one the template can print.
const (
	ArgumentsAuto Arguments = iota
	ArgumentsObject
	ArgumentsText
)

// LateSystem says what becomes of system messages that are not the first.
type LateSystem uint8

// Late system messages are given to the template as they are, joined to the
// first message (with a blank line between), or become messages of the user.
// With Auto they are joined if and only if the template refuses them or leaves
// them out.
const (
	LateSystemKeep LateSystem = iota
	LateSystemMerge
	LateSystemUser
	LateSystemAuto
)

// Options say how a template is read and given its messages.
type Options struct {
	Limits     jinja.Limits
	Arguments  Arguments
	LateSystem LateSystem
	// DeveloperRole renames the role "developer"; "" keeps it. DeveloperAuto
	// renames it to "system" where the template refuses its messages or leaves
	// them out, or only those that are not the first.
	DeveloperRole string
	DeveloperAuto bool
	// SystemInUser joins system messages to the user's message that follows (a
	// blank line between), for templates that refuse the role. SystemAuto does so
	// if and only if the template refuses the role or leaves its messages out.
	SystemInUser, SystemAuto bool
}

// Template is a parsed chat template, safe for concurrent use.
type Template struct {
	prog *jinja.Template
	opts Options
	// lateDeveloper says that only a first message may be the developer's.
	lateDeveloper bool
	// trials is what is left for the trial renderings, while there are any.
	trials *jinja.Budget
}

// trialSteps and trialMemory bound the trial renderings of a template together:
// those in use take some thousands of steps.
const (
	trialSteps  = 300_000
	trialMemory = 32 << 20
)

// Names are the variables that the template names, its own among them.
func (t *Template) Names() []string { return t.prog.Names() }

// Piece is a stretch of the prompt; User says that it came from the
// conversation, so that no special token may be recognised in it.
type Piece = jinja.Piece

// Input is what a prompt is made of.
type Input struct {
	Messages            []Message
	Tools               []Tool
	AddGenerationPrompt bool
	// ContinueFinal ends the prompt with the content of the last message, for the
	// model to go on with.
	ContinueFinal bool
	BOS, EOS      string            // the text of the special tokens
	Tokens        map[string]string // further ones by variable, such as "pad_token"
	// Extra are further variables (chat_template_kwargs): what encoding/json
	// decodes to, or json.RawMessage. Their text counts as the conversation's.
	Extra map[string]any
	Now   time.Time // what strftime_now tells; zero means the present
}

// Parse reads a template in Jinja2 as Hugging Face transformers sets it up.
// Errors of syntax name line and column. What the options leave to the template
// is found by trial renderings; one that costs too much counts as refused.
func Parse(source string, o Options) (*Template, error) {
	return parse(source, o, &jinja.Budget{Steps: trialSteps, Memory: trialMemory})
}

func parse(source string, o Options, trials *jinja.Budget) (*Template, error) {
	prog, err := jinja.Parse(source, o.Limits)
	if err != nil {
		return nil, fmt.Errorf("chat: template: %w", err)
	}
	t := &Template{prog: prog, opts: o, trials: trials}
	if o.Arguments == ArgumentsAuto && strings.Contains(source, "arguments") {
		t.opts.Arguments = t.probeArguments()
	}
	t.probeRoles()
	t.trials = nil
	return t, nil
}

// try renders at the expense of the trials.
func (t *Template) try(in Input) (string, error) {
	vars, _, err := t.variables(in)
	if err != nil {
		return "", err
	}
	pieces, err := t.prog.RenderFrom(t.trials, vars, in.Now)
	return Join(pieces), err
}

// probeArguments renders a tool call to find which form of arguments the
// template can print: some join them to text, which an object would fail or
// show as Python prints dicts.
func (t *Template) probeArguments() Arguments {
	in := Input{Messages: []Message{
		{Role: "user", Content: "u"},
		{Role: "assistant", NoContent: true, ToolCalls: []ToolCall{{ID: "123456789", Name: "f", Arguments: []byte(`{"probe":"v"}`)}}},
		{Role: "tool", Content: "r", Name: "f", ToolCallID: "123456789"},
		{Role: "assistant", Content: "a"},
	}, Now: time.Unix(0, 0)}
	try := func(a Arguments, content bool) (string, error) {
		probe := &Template{prog: t.prog, opts: t.opts, trials: t.trials}
		probe.opts.Arguments = a
		in.Messages[1].NoContent = !content
		return probe.try(in)
	}
	for _, content := range []bool{false, true} {
		asObject, objErr := try(ArgumentsObject, content)
		_, textErr := try(ArgumentsText, content)
		if objErr != nil && textErr == nil {
			return ArgumentsText
		}
		if objErr == nil {
			if strings.Contains(asObject, "{'probe'") && textErr == nil {
				return ArgumentsText
			}
			return ArgumentsObject
		}
	}
	return ArgumentsObject
}

// Render gives the prompt in pieces; no two neighbours have the same User and
// none is empty. A refusal of the template is ErrRefused.
func (t *Template) Render(in Input) ([]Piece, error) {
	return t.RenderWithin(context.Background(), 0, in)
}

// RenderWithin is Render in at most the given steps of the template (0: the
// limit of Options); more are ErrLimit. It ends with ctx's error soon after ctx
// does. A message without content (null in a request, beside calls of tools) has
// no such key; where the template fails on that, it is rendered with an empty one.
func (t *Template) RenderWithin(ctx context.Context, steps int, in Input) ([]Piece, error) {
	pieces, err := t.renderWithin(ctx, steps, in)
	if err == nil || errors.Is(err, ErrLimit) || ctx.Err() != nil {
		return pieces, err
	}
	filled, changed := slices.Clone(in.Messages), false
	for i := range filled {
		if filled[i].NoContent {
			filled[i].NoContent, filled[i].Content, changed = false, "", true
		}
	}
	if !changed {
		return nil, err
	}
	in.Messages = filled
	if pieces, again := t.renderWithin(ctx, steps, in); again == nil {
		return pieces, nil
	}
	return nil, err
}

func (t *Template) renderWithin(ctx context.Context, steps int, in Input) ([]Piece, error) {
	vars, mark, err := t.variables(in)
	if err != nil {
		return nil, fmt.Errorf("chat: %w", err)
	}
	now := in.Now
	if now.IsZero() {
		now = time.Now()
	}
	pieces, err := t.prog.RenderWithin(ctx, steps, vars, now)
	if err != nil {
		return nil, fmt.Errorf("chat: template: %w", err)
	}
	if in.ContinueFinal {
		return cutAfter(pieces, mark)
	}
	return pieces, nil
}

// RenderString gives the prompt as one string.
func (t *Template) RenderString(in Input) (string, error) {
	pieces, err := t.Render(in)
	if err != nil {
		return "", err
	}
	return Join(pieces), nil
}

// Join gives the text of pieces.
func Join(pieces []Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

// continueMark is put behind the last message to find its end in the prompt.
const continueMark = "\uE0FFcontinue-here\uE0FF"

// cutAfter drops the last mark and all behind it. If the template trimmed the
// message, the mark lost the space that stood before it and so does the prompt.
func cutAfter(pieces []Piece, mark string) ([]Piece, error) {
	for i := len(pieces) - 1; i >= 0; i-- {
		k := strings.LastIndex(pieces[i].Text, mark)
		if k < 0 {
			continue
		}
		out := pieces[:i:i]
		if k > 0 {
			out = append(out, Piece{Text: pieces[i].Text[:k], User: pieces[i].User})
		}
		return out, nil
	}
	return nil, errors.New("chat: continue the last message: the template leaves its content out of the prompt")
}
