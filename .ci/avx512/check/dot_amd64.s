#include "textflag.h"

// func dotAVX512(acc *[16]int32, u *[64]uint8, s *[64]int8)
TEXT ·dotAVX512(SB), NOSPLIT, $0-24
	MOVQ acc+0(FP), DI
	MOVQ u+8(FP), SI
	MOVQ s+16(FP), DX
	VMOVDQU32 (DI), Z0
	VMOVDQU8 (SI), Z1
	VPDPBUSD (DX), Z1, Z0
	VMOVDQU32 Z0, (DI)
	VZEROUPPER
	RET

// The VEX form is given as bytes: the assembler has only the EVEX one.
// func dotVEX(acc *[8]int32, u *[32]uint8, s *[32]int8)
TEXT ·dotVEX(SB), NOSPLIT, $0-24
	MOVQ acc+0(FP), DI
	MOVQ u+8(FP), SI
	MOVQ s+16(FP), DX
	VMOVDQU (DI), Y0
	VMOVDQU (SI), Y1
	VMOVDQU (DX), Y2
	BYTE $0xc4; BYTE $0xe2; BYTE $0x75; BYTE $0x50; BYTE $0xc2 // vpdpbusd ymm0, ymm1, ymm2
	VMOVDQU Y0, (DI)
	VZEROUPPER
	RET

// func spinScalar(n uint64) uint64: 4 instructions a turn
TEXT ·spinScalar(SB), NOSPLIT, $0-16
	MOVQ n+0(FP), CX
	XORQ AX, AX
scalar:
	ADDQ CX, AX
	RORQ $7, AX
	SUBQ $1, CX
	JNZ scalar
	MOVQ AX, ret+8(FP)
	RET

// func spinAVX512(n uint64): 8 VPDPBUSD of 512 bits, 2 others a turn
TEXT ·spinAVX512(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), CX
vector:
	VPDPBUSD Z8, Z9, Z0
	VPDPBUSD Z8, Z9, Z1
	VPDPBUSD Z8, Z9, Z2
	VPDPBUSD Z8, Z9, Z3
	VPDPBUSD Z8, Z9, Z4
	VPDPBUSD Z8, Z9, Z5
	VPDPBUSD Z8, Z9, Z6
	VPDPBUSD Z8, Z9, Z7
	SUBQ $1, CX
	JNZ vector
	VZEROUPPER
	RET

// func spinFMA(n uint64): 8 VFMADD231PS of 512 bits, 2 others a turn
TEXT ·spinFMA(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), CX
fma:
	VFMADD231PS Z8, Z9, Z0
	VFMADD231PS Z8, Z9, Z1
	VFMADD231PS Z8, Z9, Z2
	VFMADD231PS Z8, Z9, Z3
	VFMADD231PS Z8, Z9, Z4
	VFMADD231PS Z8, Z9, Z5
	VFMADD231PS Z8, Z9, Z6
	VFMADD231PS Z8, Z9, Z7
	SUBQ $1, CX
	JNZ fma
	VZEROUPPER
	RET

// func cpuid(leaf, sub uint32) (a, b, c, d uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, a+8(FP)
	MOVL BX, b+12(FP)
	MOVL CX, c+16(FP)
	MOVL DX, d+20(FP)
	RET

// func xgetbv() uint32
TEXT ·xgetbv(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, ret+0(FP)
	RET
