// Package demo holds the demo model: a GGUF file of at most 3 MB inside the
// program, which tells short stories without any network or file. README.md
// says what it was trained on, scripts/ make it. It must never import what runs
// models. Read Data first.
package demo

import _ "embed"

// Name is what users call the model.
const Name = "demo"

//go:embed demo.gguf
var file []byte

// Data is the model's GGUF file. It belongs to the program and must not be
// written to.
func Data() []byte { return file }
