"""SentencePiece models for the goldens: training, and reading the model file without protobuf."""
import io
import os
import struct
import tempfile

import sentencepiece

# Rules of a small charsmap: full-width ASCII, ligatures, compositions, controls that vanish, kinds of space.
RULES = [("%X" % (0xff01 + i), "%X" % (0x21 + i)) for i in range(94)] + [
    ("65 301", "E9"), ("45 301", "C9"), ("6E 303", "F1"), ("FB01", "66 69"), ("FB02", "66 6C"), ("FB03", "66 66 69"), ("BD", "31 2044 32"), ("B2", "32"), ("200B", ""), ("FEFF", ""),
    ("A0", "20"), ("3000", "20"), ("2003", "20"), ("9", "20"), ("A", "20"), ("D", "20"), ("2026", "2E 2E 2E"), ("2122", "54 4D"),
]


def train(lines, **options):
    with tempfile.TemporaryDirectory() as dir:
        rules = os.path.join(dir, "rules.tsv")
        with open(rules, "w") as f:
            f.writelines("%s\t%s\n" % r for r in RULES)
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, minloglevel=2,
            **({} if "normalization_rule_name" in options else {"normalization_rule_tsv": rules}), **options)
    return out.getvalue()


def varint(data, at):
    value = shift = 0
    while True:
        b = data[at]
        at += 1
        value |= (b & 127) << shift
        shift += 7
        if b < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 5:
            value, at = struct.unpack("<f", data[at:at + 4])[0], at + 4
        elif key & 7 == 1:
            value, at = data[at:at + 8], at + 8
        else:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def read(model):
    """Returns the pieces (text, score, type) and the precompiled charsmap."""
    pieces, charsmap = [], b""
    for number, value in fields(model):
        if number == 1:
            piece = {1: b"", 2: 0.0, 3: 1, **dict(fields(value))}
            pieces.append((piece[1].decode(), piece[2], piece[3]))
        elif number == 3:
            charsmap = dict(fields(value)).get(2, b"")
    return pieces, charsmap
