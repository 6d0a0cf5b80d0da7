// Package devicetest is the suite that every device must pass: small random
// programs of each kind of step, held against device/ref, and the promises of
// bits of DESIGN.md: a row's result does not depend on its company, on how a
// prompt is cut, on who else holds a block, or on the stages of a program. It
// must never import models, specs or formats. Read Device and Run first.
package devicetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/compile"
	"github.com/inferflow/inferflow/internal/device"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/internal/weight"
)

// Device is what the suite tests. Load must keep keys and values in float32,
// so that the float types are held to 1e-5; the stage is closed by the suite.
type Device struct {
	Load func(p *program.Program, src weight.Source, l device.Limits) (device.Stage, error)
}

// limits are small, so that the suite also runs at their edge.
var limits = device.Limits{Rows: 96, Seqs: 8, Blocks: 64, Tokens: 160, States: 8, Source: 100}

// Run holds the device against the reference in all respects.
func Run(t *testing.T, d Device) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { d.testCase(t, c) })
	}
	t.Run("constants", d.testConstants)
	t.Run("types", d.testTypes)
	t.Run("random", d.testRandom)
	t.Run("allocations", d.testAllocations)
	t.Run("joined", d.testJoined)
	t.Run("states", d.testStates)
	t.Run("stop", d.testStop)
	t.Run("errors", d.testErrors)
	t.Run("source", d.testSource)
	t.Run("diagnose", d.testDiagnose)
	t.Run("pairs", d.testPairs)
}

// FeedForward runs the cases of two products one behind the other, as Run does: a
// device may compute them together.
func FeedForward(t *testing.T, d Device) {
	for _, c := range feedForwardCases {
		t.Run(c.name, func(t *testing.T) { d.testCase(t, c) })
	}
}

// testCase compiles a network and holds it, fused and node by node, against
// the reference; then the promises of bits.
func (d Device) testCase(t *testing.T, c testCase) {
	n := newNet(t, c.seed)
	n.finish(c.build(n))
	tol := c.tol
	if tol == 0 {
		tol = 1e-5
	}
	fused := d.open(t, n, compile.Options{})
	fused.has(t, c.has)
	want := fused.agree(t, n, tol)
	fused.gaveUp(t, n, want)
	if graph.Whole(n.G) { // rows that see later ones: not to be chunked
		fused.alone(t, want, 0)
		d.open(t, n, compile.Options{NoFusion: true}).agree(t, n, tol)
		return
	}
	fused.sameBits(t, n, want)
	fused.shared(t, n, false)
	fused.shared(t, n, true)
	d.testCuts(t, n, want)
	plain := d.open(t, n, compile.Options{NoFusion: true})
	plain.agree(t, n, tol)
}

// machine is a program on the device under test: one stage or several.
type machine struct {
	p      *program.Program
	stages []device.Stage
}

func (d Device) open(t *testing.T, n *net, o compile.Options, cuts ...int) *machine {
	t.Helper()
	p, err := compile.Fuse(n.G, o)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{p: p}
	parts, err := program.Cut(p, cuts...)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range parts {
		program.Assign(q)
		s, err := d.Load(q, n.src, limits)
		if err != nil {
			t.Fatalf("load: %v\n%s", err, program.Text(p))
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		m.stages = append(m.stages, s)
	}
	return m
}

// has fails unless the program holds a step of each kind: else the case would
// not test what its name says.
func (m *machine) has(t *testing.T, kinds []program.Kind) {
	t.Helper()
	for _, k := range kinds {
		found := false
		for _, s := range m.p.Steps {
			found = found || s.Kind == k
		}
		if !found {
			t.Errorf("the program has no step %s:\n%s", k, program.Text(m.p))
		}
	}
}

// run computes a batch through all stages and returns copies of the wanted rows.
func (m *machine) run(t *testing.T, b *batch.Batch) [][]float32 {
	t.Helper()
	out, err := m.try(b)
	if err != nil {
		t.Fatalf("run: %v\n%s", err, program.Text(m.p))
	}
	return out
}

func (m *machine) try(b *batch.Batch) ([][]float32, error) {
	var vals [][]float32
	var err error
	for _, s := range m.stages {
		if vals, err = s.Run(b, vals); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, len(b.Out))
	for i := range out {
		out[i] = append([]float32{}, m.stages[len(m.stages)-1].Logits(i)...)
	}
	return out, nil
}

// near fails unless every value of got is within tol of the largest of want.
func near(what string, got, want [][]float32, tol float64) error {
	top, worst := 0.0, 0.0
	var at [2]int
	for i := range want {
		if len(got[i]) != len(want[i]) {
			return fmt.Errorf("%s: row %d has %d values, the reference %d", what, i, len(got[i]), len(want[i]))
		}
		for k, v := range want[i] {
			top = math.Max(top, math.Abs(float64(v)))
			if e := math.Abs(float64(got[i][k]) - float64(v)); !(e <= worst) {
				worst, at = e, [2]int{i, k}
			}
		}
	}
	if !(worst <= tol*top) {
		return fmt.Errorf("%s: wanted row %d, value %d is %g, the reference says %g: %.1e of the largest (%g), %.0e is allowed",
			what, at[0], at[1], got[at[0]][at[1]], want[at[0]][at[1]], worst/top, top, tol)
	}
	return nil
}

// equal fails unless got and want are the same in bits.
func equal(what string, got, want []float32) error {
	for k := range want {
		if math.Float32bits(got[k]) != math.Float32bits(want[k]) {
			return fmt.Errorf("%s: value %d is %x, was %x (%g, %g)", what, k, math.Float32bits(got[k]), math.Float32bits(want[k]), got[k], want[k])
		}
	}
	return nil
}
