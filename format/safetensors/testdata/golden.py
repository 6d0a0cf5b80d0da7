#!/usr/bin/env python3
"""Writes sample.safetensors beside itself with the reference implementation.

    pip install safetensors==0.8.0 numpy==2.4.6 && ./golden.py
"""
import os
import numpy as np
from safetensors.numpy import save_file

save_file({
    "model.norm.weight": np.array([1, -2.5, 0.25], np.float32),
    "wide": np.arange(6, dtype=np.float64).reshape(2, 3),
    "half": np.array([[1, -2], [0.5, 65504]], np.float16),
    "bytes": np.array([0, 127, -128], np.int8),
    "unsigned": np.array([0, 255], np.uint8),
    "ids": np.array([[1 << 20], [-3]], np.int64),
    "ints": np.array([7, -7], np.int32),
    "mask": np.array([True, False]),
    "scalar": np.array(3.5, np.float32),
    "empty": np.zeros((0, 4), np.float32),
}, os.path.join(os.path.dirname(os.path.abspath(__file__)), "sample.safetensors"), metadata={"format": "pt", "é": "ü\n"})
