package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/pull"
	"github.com/inferflow/inferflow/spec"
)

func specNewCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "new MODEL",
		Short: "Draft a specification from a folder's tensor names and configuration",
		Long: `Writes a draft: norms, projections, feed-forwards, experts, positions and head
are recognised by names and shapes. Comments mark what was guessed, which tensors
and which keys of the configuration the draft does not read. Then it says what
"spec check" finds.`,
		Example: `  inferflow spec new ./folder --out my.star`,
		Args:    argsBetween(1, 1, "one model"),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := pull.Resolve(c.Context(), args[0], pull.Options{Progress: pull.Terminal(os.Stderr), Note: notice})
			if err != nil {
				return err
			}
			s, err := model.OpenSketch(path)
			if err != nil {
				return err
			}
			defer s.Close()
			return runNew(s, out)
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "write to this file, which must not exist")
	return c
}

func runNew(s *model.Sketch, out string) error {
	text, err := spec.Draft(s)
	if err != nil {
		return err
	}
	if out == "" {
		dir, err := os.MkdirTemp("", "inferflow-draft-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if _, err := io.WriteString(os.Stdout, text); err != nil {
			return err
		}
		return tryDraft(s, filepath.Join(dir, "draft.star"), text)
	}
	return tryDraft(s, out, text)
}

// tryDraft writes the draft and notes how it fits.
func tryDraft(s *model.Sketch, path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("spec new: %s is there already; nothing was written", path)
	}
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	chosen, err := spec.Resolve(s, spec.Options{SpecFile: path})
	if err != nil {
		return err
	}
	tr, err := chosen.Trace(s)
	r := newCheckResult(chosen.Name, s, tr, err)
	fmt.Fprintf(os.Stderr, "\n%s", r.text(false))
	return nil
}
