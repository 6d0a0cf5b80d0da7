#!/usr/bin/env python3
"""Writes sample.gguf beside itself with the Python package gguf.

    pip install gguf==0.19.0 numpy==2.4.6 && ./golden.py
"""
import os
import numpy as np
import gguf

w = gguf.GGUFWriter(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sample.gguf"), "tiny")
w.add_uint32("tiny.block_count", 2)
w.add_float32("tiny.eps", 1e-5)
w.add_float64("tiny.big", 1e300)
w.add_bool("tiny.flag", True)
w.add_int64("tiny.low", -(1 << 40))
w.add_uint64("tiny.high", (1 << 64) - 1)
w.add_array("tiny.heads", [4, 2, 4])
w.add_array("tiny.windows", [True, False])
w.add_array("tiny.scales", [0.5, 0.25])
w.add_token_list(["<s>", "Ġhello", "", "é"])
w.add_string("tiny.text", "two\nlines é")
w.add_tensor("token_embd.weight", np.arange(12, dtype=np.float32).reshape(4, 3))
w.add_tensor("norm.weight", np.array([1, 0.5, -2], np.float16))
x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 64)
w.add_tensor("quantised", gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
w.add_tensor("ids", np.array([[[1, 2]], [[3, -4]], [[5, 6]]], np.int32))
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
