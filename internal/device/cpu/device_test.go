package cpu_test

import (
	"fmt"
	"testing"

	"github.com/inferflow/inferflow/internal/device"
	"github.com/inferflow/inferflow/internal/device/cpu"
	"github.com/inferflow/inferflow/internal/device/devicetest"
	"github.com/inferflow/inferflow/internal/kernel/attn"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/internal/weight"
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
