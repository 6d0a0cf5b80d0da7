package server

import (
	"encoding/json"
	"slices"
)

// instead are fields by which other servers change an answer, and what does the
// same here. A client that sends one must be told, for its answer would be another.
var instead = map[string]string{
	"num_predict": useMaxTokens, "n_predict": useMaxTokens, "max_new_tokens": useMaxTokens, "max_length": useMaxTokens, "max_tokens_to_sample": useMaxTokens,
	"num_ctx": useContext, "n_ctx": useContext, "max_context_length": useContext,
	"options":       "its settings are fields of the request here: max_tokens, temperature, top_k, top_p, seed, stop …; the context is --context of inferflow serve",
	"parameters":    "its settings are fields of the request here: max_tokens, temperature, top_k, top_p, seed, stop …",
	"temp":          "use temperature",
	"rep_pen":       "use repetition_penalty",
	"do_sample":     "use temperature, which draws nothing where it is 0",
	"random_seed":   "use seed",
	"stop_sequence": useStop, "stop_sequences": useStop, "stopping_strings": useStop,
	"system":          "give a message with the role system",
	"think":           useThinking,
	"enable_thinking": useThinking,
	"format":          onlyText, "regex": onlyText, "ebnf": onlyText,
	"min_length": notServed, "min_new_tokens": notServed, "no_repeat_ngram_size": notServed, "guidance_scale": notServed, "negative_prompt": notServed,
	"bad_words": notServed, "banned_tokens": notServed, "banned_strings": notServed, "custom_token_bans": notServed, "allowed_token_ids": notServed,
}

const (
	useMaxTokens = "use max_tokens"
	useContext   = "the context is set for all requests, with --context of inferflow serve"
	useStop      = "use stop, a text or a list of texts"
	useThinking  = `use "chat_template_kwargs": {"enable_thinking": …}, where the model's template reads it`
	onlyText     = "an answer is any text here; leave it out"
	notServed    = "it is not served; leave it out"
)

// noWish are values by which clients say that they want nothing of an unserved field.
var noWish = []string{`""`, "[]", "{}", "0", "false"}

// otherServers refuses a field of another server, in a request for a text.
func otherServers(name string, raw json.RawMessage, known map[string]bool) error {
	use, ok := instead[name]
	if !ok || !known["max_tokens"] {
		return nil
	}
	none := noWish[:3]
	switch {
	case use == notServed || use == onlyText || use == useMaxTokens || use == useContext:
		none = noWish
	case name == "do_sample":
		none = []string{"true"} // as it is without it
	}
	if slices.Contains(none, string(raw)) || name == "guidance_scale" && string(raw) == "1" {
		return nil
	}
	return badRequest(name, "%s is a field of other servers: %s", name, use)
}
