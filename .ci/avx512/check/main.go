// Command check proves that a processor, real or emulated, does what the
// AVX-512 kernels need: it looks at CPUID as Go's cpu package does, runs
// VPDPBUSD in its EVEX and VEX forms against plain Go, and with -rate measures
// instructions a second. It imports the standard library only.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func dotAVX512(acc *[16]int32, u *[64]uint8, s *[64]int8)
func dotVEX(acc *[8]int32, u *[32]uint8, s *[32]int8)
func spinScalar(n uint64) uint64
func spinAVX512(n uint64)
func spinFMA(n uint64)
func cpuid(leaf, sub uint32) (a, b, c, d uint32)
func xgetbv() uint32

// A feature is a bit of CPUID leaf 7: sub-leaf, register (b, c, d or a), bit.
type feature struct {
	name     string
	sub      uint32
	reg, bit int
	need     bool
}

const (
	regA = iota
	regB
	regC
	regD
)

var features = []feature{
	{"AVX512F", 0, regB, 16, true},
	{"AVX512DQ", 0, regB, 17, true},
	{"AVX512BW", 0, regB, 30, true},
	{"AVX512VL", 0, regB, 31, true},
	{"AVX512VNNI", 0, regC, 11, true},
	{"AVX512VBMI", 0, regC, 1, false},
	{"AVX512VBMI2", 0, regC, 6, false},
	{"GFNI", 0, regC, 8, false},
	{"AVX512BITALG", 0, regC, 12, false},
	{"AVX512VPOPCNTDQ", 0, regC, 14, false},
	{"AVX512FP16", 0, regD, 23, false},
	{"AVXVNNI", 1, regA, 4, false},
	{"AVX512BF16", 1, regA, 5, false},
}

func main() {
	rate := flag.Bool("rate", false, "measure instructions a second by the guest's own clock")
	turns := flag.Uint64("turns", 0, "only run this many turns of -loop")
	loop := flag.String("loop", "scalar", "scalar, vnni or fma")
	flag.Parse()
	if *turns > 0 {
		spin(*loop, *turns)
		return
	}
	has, ok := detect()
	ok = checkAVX512() && ok
	if has["AVXVNNI"] {
		ok = checkVEX() && ok
	}
	if *rate {
		for _, l := range []string{"scalar", "vnni", "fma"} {
			start := time.Now()
			n := spin(l, 2_000_000)
			fmt.Printf("%s: %.1f million instructions a second\n", l, float64(n)/time.Since(start).Seconds()/1e6)
		}
	}
	if !ok {
		os.Exit(1)
	}
	fmt.Println("ok")
}

// spin runs a loop and returns its number of instructions.
func spin(loop string, turns uint64) uint64 {
	switch loop {
	case "vnni":
		spinAVX512(turns)
		return turns * 10
	case "fma":
		spinFMA(turns)
		return turns * 10
	}
	spinScalar(turns)
	return turns * 4
}

func detect() (map[string]bool, bool) {
	const zmmState = 0xe6 // XMM, YMM, opmask and both halves of ZMM
	has, ok := map[string]bool{}, xgetbv()&zmmState == zmmState
	fmt.Printf("XCR0 %#x\n", xgetbv())
	for _, f := range features {
		a, b, c, d := cpuid(7, f.sub)
		has[f.name] = [...]uint32{a, b, c, d}[f.reg]>>f.bit&1 == 1
		fmt.Printf("%s %v\n", f.name, has[f.name])
		ok = ok && (has[f.name] || !f.need)
	}
	if !ok {
		fmt.Println("check: this processor lacks a needed feature")
		os.Exit(1) // before an instruction that it does not have
	}
	return has, ok
}

// The inputs reach every sign and the sums that would saturate 16 bits.
func inputs() (u [64]uint8, s [64]int8) {
	x := uint32(1)
	for i := range u {
		x = x*1664525 + 1013904223
		u[i], s[i] = uint8(x>>24), int8(x>>16)
	}
	copy(u[:4], []uint8{255, 255, 255, 255})
	copy(s[:4], []int8{-128, -128, -128, -128})
	return u, s
}

func checkAVX512() bool {
	u, s := inputs()
	var got, want [16]int32
	for i := range got {
		got[i], want[i] = int32(i*1000-7), int32(i*1000-7)
	}
	for i := range u {
		want[i/4] += int32(u[i]) * int32(s[i])
	}
	dotAVX512(&got, &u, &s)
	fmt.Println("VPDPBUSD zmm", got == want, got)
	return got == want
}

func checkVEX() bool {
	u, s := inputs()
	var got, want [8]int32
	for i := range want {
		for j := 4 * i; j < 4*i+4; j++ {
			want[i] += int32(u[j]) * int32(s[j])
		}
	}
	dotVEX(&got, (*[32]uint8)(u[:]), (*[32]int8)(s[:]))
	fmt.Println("VPDPBUSD ymm, VEX form", got == want, got)
	return got == want
}
