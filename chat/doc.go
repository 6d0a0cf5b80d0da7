// Package chat turns conversations into prompts: it renders a model's own chat
// template (package jinja holds the language) over messages, tools and options,
// and tells in the result which text is the template's and which came from the
// conversation, so that special tokens typed by a user stay plain text.
//
// Join the pieces before tokenising: a border between two pieces is no border
// between tokens. It only says where a special token may be recognised: where
// all of its bytes lie in template text.
//
// The package must never import tokenizers, models, the engine or the server.
// Read [Template] first.
package chat
