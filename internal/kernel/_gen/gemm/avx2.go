package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
)

// avx2Kernels emits the AVX2 tier: for each type kernels of 1, 2 and 4 rows and
// an unpacker, for each distinct arithmetic one kernel for unpacked slices.
func avx2Kernels(ctx *build.Context) {
	c := newAsm(ctx)
	done := map[string]bool{}
	for _, f := range types {
		for _, m := range []int{1, 2, 4} {
			k := intKernel{asm: c, form: f, m: m}
			k.emit(fmt.Sprintf("avx2%sx%d", f.name, m))
		}
		u := intKernel{asm: c, form: f, m: 1}
		u.emitUnpack("avx2Unpack" + f.name)
		if name := f.wideName(); !done[name] {
			done[name] = true
			k := intKernel{asm: c, form: f, m: 4, wide: true}
			k.emit("avx2" + name)
		}
	}
	for _, f := range floatTypes {
		for _, m := range []int{1, 2, 4} {
			k := floatKernel{asm: c, floatType: f, m: m, parts: 4 / m}
			k.emit(fmt.Sprintf("avx2%sx%d", f.name, m))
		}
	}
	c.wideFloats("avx2WideFloat")
	c.prepareInt8("avx2PrepareInt8")
}

// wideName is the name of the kernel for unpacked slices of the type.
func (f form) wideName() string {
	switch {
	case f.signed():
		return "WideSigned"
	case f.wideSum():
		return "WideMinSplit"
	case f.class == classMin:
		return "WideMin"
	case f.class == classSub:
		return fmt.Sprintf("WideSub%d", f.offset)
	case f.class == classSubMin:
		return "WideSubMin"
	}
	return fmt.Sprintf("WideOffset%d", f.offset)
}
