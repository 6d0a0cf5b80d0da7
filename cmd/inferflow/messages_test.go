package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/chat/jinja"
	"github.com/inferflow/inferflow/internal/complete"
	"github.com/inferflow/inferflow/internal/sample"
)

// TestWords leaves the names of packages out of what a user reads, and nothing else.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"complete: m: embed: the text has no mask": "m: the text has no mask",
		"sys: model: stat a: no such file":         "stat a: no such file",
		complete.ErrTemplate.Error() + ": jinja: line 1, column 2: " + jinja.ErrRaised.Error() + ": no": "the chat template refused the conversation: line 1, column 2: no",
		"a/model: b": "a/model: b",
		"my spec: c": "my spec: c",
	} {
		if got := words(fmt.Errorf("%w", errors.New(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestIdleFlags refuses flags of a way of choosing that is not on.
func TestIdleFlags(t *testing.T) {
	for args, say := range map[string]string{
		"--mirostat-tau 3":                               "--mirostat-tau has no effect without --mirostat",
		"--fsd-k 4":                                      "without --fsd-alpha",
		"--fsd-random 3 --mirostat 2":                    "--fsd-random has no effect",
		"--mirostat 2 --mirostat-tau 3":                  "",
		"--fsd-alpha 0.5 --fsd-k 4":                      "",
		"--repeat-penalty 1.5":                           "",
		"--repeat-penalty 1.5 --repetition-penalty 1":    "give one of them",
		"--repetition-penalty 1.5 --temperature 0.5":     "",
		"--mirostat-eta 0.2 --mirostat 0 --greedy":       "--mirostat-eta has no effect",
		"--fsd-n 2 --fsd-alpha 0":                        "--fsd-n has no effect",
		"--fsd-beta 0.5 --fsd-alpha 0.5 --fsd-n 2":       "",
		"--mirostat 1 --mirostat-eta 0.5 --max-tokens 3": "",
	} {
		var f samplingFlags
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		f.add(fs)
		if err := fs.Parse(strings.Fields(args)); err != nil {
			t.Fatal(args, err)
		}
		p, err := f.params(sample.Defaults())
		var usage usageError
		if say == "" && err != nil || say != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), say)) {
			t.Errorf("%s: %v, want %q", args, err, say)
		}
		if args == "--repeat-penalty 1.5" && p.Sample.RepetitionPenalty != 1.5 {
			t.Errorf("%s: penalty %g", args, p.Sample.RepetitionPenalty)
		}
	}
}
