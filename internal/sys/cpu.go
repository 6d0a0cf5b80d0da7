// Package sys holds what the operating system and the processor give: memory
// maps, arenas off the Go heap, CPU features, the thread team. It imports
// nothing of the project. Read Team first.
package sys

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/cpu"
)

// Tier is a set of CPU instructions that kernels are generated for. It is
// chosen once at start; a program's results may differ in the last bits
// between tiers, never within one.
type Tier int

const (
	Generic Tier = iota // plain Go, any processor
	AVX2                // AVX2, FMA, F16C
	AVX512              // AVX-512 F, BW, VL, DQ, VNNI
)

func (t Tier) String() string { return [...]string{"generic", "avx2", "avx512"}[t] }

// CPUTier is the best tier of this processor, or the one that the environment
// variable INFERFLOW_CPU names (generic, avx2, avx512) where the processor has it.
// A name that is unknown or not supported panics at first use: silence would
// make a forced test run on another tier.
var CPUTier = sync.OnceValue(func() Tier {
	best := detect()
	name := os.Getenv("INFERFLOW_CPU")
	if name == "" {
		return best
	}
	for t := Generic; t <= AVX512; t++ {
		if t.String() == name {
			if t > best {
				panic(fmt.Sprintf("sys: INFERFLOW_CPU=%s: this processor supports only %s", name, best))
			}
			return t
		}
	}
	panic(fmt.Sprintf("sys: INFERFLOW_CPU=%s: unknown; use generic, avx2 or avx512", name))
})

func detect() Tier {
	x := cpu.X86
	if x.HasAVX2 && x.HasFMA && x.HasF16C {
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VNNI {
			return AVX512
		}
		return AVX2
	}
	return Generic
}
