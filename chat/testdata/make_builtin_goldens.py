#!/usr/bin/env python3
"""Writes builtin_goldens.json: what llama.cpp makes of the templates that it
knows by name.

    python3 make_builtin_goldens.py PATH/libllama.so
"""
import ctypes
import json
import pathlib
import sys

here = pathlib.Path(__file__).parent


class Message(ctypes.Structure):
    _fields_ = [("role", ctypes.c_char_p), ("content", ctypes.c_char_p)]


apply = ctypes.CDLL(sys.argv[1]).llama_chat_apply_template
apply.argtypes = [ctypes.c_char_p, ctypes.POINTER(Message), ctypes.c_size_t, ctypes.c_bool, ctypes.c_char_p, ctypes.c_int32]
apply.restype = ctypes.c_int32
conversations = {c["name"]: c["messages"] for c in json.loads((here / "conversations.json").read_text())}
out = {}
for path in sorted((here.parent / "builtin").glob("*.jinja")):
    for name in ("multi", "nosystem"):
        msgs = [Message(m["role"].encode(), m["content"].encode()) for m in conversations[name]]
        buf = ctypes.create_string_buffer(1 << 16)
        n = apply(path.stem.encode(), (Message * len(msgs))(*msgs), len(msgs), True, buf, 1 << 16)
        if n < 0:
            print(path.stem, "is not known to llama.cpp")
            break
        out.setdefault(path.stem, {})[name] = buf.raw[:n].decode()
(here / "builtin_goldens.json").write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")
print(len(out), "templates")
