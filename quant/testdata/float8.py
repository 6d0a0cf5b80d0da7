#!/usr/bin/env python3
"""Writes float8/TYPE.bin beside itself: what PyTorch makes of each of the 256 codes, as little-endian float32.

    pip install torch==2.15.0 numpy && ./float8.py
"""
import pathlib
import torch

HERE = pathlib.Path(__file__).resolve().parent
for name, dtype in {"F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
                    "F8_E5M2FNUZ": torch.float8_e5m2fnuz, "F8_E8M0": torch.float8_e8m0fnu}.items():
    values = torch.arange(256, dtype=torch.uint8).view(dtype).float()
    (HERE / "float8" / (name + ".bin")).write_bytes(values.numpy().astype("<f4").tobytes())
