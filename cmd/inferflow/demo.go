package main

import (
	"github.com/inferflow/inferflow/internal/demo"
	"github.com/inferflow/inferflow/internal/model"
)

// demoName is the model inside the program.
const demoName = demo.Name

// openDemo opens the model inside the program and says that it is only that.
func openDemo(o model.Options) (*model.Model, error) {
	real := `run smollm2 "Why is the sky blue?"`
	if asked == "chat" || asked == "serve" {
		real = asked + " smollm2"
	}
	notice("this is the built-in demo, which only tells short stories; for a real model: inferflow " + real)
	return model.OpenBytes(demo.Name, demo.Data(), o)
}
