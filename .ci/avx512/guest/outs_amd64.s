#include "textflag.h"

// func outs(port uint16, p []byte)
TEXT ·outs(SB), NOSPLIT, $0-32
	MOVWLZX port+0(FP), DX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	CLD
	REP; OUTSB
	RET
