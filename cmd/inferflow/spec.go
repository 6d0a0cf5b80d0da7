package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/spec"
)

// specCommand is the table of commands for those who write specifications.
func specCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "spec",
		Short: "Write, check and debug specifications",
		Long:  "A specification says what a model computes, in a page of Starlark. docs/spec.md is the guide.",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(specNewCommand(), specCheckCommand(), specTraceCommand(), specListCommand(), specShowCommand(), specImportCommand(), specDocsCommand())
	return c
}

func specDocsCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "docs",
		Short: "Print the reference of the language (docs/spec-reference.md)",
		Args:  argsBetween(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := spec.Reference()
			if err != nil {
				return err
			}
			if out != "" {
				return os.WriteFile(out, []byte(text), 0o644)
			}
			_, err = io.WriteString(os.Stdout, text)
			return err
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "write to this file")
	return c
}
