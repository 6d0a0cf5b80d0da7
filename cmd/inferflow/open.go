package main

import (
	"context"
	"os"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/pull"
)

// openModel opens a local file or folder, or a model by name, which is fetched
// first if the cache does not hold it; demoName is the one inside the program.
func openModel(ctx context.Context, ref string, o model.Options) (*model.Model, error) {
	if ref == demoName {
		return openDemo(o)
	}
	path, err := pull.Resolve(ctx, ref, pull.Options{Progress: pull.Terminal(os.Stderr), Note: notice})
	if err != nil {
		return nil, err
	}
	return model.Open(path, o)
}

// openService opens and loads a model and starts its engine.
func openService(ctx context.Context, ref string, o model.Options) (*complete.Service, error) {
	m, err := openModel(ctx, ref, o)
	if err != nil {
		return nil, err
	}
	if err := m.Load(); err != nil {
		m.Close()
		return nil, err
	}
	s, err := complete.New(m, 0)
	if err != nil {
		m.Close()
		return nil, err
	}
	for _, n := range s.Notes {
		notice(n)
	}
	return s, nil
}
