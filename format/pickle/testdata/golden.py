#!/usr/bin/env python3
"""Writes the checkpoints of this folder with PyTorch, and values.json: what each holds.

    pip install torch==2.15.0 numpy && ./golden.py
"""
import collections, json, pathlib
import torch

HERE = pathlib.Path(__file__).resolve().parent
base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
shared = torch.arange(6, dtype=torch.bfloat16) / 2

PLAIN = {
    "f32": base, "f64": torch.tensor([1.5, -2.0], dtype=torch.float64), "f16": torch.tensor([[1.0, 65504.0]], dtype=torch.float16),
    "bf16": shared, "again": shared, "part": shared[2:5], "i64": torch.tensor([1 << 20, -3]), "i32": torch.tensor([7, -7], dtype=torch.int32),
    "i16": torch.tensor([300], dtype=torch.int16), "i8": torch.tensor([-128, 127], dtype=torch.int8), "u8": torch.tensor([0, 255], dtype=torch.uint8),
    "bool": torch.tensor([True, False]), "scalar": torch.tensor(3.5), "empty": torch.zeros(0, 4),
    "transposed": base.t(), "columns": base[:, 1:5:2], "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3), "rows": base[1:3],
    "cube": torch.arange(24, dtype=torch.int16).reshape(2, 3, 4).permute(2, 0, 1),
    "parameter": torch.nn.Parameter(torch.tensor([1.0, 2.0])),
}
NEW = PLAIN | {
    "e4m3": torch.tensor([1.0, -448.0, 0.5]).to(torch.float8_e4m3fn), "e5m2": torch.tensor([1.0, -57344.0]).to(torch.float8_e5m2),
    "u16": torch.tensor([65535], dtype=torch.uint16), "u32": torch.tensor([1 << 31], dtype=torch.uint32),
}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 2), torch.nn.LayerNorm(2)


torch.manual_seed(1)
net = Net()
nested = {"epoch": 3, "state_dict": {"module." + k: v for k, v in net.state_dict().items()}, "optimizer": {"state": {0: {"step": torch.tensor(1.0)}}, "lr": 1e-3}}
FILES = {
    "zip.bin": (NEW, {}), "legacy.bin": (PLAIN, {"_use_new_zipfile_serialization": False}), "zip4.pt": (PLAIN, {"pickle_protocol": 4}),
    "state.pth": (net.state_dict(), {}), "state_legacy.pth": (net.state_dict(), {"_use_new_zipfile_serialization": False}), "nested.pt": (nested, {}),
}
values = {}
for name, (what, options) in FILES.items():
    torch.save(what, HERE / name, **options)
    named = net.state_dict() if what is nested else what
    values[name] = {k: [str(list(v.shape)), v.detach().double().flatten().tolist()] for k, v in named.items()}
(HERE / "values.json").write_text(json.dumps(values))
torch.save(net, HERE / "module.bin")
