#!/usr/bin/env python3
"""Writes decode/*.bin and encode/*.bin beside itself: goldens for package quant.

decode/TYPE.bin: blocks of the type, then what dequantize of the Python package
gguf makes of them, as little-endian float32. encode/TYPE.bin: values as
little-endian float32, then the blocks that quantize makes of them.

    pip install gguf==0.19.0 numpy==2.4.6 && ./golden.py
"""
import os
import numpy as np
import gguf
from gguf.constants import GGML_QUANT_SIZES

Q = gguf.GGMLQuantizationType
HERE = os.path.dirname(os.path.abspath(__file__))

# Offsets of the float16 scales inside a block.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "IQ4_NL": [0], "MXFP4": [],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_XS": [0],
}
# Bit patterns of extreme scales: zeros, smallest and largest subnormal,
# smallest normal, one, largest, an ordinary weight's, its negative.
SCALES = [0x0000, 0x8000, 0x0001, 0x03FF, 0x8001, 0x0400, 0x3C00, 0x7BFF, 0xFBFF, 0x2345, 0xA345, 0x1ABC]


def decode(rng):
    os.makedirs(os.path.join(HERE, "decode"), exist_ok=True)
    for name, halves in HALVES.items():
        block, size = GGML_QUANT_SIZES[Q[name]]
        n = 12 if block == 32 else 6
        blocks = rng.integers(0, 256, (n, size), dtype=np.uint8)
        picks = rng.permutation(len(SCALES))
        for i in range(n):
            for j, at in enumerate(halves):
                scale = SCALES[picks[(i + 5 * j) % len(SCALES)]]
                blocks[i, at], blocks[i, at + 1] = scale & 255, scale >> 8
        if name == "MXFP4":
            blocks[:8, 0] = [0, 1, 2, 3, 127, 128, 254, 255]
        values = gguf.quants.dequantize(blocks.reshape(1, -1), Q[name]).astype("<f4")
        assert values.size == n * block
        with open(os.path.join(HERE, "decode", name + ".bin"), "wb") as f:
            f.write(blocks.tobytes() + values.tobytes())


def inputs(rng, rows, block):
    x = rng.standard_normal((rows, block)).astype(np.float32)
    x[0] = 0
    x[1] *= 1e-6
    x[2] *= 1e3
    x[3] = np.linspace(-1, 1, block)
    x[4] = np.abs(x[4])
    x[5] = -0.25
    x[6, 1:] = 0
    x[7] *= rng.standard_normal(block) ** 3
    return x


def encode(rng):
    os.makedirs(os.path.join(HERE, "encode"), exist_ok=True)
    for name in ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]:
        x = inputs(rng, 10, 32)
        if name in ("F16", "BF16"):
            x = np.concatenate([x, np.array([
                0, -0.0, 65504, 65519.99, 65520, -1e30, 6.1035156e-5, 6.1e-5, 5.9604645e-8, 2.9802322e-8,
                2.9802326e-8, 8.940697e-8, 1e-45, 1e-40, 3.4e38, 1.00048828125, 1.00146484375, 2049, 2051,
                1.00390625, 1.01171875, -1.00390625, np.inf, -np.inf, 0.333333, 2.5, -7, 1e-3, 1e-5, 1e-7, 4096.5,
                4095.7], np.float32).reshape(1, 32)])
        x = x.reshape(1, -1)
        with np.errstate(over="ignore"):
            blocks = gguf.quants.quantize(x, Q[name])
        with open(os.path.join(HERE, "encode", name + ".bin"), "wb") as f:
            f.write(x.astype("<f4").tobytes() + blocks.tobytes())


if __name__ == "__main__":
    decode(np.random.default_rng(20260401))
    encode(np.random.default_rng(20260402))
