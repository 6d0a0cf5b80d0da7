"""Writes golden.jsonl beside every tokenizer.json below the folder given: texts, ids with and without special tokens, and what they decode to.

    pip install tokenizers && python golden.py $INFERFLOW_TESTDATA/tok
"""
import json
import pathlib
import sys

from tokenizers import Tokenizer

from texts import texts


def golden(path):
    tok = Tokenizer.from_file(str(path))
    tok.no_truncation()
    tok.no_padding()
    with open(path.with_name("golden.jsonl"), "w") as f:
        for text in texts():
            ids = tok.encode(text, add_special_tokens=False).ids
            row = {
                "text": text,
                "ids": ids,
                "special": tok.encode(text, add_special_tokens=True).ids,
                "decoded": tok.decode(ids, skip_special_tokens=False),
                "skipped": tok.decode(ids, skip_special_tokens=True),
            }
            f.write(json.dumps(row) + "\n")


for path in sorted(pathlib.Path(sys.argv[1]).rglob("tokenizer.json")):
    print(path, flush=True)
    golden(path)
