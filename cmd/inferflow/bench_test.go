package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/inferflow/inferflow/internal/bench"
)

func benchConfig(t *testing.T, args ...string) (bench.Config, error) {
	t.Helper()
	var b benchFlags
	fs := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	b.add(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return b.config(fs)
}

func TestBenchConfig(t *testing.T) {
	for _, x := range []struct {
		args              string
		prefill           []int
		decode            int
		depths, sequences []int
	}{
		{"", []int{32, 128, 512, 2048}, 32, []int{0, 512, 2048}, []int{1, 4, 16, 32}},
		{"--prefill 512 --decode 64 --json", []int{512}, 64, []int{0}, []int{1}},
		{"--prefill 8,16", []int{8, 16}, 0, []int{0}, []int{1}},
		{"--depth 100", nil, 32, []int{100}, []int{1}},
		{"--sequences 1,2 --decode 5", nil, 5, []int{0}, []int{1, 2}},
		{"--repeat 1", []int{32, 128, 512, 2048}, 32, []int{0, 512, 2048}, []int{1, 4, 16, 32}},
	} {
		c, err := benchConfig(t, strings.Fields(x.args)...)
		if err != nil || !slices.Equal(c.Prefill, x.prefill) || c.Decode != x.decode || !slices.Equal(c.Depths, x.depths) || !slices.Equal(c.Sequences, x.sequences) {
			t.Errorf("%q: %+v, %v", x.args, c, err)
		}
	}
	for _, args := range []string{"--prefill 0", "--prefill -1", "--decode 0", "--decode -5", "--depth -1", "--sequences 0", "--repeat 0", "--json --csv", "--depth 99999999"} {
		_, err := benchConfig(t, strings.Fields(args)...)
		var usage usageError
		if !errors.As(err, &usage) {
			t.Errorf("%q: %v is no usage error", args, err)
		}
	}
}

func benchReport() *bench.Report {
	return &bench.Report{Model: bench.ModelInfo{Name: "m", Types: "Q8_0", Parameters: 1.5e9, Bytes: 1 << 30, Keys: "f16", Values: "f16"}, Threads: 2, Tier: "avx2", Bandwidth: 20,
		Results: []bench.Result{{Test: bench.Test{Kind: "decode", N: 64, Sequences: 1}, TokensPerSecond: 12.345, BytesPerToken: 1e9, BandwidthShare: 0.617, Seconds: 5.184, Repeats: 3}},
		Skipped: []bench.Skipped{{Test: bench.Test{Kind: "prefill", N: 9999, Sequences: 1}, Reason: "too long, really"}}}
}

func TestPrintBench(t *testing.T) {
	var b bytes.Buffer
	if err := printBench(&b, benchReport()); err != nil {
		t.Fatal(err)
	}
	want := `m  1.5 B parameters, Q8_0, 1.0 GiB stored, 0 B packed
2 threads, avx2 kernels, keys f16, values f16, read bandwidth 20.0 GB/s

test    tokens  depth  sequences  tokens/s  MB/token  of bandwidth  seconds  runs
decode      64      0          1      12.3   1000.00          62 %    5.184     3
not measured: prefill 9999: too long, really
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestBenchCSV(t *testing.T) {
	var b bytes.Buffer
	if err := benchCSV(&b, benchReport()); err != nil {
		t.Fatal(err)
	}
	want := `model,types,threads,tier,test,n,depth,sequences,tokens_per_second,bytes_per_token,bandwidth_share,bandwidth_gb_s,seconds,repeats,skipped
m,Q8_0,2,avx2,decode,64,0,1,12.345,1e+09,0.617,20,5.184,3,
m,Q8_0,2,avx2,prefill,9999,0,1,,,,20,,0,"too long, really"
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestTable(t *testing.T) {
	x := table{head: []string{"größe", "n", ""}, right: []bool{false, true}, limit: 14}
	x.add("a", "12345", "text that is long")
	x.add("b", "1", "")
	var b bytes.Buffer
	if err := x.write(&b, " ", true); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[1m größe      n\x1b[0m\n a      12345…\n b          1\n"
	if b.String() != want {
		t.Errorf("got\n%q\nwant\n%q", b.String(), want)
	}
}
