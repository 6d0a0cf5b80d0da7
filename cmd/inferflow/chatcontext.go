package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/inferflow/inferflow/chat"
	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/complete"
)

// answerRoom is the tokens kept free for an answer that has no smaller limit;
// in a short context a quarter of it.
const answerRoom = 1024

// context is the tokens that a conversation and its answer may have.
func (t *talk) context() int {
	l := t.s.Model.Limits
	if most := l.Blocks * batch.BlockTokens; most > 0 {
		return min(l.Tokens, most)
	}
	return l.Tokens
}

// fit encodes the conversation, without its oldest turns where the context
// cannot hold them and an answer. The last message is never left out.
func (t *talk) fit() ([]int32, error) {
	room := min(t.context()/4, answerRoom)
	if t.p.Max > 0 {
		room = min(room, t.p.Max)
	}
	for {
		ids, err := t.prompt(t.history[t.from:], true)
		if err != nil || len(ids)+room <= t.context() {
			return ids, err
		}
		next := t.nextTurn()
		switch {
		case next >= 0:
			t.from = next
		case len(ids) < t.context():
			return ids, nil
		default:
			return nil, fmt.Errorf("the message has %d tokens with what stands around it, the context holds %d: shorten it, or start with a larger --context",
				len(ids), t.context())
		}
		if !t.told {
			t.told = true
			fmt.Fprintf(t.notes, "The conversation no longer fits the context of %d tokens: its oldest turns are left out from now on. /clear begins anew.\n", t.context())
		}
	}
}

// nextTurn is the first message of the turn after the oldest one, -1 where
// there is only one turn.
func (t *talk) nextTurn() int {
	for i := t.from + 1; i < len(t.history); i++ {
		if t.history[i].Role == "user" {
			return i
		}
	}
	return -1
}

// prompt encodes messages behind the system message.
func (t *talk) prompt(messages []chat.Message, answer bool) ([]int32, error) {
	if t.s.Encodes() && !t.s.Converses() {
		text, err := complete.Said(chat.Input{Messages: messages})
		if err != nil {
			return nil, err
		}
		return t.s.Text(text, false)
	}
	if !t.s.Converses() {
		return t.s.Text(joined(messages), false)
	}
	in := chat.Input{AddGenerationPrompt: answer, Messages: messages}
	if t.system != "" {
		in.Messages = append([]chat.Message{{Role: "system", Content: t.system}}, messages...)
	}
	return t.s.Chat(in)
}

// joined is the text of a conversation with a model that knows no turns. A
// message that begins with a letter does not run into the word before it.
func joined(messages []chat.Message) string {
	var b strings.Builder
	last := ' '
	for _, m := range messages {
		for i, r := range m.Content {
			if i == 0 && m.Role == "user" && !unicode.IsSpace(last) && (unicode.IsLetter(r) || unicode.IsNumber(r)) {
				b.WriteByte(' ')
			}
			last = r
		}
		b.WriteString(m.Content)
	}
	return b.String()
}

// used is the tokens of the conversation that the context holds now.
func (t *talk) used() (int, error) {
	if len(t.history) == t.from && t.system == "" {
		return 0, nil
	}
	ids, err := t.prompt(t.history[t.from:], false)
	return len(ids), err
}
