//go:build amd64 && !noasm

package gemm

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/quant"
)

// machine interprets the generated assembly, so that the AVX-512 tier is tested
// on processors without it. It knows just the instructions that occur, and is
// itself held against the processor by running the AVX2 tier.
type machine struct {
	funcs map[string][]line
	data  map[string][]byte
	gp    map[string]uint64
	vec   [32][64]byte
	frame uint64 // the argument
	cmp   int64  // the flags: sign of the last result or comparison
}

type line struct {
	op   string
	args []string
	jump int // target, of jumps
}

func newMachine(t *testing.T, files ...string) *machine {
	m := &machine{funcs: map[string][]line{}, data: map[string][]byte{}, gp: map[string]uint64{}}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m.parse(string(b))
	}
	return m
}

func (m *machine) parse(text string) {
	var name string
	labels := map[string]int{}
	finish := func() {
		for i, l := range m.funcs[name] {
			if strings.HasPrefix(l.op, "J") {
				m.funcs[name][i].jump = labels[l.args[0]]
			}
		}
		labels = map[string]int{}
	}
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		f := strings.Fields(strings.ReplaceAll(s.Text(), ",", " "))
		switch {
		case len(f) == 0 || strings.HasPrefix(f[0], "//") || strings.HasPrefix(f[0], "#") || f[0] == "GLOBL":
		case f[0] == "TEXT":
			finish()
			name = strings.TrimSuffix(strings.TrimPrefix(f[1], "·"), "(SB)")
		case f[0] == "DATA":
			sym, _, _ := strings.Cut(f[1], "<>")
			v, _ := strconv.ParseUint(strings.TrimPrefix(f[2], "$"), 0, 32)
			m.data[sym] = binary.LittleEndian.AppendUint32(m.data[sym], uint32(v))
		case strings.HasSuffix(f[0], ":"):
			labels[strings.TrimSuffix(f[0], ":")] = len(m.funcs[name])
		default:
			m.funcs[name] = append(m.funcs[name], line{op: f[0], args: f[1:]})
		}
	}
	finish()
}

// run executes a function of one pointer.
func (m *machine) run(name string, arg *byte) {
	code, ok := m.funcs[name]
	if !ok {
		panic("no function " + name)
	}
	m.frame = uint64(uintptr(unsafe.Pointer(arg)))
	m.vec = [32][64]byte{}
	for pc := 0; ; pc++ {
		l := code[pc]
		switch l.op {
		case "RET":
			return
		case "JMP":
			pc = l.jump - 1
		case "JNZ", "JZ", "JLT":
			if l.op == "JNZ" && m.cmp != 0 || l.op == "JZ" && m.cmp == 0 || l.op == "JLT" && m.cmp < 0 {
				pc = l.jump - 1
			}
		case "VZEROUPPER", "PREFETCHT0", "PREFETCHT1":
		default:
			if l.op[0] == 'V' {
				m.vector(l.op, l.args)
			} else {
				m.scalar(l.op, l.args)
			}
		}
	}
}

// bytes is the memory at an address that Go code keeps alive.
func at(addr uint64, n int) []byte {
	a := uintptr(addr)
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&a))), n)
}

// address evaluates disp(base)(index*scale) or name<>+off(SB).
func (m *machine) memory(arg string, n int) []byte {
	if sym, off, ok := strings.Cut(arg, "<>+"); ok {
		i, _ := strconv.Atoi(strings.TrimSuffix(off, "(SB)"))
		return m.data[sym][i : i+n]
	}
	disp, rest, _ := strings.Cut(arg, "(")
	d, _ := strconv.ParseInt(disp, 0, 64)
	base, index, ok := strings.Cut(strings.TrimSuffix(rest, ")"), ")(")
	addr := m.gp[base] + uint64(d)
	if ok {
		r, s, _ := strings.Cut(index, "*")
		scale, _ := strconv.Atoi(s)
		addr += m.gp[r] * uint64(scale)
	}
	return at(addr, n)
}

func isMem(arg string) bool { return strings.HasSuffix(arg, ")") }

func (m *machine) scalar(op string, a []string) {
	dst := a[len(a)-1]
	switch {
	case strings.HasSuffix(a[0], "(FP)"):
		m.gp[dst] = m.frame
		return
	case op == "LEAQ":
		m.gp[dst] = uint64(uintptr(unsafe.Pointer(&m.memory(a[0], 1)[0])))
		return
	}
	v := m.value(a[0])
	switch op {
	case "CMOVQEQ":
		if m.cmp == 0 {
			m.gp[dst] = v
		}
		return
	case "MOVQ":
		if isMem(dst) {
			binary.LittleEndian.PutUint64(m.memory(dst, 8), v)
		} else {
			m.gp[dst] = v
		}
		return
	case "ADDQ":
		m.gp[dst] += v
	case "SUBQ":
		m.gp[dst] -= v
	case "XORQ":
		m.gp[dst] ^= v
	case "SHRQ":
		m.gp[dst] >>= v
	case "SHLQ":
		m.gp[dst] <<= v
	case "DECQ":
		m.gp[dst]--
	case "INCQ":
		m.gp[dst]++
	case "CMPQ":
		m.cmp = int64(v - m.value(dst))
		return
	case "TESTQ":
		m.cmp = int64(v & m.value(dst))
		return
	default:
		panic("emulator: " + op)
	}
	m.cmp = int64(m.gp[dst])
}

func (m *machine) value(arg string) uint64 {
	switch {
	case arg[0] == '$':
		v, _ := strconv.ParseUint(arg[1:], 0, 64)
		return v
	case isMem(arg):
		return binary.LittleEndian.Uint64(m.memory(arg, 8))
	}
	return m.gp[arg]
}

// reg parses a vector register: number and bytes.
func vecReg(arg string) (n, size int) {
	n, err := strconv.Atoi(arg[1:])
	if err != nil {
		panic("emulator: register " + arg)
	}
	return n, map[byte]int{'X': 16, 'Y': 32, 'Z': 64}[arg[0]]
}

// source reads n bytes of a vector operand.
func (m *machine) source(arg string, n int) []byte {
	if isMem(arg) {
		return m.memory(arg, n)
	}
	r, _ := vecReg(arg)
	return append([]byte(nil), m.vec[r][:n]...)
}

// narrow gives the bytes that an element of 4 bytes comes from, for
// instructions that widen.
var narrow = map[string]int{"VCVTPH2PS": 2, "VPMOVZXBD": 1, "VPMOVSXBD": 1, "VPMOVSXBW": 2, "VPMOVZXBW": 2}

func (m *machine) vector(op string, a []string) {
	dst := a[len(a)-1]
	if isMem(dst) { // a store
		r, size := vecReg(a[0])
		copy(m.memory(dst, size), m.vec[r][:size])
		return
	}
	d, size := vecReg(dst)
	out := make([]byte, 64)
	name, bcst := strings.CutSuffix(op, ".BCST")
	var src [2][]byte // in Intel's order: the last source first
	imm := 0
	in := a[:len(a)-1]
	if in[0][0] == '$' {
		imm = int(m.value(in[0]))
		in = in[1:]
	}
	for i, s := range in {
		n := size
		if w := narrow[name]; w > 0 {
			n = size / 4 * w
		}
		if bcst && i == 0 || name == "VBROADCASTSS" || name == "VPBROADCASTD" {
			src[i] = []byte(strings.Repeat(string(m.source(s, 4)), size/4))
		} else {
			src[i] = m.source(s, n)
		}
	}
	copy(out, m.vec[d][:size])
	for lane := 0; lane < size; lane += 4 {
		binary.LittleEndian.PutUint32(out[lane:], element(name, out[lane:lane+4], src[0], src[1], lane, imm))
	}
	copy(m.vec[d][:], out) // the rest becomes zero
}

func u32(b []byte) uint32    { return binary.LittleEndian.Uint32(b) }
func f32(b []byte) float32   { return math.Float32frombits(u32(b)) }
func bits(f float32) uint32  { return math.Float32bits(f) }
func s16(b []byte) int32     { return int32(int16(binary.LittleEndian.Uint16(b))) }
func pair(a, b int32) uint32 { return uint32(uint16(a)) | uint32(uint16(b))<<16 }

func saturate(v int32) int32 { return max(-32768, min(32767, v)) }

// element computes the 4 bytes at lane; b is the last source in Go's order's
// first place, c the one after it.
func element(op string, old, b, c []byte, lane, imm int) uint32 {
	if narrow[op] > 0 {
		return widened(op, b, lane)
	}
	x := b[lane : lane+4]
	var y []byte
	if c != nil {
		y = c[lane : lane+4]
	}
	switch op {
	case "VMOVDQU", "VMOVDQU32", "VMOVDQA32", "VMOVUPS", "VBROADCASTSS", "VPBROADCASTD":
		return u32(x)
	case "VPAND", "VPANDD":
		return u32(x) & u32(y)
	case "VPOR", "VPORD":
		return u32(x) | u32(y)
	case "VPXOR", "VPXORD", "VXORPS":
		return u32(x) ^ u32(y)
	case "VPSLLD":
		return u32(x) << imm
	case "VPSRLD":
		return u32(x) >> imm
	case "VPSLLW":
		return pair(s16(x)<<imm, s16(x[2:])<<imm)
	case "VPSRLW":
		return pair(s16(x)&0xffff>>imm, s16(x[2:])&0xffff>>imm)
	case "VPADDD":
		return u32(x) + u32(y)
	case "VPSUBD":
		return u32(y) - u32(x)
	case "VPADDW":
		return pair(s16(x)+s16(y), s16(x[2:])+s16(y[2:]))
	case "VPSUBW":
		return pair(s16(y)-s16(x), s16(y[2:])-s16(x[2:]))
	case "VPMULLW":
		return pair(s16(x)*s16(y), s16(x[2:])*s16(y[2:]))
	case "VPADDB":
		return u32(x)&0x7f7f7f7f + u32(y)&0x7f7f7f7f ^ (u32(x)^u32(y))&0x80808080
	case "VPMAXSD":
		return uint32(max(int32(u32(x)), int32(u32(y))))
	case "VCVTDQ2PS":
		return bits(float32(int32(u32(x))))
	case "VMULPS":
		return bits(f32(x) * f32(y))
	case "VADDPS":
		return bits(f32(x) + f32(y))
	case "VFMADD231PS":
		return bits(fma32(f32(x), f32(y), f32(old)))
	case "VFNMADD231PS":
		return bits(fma32(-f32(x), f32(y), f32(old)))
	case "VFNMADD213PS":
		return bits(fma32(-f32(y), f32(old), f32(x)))
	case "VFMADD213PS":
		return bits(fma32(f32(y), f32(old), f32(x)))
	case "VPERMD":
		return u32(b[u32(y)%uint32(len(b)/4)*4:])
	}
	return bytewise(op, old, b, c, lane)
}

// widened is an element of an instruction whose source is narrower.
func widened(op string, b []byte, lane int) uint32 {
	switch op {
	case "VCVTPH2PS":
		return bits(quant.FromF16(binary.LittleEndian.Uint16(b[lane/2:])))
	case "VPMOVZXBD":
		return uint32(b[lane/4])
	case "VPMOVSXBD":
		return uint32(int32(int8(b[lane/4])))
	case "VPMOVSXBW":
		return pair(int32(int8(b[lane/2])), int32(int8(b[lane/2+1])))
	}
	return pair(int32(b[lane/2]), int32(b[lane/2+1]))
}

// bytewise is an element of an instruction on bytes or words within it.
func bytewise(op string, old, b, c []byte, lane int) (v uint32) {
	x := b[lane : lane+4]
	var y []byte
	if c != nil {
		y = c[lane : lane+4]
	}
	switch op {
	case "VPDPBUSD":
		v = u32(old)
		for i := range 4 {
			v += uint32(int32(y[i]) * int32(int8(x[i])))
		}
	case "VPDPWSSD":
		v = u32(old) + uint32(s16(x)*s16(y)) + uint32(s16(x[2:])*s16(y[2:]))
	case "VPMADDWD":
		v = uint32(s16(x)*s16(y)) + uint32(s16(x[2:])*s16(y[2:]))
	case "VPMADDUBSW":
		p := func(i int) int32 { return int32(y[i]) * int32(int8(x[i])) }
		v = pair(saturate(p(0)+p(1)), saturate(p(2)+p(3)))
	case "VPUNPCKLWD", "VPUNPCKHWD":
		i := lane/16*16 + lane%16/2
		if op == "VPUNPCKHWD" {
			i += 8
		}
		v = pair(s16(c[i:]), s16(b[i:]))
	default:
		for i := range 4 {
			v |= uint32(oneByte(op, x, y, c, lane, i)) << (8 * i)
		}
	}
	return v
}

func oneByte(op string, x, y, c []byte, lane, i int) byte {
	switch op {
	case "VPSHUFB":
		if x[i] >= 128 {
			return 0
		}
		return c[lane/16*16+int(x[i]&15)]
	case "VPABSB":
		return byte(max(int8(x[i]), -int8(x[i])))
	case "VPSIGNB":
		switch s := int8(x[i]); {
		case s < 0:
			return -y[i]
		case s == 0:
			return 0
		}
		return y[i]
	}
	panic("emulator: " + op)
}

// emulated gives the kernels of a set as interpreted functions.
func (m *machine) emulated(ks kernelSet) *kernelSet {
	wrap := func(k kernel) kernel {
		if k == nil {
			return nil
		}
		name := runtime.FuncForPC(reflect.ValueOf(k).Pointer()).Name()
		name = strings.TrimSuffix(name, ".abi0")
		name = name[strings.LastIndexByte(name, '.')+1:]
		return func(p *byte) { m.run(name, p) }
	}
	ks.one, ks.two, ks.four, ks.unpack = wrap(ks.one), wrap(ks.two), wrap(ks.four), wrap(ks.unpack)
	for _, w := range []*wideKernels{&ks.wideKernels, &ks.pair} {
		w.wide, w.set, w.finish, w.only = wrap(w.wide), wrap(w.set), wrap(w.finish), wrap(w.only)
	}
	return &ks
}

// Emulated kernels of both tiers must give the bits of the processor's AVX2.
func TestEmulatedKernels(t *testing.T) {
	if sys.CPUTier() < sys.AVX2 {
		t.Skip("needs AVX2 to compare with")
	}
	m := newMachine(t, "kernels_avx2_amd64.s", "kernels_avx512_amd64.s")
	for _, typ := range allTypes {
		for _, tier := range []sys.Tier{sys.AVX2, sys.AVX512} {
			rng := rand.New(rand.NewPCG(8, uint64(typ)))
			layout, _ := typ.Layout()
			n, sizes := 19, []int{layout.Block, 2*layout.Block + 512}
			if layout.Block == 1 {
				n, sizes = 37, []int{1, 2, segment + 141}
			}
			for _, k := range sizes {
				w := newMatrix(t, rng, typ, n, k)
				e := w.on(tier)
				e.kernels = m.emulated(*setOf(tier, typ))
				for _, rows := range []int{1, 3, 9, 22} {
					a := prepared(typ, randomActs(rng, rows, k), rows, k)
					want := mulAll(w.on(sys.AVX2), a, 0, rows, 0, w.Panels())
					sameBits(t, fmt.Sprint(typ, " ", tier, " k=", k, " m=", rows), mulAll(e, a, 0, rows, 0, w.Panels()), want)
					whole := finishCase{0, 0, n / panelRows, 40, true, true}
					checkFinish(t, fmt.Sprint(typ, " ", tier, " finished"), e, a, whole, randomActs(rng, 1, n), randomActs(rng, rows, 40))
				}
			}
		}
	}
}

// Each file keeps to the instructions that its tier promises: AVX2 must not use
// the registers and the masks that only AVX-512 has.
func TestInstructionSets(t *testing.T) {
	m := newMachine(t, "kernels_avx2_amd64.s")
	for name, code := range m.funcs {
		for _, l := range code {
			if strings.Contains(l.op, ".") {
				t.Errorf("%s: %s is not AVX2", name, l.op)
			}
			for _, a := range l.args {
				if len(a) < 2 || strings.HasPrefix(l.op, "J") || !strings.Contains("XYZK", a[:1]) {
					continue
				}
				if r, size := vecReg(a); r > 15 || size > 32 {
					t.Errorf("%s: %s %v is not AVX2", name, l.op, l.args)
				}
			}
		}
	}
}
