package model_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/inferflow/inferflow/internal/model"
)

// TestDivergence measures the Kullback-Leibler divergence of the fast path
// from a reference whose log-probabilities stream in, in the format of
// llama.cpp's --kl-divergence-base, and the perplexity on the same windows.
// scripts/reference/divergence.sh starts it; the numbers are in
// docs/correctness.md.
func TestDivergence(t *testing.T) {
	base, path := os.Getenv("INFERFLOW_KL_BASE"), os.Getenv("INFERFLOW_KL_MODEL")
	if base == "" || path == "" {
		t.Skip("set INFERFLOW_KL_BASE and INFERFLOW_KL_MODEL, or run scripts/reference/divergence.sh")
	}
	f, err := os.Open(base)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	threads, _ := strconv.Atoi(os.Getenv("INFERFLOW_KL_THREADS"))
	d := &divergence{t: t, in: bufio.NewReaderSize(f, 1<<20)}
	d.header()
	d.open(path, max(1, threads))
	defer d.m.Close()
	for w := range d.windows {
		d.window(d.ids[w*d.ctx : (w+1)*d.ctx])
		fmt.Fprintf(os.Stderr, "window %d of %d: %s\n", w+1, d.windows, d)
	}
	t.Log(d)
	if limit, err := strconv.ParseFloat(os.Getenv("INFERFLOW_KL_LIMIT"), 64); err == nil && d.sum/float64(d.n) > limit {
		t.Errorf("mean divergence %.6f, at most %.6f is allowed", d.sum/float64(d.n), limit)
	}
}

type divergence struct {
	t              *testing.T
	in             *bufio.Reader
	m              *model.Model
	ctx, vocab     int
	windows        int
	ids            []int32
	n, same        int
	sum, worst     float64
	nll, nllOfBase float64
	codes          []uint16
	bos            int32
	hasBOS         bool
}

func (d *divergence) read(v any) {
	d.t.Helper()
	if err := binary.Read(d.in, binary.LittleEndian, v); err != nil {
		d.t.Fatalf("reading the reference: %v", err)
	}
}

func (d *divergence) header() {
	magic := make([]byte, 8)
	if _, err := io.ReadFull(d.in, magic); err != nil || string(magic) != "_logits_" {
		d.t.Fatalf("the reference begins with %q (%v), not _logits_", magic, err)
	}
	var head [3]int32
	d.read(&head)
	d.ctx, d.vocab, d.windows = int(head[0]), int(head[1]), int(head[2])
	if d.ctx < 4 || d.ctx > 1<<16 || d.vocab < 2 || d.vocab > 1<<24 || d.windows < 1 || d.windows > 1<<20 {
		d.t.Fatalf("the reference has %v windows, vocabulary, context", head)
	}
	d.ids = make([]int32, d.ctx*d.windows)
	d.read(d.ids)
	d.codes = make([]uint16, 4+(d.vocab+1)/2*2)
}

func (d *divergence) open(path string, threads int) {
	m, err := model.Open(path, model.Options{Threads: threads, Context: d.ctx + 1, Rows: d.ctx})
	if err != nil {
		d.t.Fatal(err)
	}
	d.m = m
	if d.bos, d.hasBOS = m.Tokenizer.BOS(); !m.Tokenizer.AddsBOS() {
		d.hasBOS = false
	}
	if m.Vocab() != d.vocab {
		d.t.Fatalf("the model has %d logits, the reference %d", m.Vocab(), d.vocab)
	}
	if err := m.Load(); err != nil {
		d.t.Fatal(err)
	}
}

// window scores the tokens after positions ctx/2 … ctx−2.
func (d *divergence) window(ids []int32) {
	ids = append([]int32{}, ids...)
	if d.hasBOS {
		ids[0] = d.bos
	}
	b := sequence(ids, 0, len(ids))
	b.Out = b.Out[d.ctx/2 : d.ctx-1]
	if err := d.m.Forward(b); err != nil {
		d.t.Fatal(err)
	}
	for i, row := range b.Out {
		d.read(d.codes)
		d.row(d.m.Logits(i), ids[row+1])
	}
}

// row adds Σ p·(ln p − ln q) over the tokens with ln p > −16, as llama.cpp does.
func (d *divergence) row(logits []float32, next int32) {
	top, best, sum := math.Inf(-1), 0, 0.0
	for i, v := range logits {
		if float64(v) > top {
			top, best = float64(v), i
		}
	}
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	lse := top + math.Log(sum)
	scale := float64(math.Float32frombits(uint32(d.codes[0]) | uint32(d.codes[1])<<16))
	low := float64(math.Float32frombits(uint32(d.codes[2]) | uint32(d.codes[3])<<16))
	codes := d.codes[4:]
	kl, bestOfBase := 0.0, 0
	for i, v := range logits {
		p := scale*float64(codes[i]) + low
		if codes[i] > codes[bestOfBase] {
			bestOfBase = i
		}
		if p > -16 {
			kl += math.Exp(p) * (p - float64(v) + lse)
		}
	}
	d.n++
	d.sum += kl
	d.worst = math.Max(d.worst, kl)
	if best == bestOfBase {
		d.same++
	}
	d.nll += lse - float64(logits[next])
	d.nllOfBase -= scale*float64(codes[next]) + low
}

func (d *divergence) String() string {
	n := float64(d.n)
	return fmt.Sprintf("mean divergence %.6f, largest %.4f, same top token %.2f %%, perplexity %.4f, of the reference %.4f, %d tokens",
		d.sum/n, d.worst, 100*float64(d.same)/n, math.Exp(d.nll/n), math.Exp(d.nllOfBase/n), d.n)
}
