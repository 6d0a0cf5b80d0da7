package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inferflow/inferflow/internal/near"
	"github.com/inferflow/inferflow/spec"
)

// specInfo is a shipped specification as spec list --json prints it.
type specInfo struct {
	Name       string   `json:"name"`
	Title      string   `json:"title"`
	Lines      int      `json:"lines"`
	ModelTypes []string `json:"model_types"`
	Classes    []string `json:"architectures"`
	GGUF       []string `json:"gguf"`
	When       bool     `json:"conditional"` // some rule has a further condition
	NotCovered string   `json:"not_covered"`
}

func infoOf(i spec.Info) specInfo {
	list := func(l []string) []string { return append([]string{}, l...) }
	return specInfo{i.Name, i.Title, i.Lines, list(i.ModelTypes), list(i.Classes), list(i.GGUF), i.When, i.NotCovered}
}

func specListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the shipped specifications and what they serve",
		Args:  argsBetween(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, args []string) error {
			var infos []specInfo
			t := table{head: []string{"name", "lines", "model_type", "gguf", ""}, right: []bool{false, true}, limit: terminalWidth(os.Stdout)}
			for _, name := range spec.Library() {
				i, err := spec.Describe(name)
				if err != nil {
					return err
				}
				infos = append(infos, infoOf(i))
				t.add(name, fmt.Sprint(i.Lines), strings.Join(i.ModelTypes, " "), strings.Join(i.GGUF, " "), i.Title)
			}
			if asJSON {
				enc := json.NewEncoder(os.Stdout)
				enc.SetIndent("", "  ")
				enc.SetEscapeHTML(false)
				return enc.Encode(infos)
			}
			return t.write(os.Stdout, "", colored(os.Stdout))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func specShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Print a shipped specification, or a file of the standard library (@std/blocks.star)",
		Example: "  inferflow spec show @std/blocks.star",
		Args:    argsBetween(1, 1, "one name"),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := spec.Show(args[0])
			if errors.Is(err, spec.ErrNoSpec) {
				hint := near.Hint(args[0], spec.Library())
				if hint == "" {
					hint = "; inferflow spec list shows them"
				}
				return usagef("no shipped specification is named %q%s", args[0], hint)
			}
			if err != nil {
				return err
			}
			_, err = io.WriteString(os.Stdout, text)
			return err
		},
	}
}
