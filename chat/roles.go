package chat

import (
	"strings"
	"time"
)

// probeRoles renders two small conversations to settle what the options leave
// to the template: whether it takes system messages, and late ones.
func (t *Template) probeRoles() {
	const first, late = "first-system-probe", "late-system-probe"
	talk := []Message{{Role: "user", Content: "u"}, {Role: "assistant", Content: "a"}, {Role: "user", Content: "v"}}
	if t.opts.SystemAuto {
		t.opts.SystemAuto = false
		system := append([]Message{{Role: "system", Content: first}}, talk...)
		t.opts.SystemInUser = !t.shows(system, first) && t.shows(talk, "u")
	}
	t.probeDeveloper(talk)
	if t.opts.LateSystem != LateSystemAuto {
		return
	}
	t.opts.LateSystem = LateSystemKeep
	if t.opts.SystemInUser {
		return // each goes to the message of the user that follows
	}
	with := []Message{{Role: "system", Content: first}, talk[0], talk[1], {Role: "system", Content: late}, talk[2]}
	if !t.shows(with, late) || !t.shows(with, first) {
		t.opts.LateSystem = LateSystemMerge
	}
}

// probeDeveloper finds whether the template takes the role, first and later.
func (t *Template) probeDeveloper(talk []Message) {
	const text = "developer-probe"
	if !t.opts.DeveloperAuto || t.opts.DeveloperRole != "" {
		return
	}
	d := Message{Role: "developer", Content: text}
	if !t.shows(append([]Message{d}, talk...), text) {
		t.opts.DeveloperRole = "system"
		return
	}
	t.lateDeveloper = !t.shows([]Message{talk[0], talk[1], d, talk[2]}, text)
}

// shows says whether the template renders a conversation with the given text in it.
func (t *Template) shows(msgs []Message, text string) bool {
	s, err := (&Template{prog: t.prog, opts: t.opts, trials: t.trials}).try(Input{Messages: msgs, AddGenerationPrompt: true, BOS: "<s>", EOS: "</s>", Now: time.Unix(0, 0)})
	return err == nil && strings.Contains(s, text)
}
