package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The environment's variables that reach the program without -env.
var passed = []string{"GOMAXPROCS=", "GODEBUG=", "GOGC=", "GOMEMLIMIT=", "GOTRACEBACK=", "INFERFLOW_"}

// list is a flag that may be given more than once.
type list []string

func (l *list) String() string     { return strings.Join(*l, " ") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// parse reads the command line. Each flag has a variable of its own for use
// under "go test -exec", which passes none: AVX512_WITH (a list like PATH),
// AVX512_MEM, AVX512_CPU, AVX512_TIMEOUT.
func parse(args []string, getenv func(string) string) (options, error) {
	cache := getenv("AVX512_CACHE")
	o := options{bochs: filepath.Join(cache, "bochs"), kernel: filepath.Join(cache, "kernel"),
		guest: filepath.Join(cache, "guest"), model: "sapphire_rapids", megs: 1024}
	if m := getenv("AVX512_CPU"); m != "" {
		o.model = m
	}
	if m := getenv("AVX512_MEM"); m != "" {
		if _, err := fmt.Sscanf(m, "%d", &o.megs); err != nil {
			return o, fmt.Errorf("AVX512_MEM=%s: %w", m, err)
		}
	}
	if t := getenv("AVX512_TIMEOUT"); t != "" {
		d, err := time.ParseDuration(t)
		if err != nil {
			return o, fmt.Errorf("AVX512_TIMEOUT: %w", err)
		}
		o.timeout = d
	}
	with := list(filepath.SplitList(getenv("AVX512_WITH")))
	var env list
	fl := flag.NewFlagSet("run.sh", flag.ContinueOnError)
	fl.Usage = func() { fmt.Fprintln(os.Stderr, usage); fl.PrintDefaults() }
	fl.Var(&with, "with", "a file or folder that the program needs; ./testdata comes by itself")
	fl.Var(&env, "env", "a variable for the program, NAME=VALUE")
	fl.IntVar(&o.megs, "mem", o.megs, "the machine's memory in MiB")
	fl.StringVar(&o.model, "cpu", o.model, "a CPU model of Bochs")
	fl.BoolVar(&o.verbose, "v", false, "let the kernel talk, and show its console at the end")
	fl.DurationVar(&o.timeout, "timeout", o.timeout, "stop after this time outside; 0 is never")
	if err := fl.Parse(args); err != nil {
		return o, err
	}
	if fl.NArg() == 0 {
		return o, errors.New(usage)
	}
	if o.megs < 256 || o.megs > 3072 {
		return o, fmt.Errorf("-mem %d: from 256 to 3072 MiB are possible", o.megs)
	}
	var err error
	if o.program, err = filepath.Abs(fl.Arg(0)); err != nil {
		return o, err
	}
	o.args = programArgs(fl.Args()[1:])
	if _, err := os.Stat("testdata"); err == nil {
		with = append(with, "testdata")
	}
	for _, p := range with {
		abs, err := filepath.Abs(p)
		if err != nil {
			return o, err
		}
		o.with = append(o.with, abs)
	}
	o.env = programEnv(env)
	return o, nil
}

// programArgs drops what go test adds for its cache of results: the guest's
// files do not come back, and a missing log only means "do not cache".
func programArgs(args []string) []string {
	var kept []string
	for _, a := range args {
		if !strings.HasPrefix(a, "-test.testlogfile=") {
			kept = append(kept, a)
		}
	}
	return kept
}

func programEnv(given []string) []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/", "TMPDIR=/tmp"}
	for _, e := range os.Environ() {
		for _, p := range passed {
			if strings.HasPrefix(e, p) {
				env = append(env, e)
			}
		}
	}
	return append(env, given...)
}
