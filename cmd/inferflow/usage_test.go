package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/spec"
)

// refusal is the message of a command line that is refused for how it is put.
func refusal(t *testing.T, args ...string) string {
	t.Helper()
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(io.Discard)
	err := root.Execute()
	var usage usageError
	if !errors.As(err, &usage) {
		t.Fatalf("%q: %v is no usage error", args, err)
	}
	return err.Error()
}

// TestFlagErrors: no flag of any command answers in the words of a Go library.
func TestFlagErrors(t *testing.T) {
	for args, say := range map[string]string{
		"run m hi --threads x":                         `--threads "x": want a whole number; see inferflow run --help`,
		"run m hi --context 99999999999999999999":      "the number is out of range",
		"run m hi --temperature warm":                  `--temperature "warm": want a number`,
		"run m hi --json=perhaps":                      "want true or false",
		"bench m --prefill 1,b":                        "want whole numbers",
		"serve m --grace long":                         "want a time such as 30s",
		"embed m a --dimensions 1.5":                   "want a whole number",
		"run m hi --seed 0x":                           "--seed",
		"serve --task nope --port 1":                   "want generate, embed, rerank, classify, fill-mask",
		"runn":                                         `unknown command "runn"; did you mean run; see inferflow --help`,
		"spec chekc":                                   `unknown command spec "chekc"; did you mean check`,
		"qqqqqq":                                       `unknown command "qqqqqq"; see`,
		"spec show nope":                               `no shipped specification is named "nope"`,
		"perplexity m -f /dev/null --context 2":        "--ctx 2",
		"perplexity m -f /dev/null --ctx 3 --chunks=x": "want a whole number",
	} {
		got := refusal(t, strings.Fields(args)...)
		if !strings.Contains(got, say) || strings.Contains(got, "strconv") || strings.Contains(got, "invalid argument") {
			t.Errorf("%s: %s, want %q", args, got, say)
		}
	}
}

// TestChooseSpec: a folder does not hide a shipped specification of its name, a file does.
func TestChooseSpec(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("qwen3", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("llama", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if a, b, c := chooseSpec("qwen3"), chooseSpec("llama"), chooseSpec("./qwen3"); a.Name != "qwen3" || a.SpecFile != "" || b.SpecFile != "llama" || c.SpecFile != "./qwen3" {
		t.Errorf("%+v, %+v, %+v", a, b, c)
	}
}

// TestSpecInfo: keys are in small letters, lists are never null.
func TestSpecInfo(t *testing.T) {
	raw, err := json.Marshal(infoOf(spec.Info{Name: "a"}))
	if err != nil || strings.Contains(string(raw), "null") || strings.ToLower(string(raw)) != string(raw) || !strings.Contains(string(raw), `"model_types":[]`) {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestRevision(t *testing.T) {
	build := func(module, commit string) *debug.BuildInfo {
		i := &debug.BuildInfo{Main: debug.Module{Version: module}}
		if commit != "" {
			i.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: commit}}
		}
		return i
	}
	for want, info := range map[string]*debug.BuildInfo{"v1.2.3": build("v1.2.3", ""), "dev": build("(devel)", ""), "dev-0123456789ab": build("(devel)", "0123456789abcdef")} {
		if got := revisionOf(info); got != want {
			t.Errorf("%+v: %s, want %s", info, got, want)
		}
	}
}

// TestKVMemoryAdvice: who gave too little memory is told to give more of it.
func TestKVMemoryAdvice(t *testing.T) {
	m, err := model.Open(modeltest.Write(t, t.TempDir(), modeltest.Options{}), model.Options{KVMemory: 16, NoTokenizer: true})
	if err == nil {
		err = m.Load()
		m.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "--kv-memory") || strings.Contains(err.Error(), "--context") {
		t.Errorf("got %v", err)
	}
}
