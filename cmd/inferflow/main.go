// Command inferflow runs, serves and examines language models on the
// machine's own processors. Every subcommand is a file of this package.
package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/chat/jinja"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/internal/sample"
	"github.com/inferflow/inferflow/internal/server"
	"github.com/inferflow/inferflow/spec"
)

// version is set at release by the linker.
var version = "dev"

// usageError marks a mistake in how a command was called: exit status 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

func main() {
	if len(os.Args) > 1 && os.Args[1] == spec.ChildCommand {
		os.Exit(spec.ChildMain(os.Stdin, os.Stdout))
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return 0
	}
	var usage usageError
	fmt.Fprintln(os.Stderr, "inferflow:", plain(words(err)))
	if errors.As(err, &usage) || errors.Is(err, sample.ErrParams) || errors.Is(err, program.ErrCut) {
		return 2
	}
	return 1
}

// inner are names of packages that stand before their words in chains of errors.
var inner = regexp.MustCompile(`(^|: )(?:batch|bench|chat|complete|config|convert|cpu|device|embed|engine|format|gguf|jinja|kv|llama2c|model|pickle|pull|ref|safetensors|sample|sched|server|spec|sys|tokenizer|weight): `)

// words is an error without the names of the packages that it came through.
func words(err error) string {
	text := server.Short(err.Error())
	if strings.Contains(text, complete.ErrTemplate.Error()) { // which says the same
		text = strings.Replace(text, ": "+jinja.ErrRaised.Error()+": ", ": ", 1)
	}
	for {
		short := inner.ReplaceAllString(text, "$1")
		if short == text {
			return text
		}
		text = short
	}
}

// plain shows control characters, which may come from a stranger's file, as
// escapes: a terminal must not obey them.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}

// revision is the version set at release, else what the build knows of its source.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if version != "dev" || !ok {
		return version
	}
	return revisionOf(info)
}

// revisionOf is the module's version where it was fetched as one, else the
// commit that it was built from, where the build says it.
func revisionOf(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return version
}

// rootCommand is the one visible table of commands.
func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "inferflow",
		Short:         "Run, serve and examine language models on your own machine",
		Version:       revision(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return c.Help()
		},
		Args:             cobra.ArbitraryArgs,
		PersistentPreRun: func(c *cobra.Command, args []string) { asked = c.Name() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w; see %s --help", flagError(err), c.CommandPath())
	})
	root.AddCommand(
		runCommand(),
		chatCommand(),
		serveCommand(),
		logitsCommand(),
		tokenizeCommand(),
		convertCommand(),
		perplexityCommand(),
		embedCommand(), rerankCommand(), classifyCommand(), fillMaskCommand(),
		benchCommand(), explainCommand(), specCommand(),
		&cobra.Command{Use: "version", Short: "Print the version", Args: argsBetween(0, 0, "no arguments"), Run: func(*cobra.Command, []string) { fmt.Println("inferflow version", revision()) }},
	)
	return root
}

// asked is the name of the command that runs.
var asked string

// unknownCommand says which command was probably meant.
func unknownCommand(c *cobra.Command, name string) error {
	hint := ""
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %s", strings.Join(near, " or "))
	}
	what := strings.TrimPrefix(c.CommandPath()+" ", "inferflow ")
	return usagef("unknown command %s%q%s; see %s --help", what, name, hint, c.CommandPath())
}

// wanted says what a flag of a type takes.
var wanted = map[string]string{"int": "a whole number", "int64": "a whole number", "uint64": "a whole number that is not negative", "float32": "a number", "float64": "a number",
	"bool": "true or false", "duration": "a time such as 30s or 2m", "intSlice": "whole numbers with commas between them"}

// flagError tells a value that a flag does not take without the words of the
// library that read it.
func flagError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	want, ok := wanted[bad.GetFlag().Value.Type()]
	switch {
	case !ok:
		return err
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("--%s %q: the number is out of range", bad.GetFlag().Name, bad.GetValue())
	}
	return fmt.Errorf("--%s %q: want %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// exactArgs and the like are cobra's checks as usage errors.
func argsBetween(lo, hi int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < lo || len(args) > hi {
			return usagef("%s takes %s, got %d arguments; see %s --help", c.Name(), what, len(args), c.CommandPath())
		}
		return nil
	}
}
