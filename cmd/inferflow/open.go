package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/pull"
	"github.com/inferflow/inferflow/internal/sys"
)

// refetch is the flag of that name: fetch even what the cache holds.
var refetch bool

// openModel opens a local file or folder, or a model by name, which is fetched
// first if the cache does not hold it; demoName is the one inside the program.
func openModel(ctx context.Context, ref string, o model.Options) (*model.Model, error) {
	if ref == demoName {
		return openDemo(o)
	}
	if isINI(ref) {
		return nil, usagef("%s is a service file, not a model: inferflow serve %s serves it, and inferflow run %s, without a prompt, answers its query_list if it has one", ref, ref, ref)
	}
	po := pull.Options{Progress: pull.Terminal(os.Stderr), Note: notice, Refetch: refetch}
	path, err := pull.Resolve(ctx, ref, po)
	if err != nil {
		return nil, err
	}
	m, err := model.Open(path, o)
	if err != nil {
		if again := pull.Again(path, po); again != "" && !refetch && !errors.Is(err, sys.ErrNoRoom) && len(o.Spec.Set) == 0 && o.Spec.Name == "" && o.Spec.SpecFile == "" {
			err = fmt.Errorf("%w; %s", err, again)
		}
		err = blameSet(err, o.Spec.Set)
		return nil, err
	}
	if named, ok := pull.Named(ref); ok {
		m.Name = named.Name
	}
	advise(m, ref)
	return m, nil
}

// advise gives a model of the table the sampling that its card advises, where
// its files hold none.
func advise(m *model.Model, ref string) {
	if values := advice(ref, m.Path); values != nil {
		m.Generation.Suggest(values, "advice of the model's card")
	}
}

// advice is the sampling that the card of a model of the table advises; ref is
// how it was asked for, path its file. nil where it is not of the table.
func advice(ref, path string) map[string]float64 {
	named, _ := pull.Named(ref)
	for _, t := range pull.Names() {
		if t.Sampling != nil && (t.Name == named.Name || t.File == filepath.Base(path)) {
			return t.Sampling
		}
	}
	return nil
}

// until runs f, which may read for long, and gives up on it when ctx ends: a
// signal ends a program that is still loading at once. What f makes is then
// left to the end of the process.
func until(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select { // what is being fetched may be put in order
	case err := <-done:
		return err
	case <-time.After(300 * time.Millisecond):
		return fmt.Errorf("ended before the model was loaded: %w", context.Cause(ctx))
	}
}

// isModel says that a single argument names a model, not a prompt.
func isModel(arg string) bool {
	if _, ok := pull.Named(arg); ok {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && (info.IsDir() || slices.Contains(model.Extensions, filepath.Ext(arg)))
}

// maxInput bounds what is read from standard input or a text file.
const maxInput = 256 << 20

// readAll reads all of r, within maxInput.
func readAll(r io.Reader, what string) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if len(b) > maxInput {
		return "", fmt.Errorf("%s is longer than %d MiB", what, maxInput>>20)
	}
	return string(b), nil
}

// openService opens and loads a model and starts its engine.
func openService(ctx context.Context, ref string, o model.Options) (*complete.Service, error) {
	m, err := openModel(ctx, ref, o)
	if err != nil {
		return nil, err
	}
	if m.Whole() {
		defer m.Close()
		return nil, fmt.Errorf("%s: %w; it gives %s", m.Name, complete.ErrReads, gives(m))
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
