package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/server"
	"github.com/inferflow/inferflow/internal/sys"
)

// modelFlags are the flags of every command that opens a model.
type modelFlags struct {
	threads     int
	kv          string
	kvValues    string
	context     int
	memory      string
	spec        string
	cut         []int
	allowUnused bool
	set         []string
	unfused     bool
}

func (f *modelFlags) add(fs *pflag.FlagSet) {
	fs.IntVarP(&f.threads, "threads", "t", 0, "threads (default: all usable cores)")
	fs.StringVar(&f.kv, "kv", "", "type of stored keys and values: f16, bf16 or f32 (default: f16; f32 where a text is computed as a whole)")
	fs.StringVar(&f.kvValues, "kv-values", "", "type of stored values where it differs from --kv")
	fs.IntVar(&f.context, "context", 0, "tokens of one sequence at most (default: the model's own, at most 8192)")
	fs.StringVar(&f.memory, "kv-memory", "", "memory for keys and values, such as 2G or 800M (default: four contexts, or the beams of a search, at most half of what is free)")
	fs.StringVar(&f.spec, "spec", "", "specification to use instead of the one that serves the model: a file, or the name of a shipped one")
	fs.IntSliceVar(&f.cut, "cut", nil, "cut the program into stages before these layers")
	fs.BoolVar(&f.allowUnused, "allow-unused", false, "accept stored tensors that the specification does not use")
	fs.StringArrayVar(&f.set, "set", nil, "override a configuration value, KEY=VALUE (as in config.json)")
	fs.BoolVar(&refetch, "refetch", false, "fetch the model even if the cache holds it")
	fs.BoolVar(&f.unfused, "unfused", false, "run every operation by itself (slow; to find a wrong fusion)")
	_ = fs.MarkHidden("unfused")
}

// options turns the flags into the options of a model.
func (f *modelFlags) options() (model.Options, error) {
	o := model.Options{Threads: f.threads, Keys: f.kv, Values: f.kvValues, Context: f.context, Cut: f.cut, Unfused: f.unfused, Notice: notice}
	if o.Values == "" {
		o.Values = f.kv
	}
	if err := f.check(); err != nil {
		return o, err
	}
	var err error
	if o.KVMemory, err = parseBytes(f.memory); err != nil {
		return o, usagef("--kv-memory: %w", err)
	}
	o.Spec = chooseSpec(f.spec)
	o.Spec.AllowUnused = f.allowUnused
	o.Spec.Set, err = parseSet(f.set)
	return o, err
}

// maxContext bounds --context; no model in use takes as many tokens.
const maxContext = 1 << 28

// check refuses what no model could serve.
func (f *modelFlags) check() error {
	cpus := sys.UsableCPUs()
	if most := max(16, 4*cpus); f.threads < 0 || f.threads > most {
		return usagef("--threads %d: 1 to %d are possible here (0: all %d usable cores)", f.threads, most, cpus)
	}
	if f.threads > cpus {
		notice(fmt.Sprintf("%d threads share %d usable cores: they will wait for each other", f.threads, cpus))
	}
	if f.context < 0 || f.context > maxContext {
		return usagef("--context %d: want 1 to %d tokens, or 0 for the model's own", f.context, maxContext)
	}
	for name, v := range map[string]string{"--kv": f.kv, "--kv-values": f.kvValues} {
		if v != "" && v != "f16" && v != "bf16" && v != "f32" {
			return usagef("%s %q: want f16, bf16 or f32", name, v)
		}
	}
	return nil
}

var sizeForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?([KMGTkmgt]?[iI]?[bB]?)$`)

// parseBytes reads 2G, 800M, 64k or a plain number of bytes.
func parseBytes(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	if !sizeForm.MatchString(s) {
		return 0, fmt.Errorf("%q is not a size such as 2G, 800M or 64K", s)
	}
	num, shift := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I"), 0
	if n := strings.IndexByte("KMGT", num[len(num)-1]); n >= 0 {
		num, shift = num[:len(num)-1], 10*(n+1)
	}
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || f <= 0 || f*float64(int64(1)<<shift) > 1<<60 {
		return 0, fmt.Errorf("%q is not a size such as 2G, 800M or 64K", s)
	}
	return int64(f * float64(int64(1)<<shift)), nil
}

func notice(s string) { fmt.Fprintln(os.Stderr, "inferflow:", plain(server.Short(s))) }
