package cpu_test

import (
	"fmt"
	"testing"

	"github.com/inferflow/inferflow/internal/device"
	"github.com/inferflow/inferflow/internal/device/cpu"
	"github.com/inferflow/inferflow/internal/device/devicetest"
	"github.com/inferflow/inferflow/internal/kernel/attn"
	"github.com/inferflow/inferflow/internal/kernel/gemm"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/internal/weight"
	"github.com/inferflow/inferflow/quant"
)

// on is the processor with a team of threads, keys and values in float32.
func on(t *testing.T, threads int) devicetest.Device {
	t.Helper()
	team, err := sys.NewTeam(threads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(team.Close)
	return devicetest.Device{Load: func(p *program.Program, src weight.Source, l device.Limits) (device.Stage, error) {
		return cpu.Load(p, src, cpu.Options{Limits: l, Team: team, Keys: attn.F32, Values: attn.F32})
	}}
}

func TestDevice(t *testing.T) { devicetest.Run(t, on(t, 2)) }

func TestThreads(t *testing.T) {
	one := on(t, 1)
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { devicetest.SameBits(t, on(t, n), one) })
	}
}

// Products of a feed-forward run by bands have the bits of steps one by one: the
// promises of bits hold large batches, cut in bands, against small ones.
func TestBands(t *testing.T) {
	if !wholeTiles(t, 24) {
		t.Skip("plain Go has no bands")
	}
	defer cpu.SetBandRows(24)()
	d, joined := on(t, 1), map[int]int{}
	load := d.Load
	d.Load = func(p *program.Program, src weight.Source, l device.Limits) (device.Stage, error) {
		s, err := load(p, src, l)
		if err == nil {
			joined[cpu.Bands(s)]++
		}
		return s, err
	}
	devicetest.FeedForward(t, d)
	if joined[2] == 0 || joined[0] == 0 {
		t.Errorf("stages by their number of joined pairs: %v; some should have 2, some none", joined)
	}
}

// wholeTiles says whether this build multiplies float weights by tiles of a kernel.
func wholeTiles(t *testing.T, rows int) bool {
	t.Helper()
	size, err := gemm.PackedBytes(quant.F32, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]byte, 4*16)
	w, err := gemm.Pack(make([]byte, size), quant.F32, 16, 16, func(int) []byte { return row })
	if err != nil {
		t.Fatal(err)
	}
	return w.WholeTiles(rows) == rows
}
