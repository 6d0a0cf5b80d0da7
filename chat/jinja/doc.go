// Package jinja renders the Jinja2 templates that model files carry for their
// chat prompts, with the meaning that Jinja2 3.1 gives them in the sandbox of
// Hugging Face transformers (trim_blocks and lstrip_blocks on, loop controls,
// the generation tag, a tojson that escapes no HTML).
//
// Every string remembers which of its bytes came from the caller's data and
// which from the template ([Str]), so that a rendered prompt can be tokenised
// with special tokens recognised in template text alone.
//
// Templates come from strangers: there is no reflection, no I/O, no access to
// Go values, and steps, memory, output and nesting are bounded by [Limits].
//
// The package must never import anything of this module; it knows nothing of
// chat messages, tokenizers or models. Read [Template] first.
//
// Sources: the Jinja2 template designer documentation and the behaviour of
// Jinja2 3.1.6; transformers' chat_template_utils.
package jinja
