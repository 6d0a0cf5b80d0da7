"""Writes shapes/FAMILY.BINDING.json: configuration and tensor shapes of small models.

Usage: make_shapes.py [--out DIR] ZOO [FAMILY ...]
ZOO holds FAMILY/config.json with FAMILY/model.safetensors, and gguf/FAMILY.gguf (needs the gguf package).
With NAME=FILE.gguf in place of a family that one file is read.
"""
import json, os, struct, sys

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes")


def dump(name, binding, arch, config, tensors):
    tensors = sorted(tensors)
    with open(os.path.join(OUT, f"{name}.{binding}.json"), "w") as f:
        f.write('{"binding": %s, "architecture": %s,\n"config": %s,\n"tensors": [\n' % (json.dumps(binding), json.dumps(arch), json.dumps(config)))
        f.write(",\n".join(json.dumps(t) for t in tensors))
        f.write("\n]}\n")


def hf(zoo, family):
    config = json.load(open(os.path.join(zoo, family, "config.json")))
    raw = open(os.path.join(zoo, family, "model.safetensors"), "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + n])
    dump(family, "hf", "", config, [(k, v["dtype"], v["shape"]) for k, v in header.items() if k != "__metadata__"])


def gguf_file(name, path):
    import numpy as np
    from gguf import GGUFReader

    r = GGUFReader(path)
    config = {}
    for key, field in r.fields.items():
        if key.startswith("GGUF.") or key.startswith("tokenizer.chat"):
            continue
        value = field.contents()
        if key.startswith("tokenizer.") and isinstance(value, list):
            continue
        if isinstance(value, float):
            value = float(str(np.float32(value)))  # the shortest decimal of the stored float32
        config[key] = value
    tensors = [(t.name, t.tensor_type.name, [int(d) for d in reversed(t.shape)]) for t in r.tensors]
    dump(name, "gguf", config["general.architecture"], config, tensors)


if sys.argv[1] == "--out":
    OUT = sys.argv[2]
    del sys.argv[1:3]
os.makedirs(OUT, exist_ok=True)
zoo = sys.argv[1]
for family in sys.argv[2:]:
    if "=" in family:
        gguf_file(*family.split("=", 1))
        continue
    hf(zoo, family)
    path = os.path.join(zoo, "gguf", family + ".gguf")
    if os.path.exists(path):
        gguf_file(family, path)
