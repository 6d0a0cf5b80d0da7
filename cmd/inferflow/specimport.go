package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/spec"
)

func specImportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "import OLD.json",
		Short: "Write the specification that a model_spec.json of the C++ Inferflow stands for",
		Long: `Prints a specification in Starlark for a model_spec.json. The file can also be
used as it is: --spec OLD.json.`,
		Example: `  inferflow spec import model_spec.json > model.star
  inferflow run ./folder --spec model.star "Hello"`,
		Args: argsBetween(1, 1, "a model_spec.json"),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			data, err := io.ReadAll(io.LimitReader(f, maxInput))
			if err != nil {
				return err
			}
			s, err := spec.ParseModelSpec(data)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			for _, n := range s.Notes {
				notice(n)
			}
			if _, err = fmt.Print(s.Starlark(filepath.Base(args[0]))); err != nil {
				return fmt.Errorf("standard output: %w", err)
			}
			return nil
		},
	}
	return c
}
