package main

import (
	"context"

	"github.com/inferflow/inferflow/internal/model"
)

// openModel opens a local file or folder, or a model by name.
func openModel(ctx context.Context, ref string, o model.Options) (*model.Model, error) {
	return model.Open(ref, o)
}
