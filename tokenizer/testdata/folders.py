"""Writes small model folders without tokenizer.json, each with golden.jsonl.gz: what the library that such files belong to makes of some texts.

    pip install sentencepiece protobuf tokenizers transformers tiktoken regex && python folders.py
"""
import base64
import gzip
import json
import pathlib
import shutil
import tempfile
import unicodedata

import sentencepiece
import tiktoken
import transformers
from sentencepiece import sentencepiece_model_pb2 as pb

import spm
from texts import FIXED, texts

transformers.logging.set_verbosity_error()
OUT = pathlib.Path(__file__).parent / "folders"
SMALL = pathlib.Path(__file__).parent / "small"
CORPUS = [t for t in FIXED * 2 if t.strip() and "\0" not in t] + [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind.", "Once upon a time there was a little house in the big woods.",
    "She sells sea shells by the sea shore; the shells she sells are surely seashells.", "Der schnelle braune Fuchs springt über den faulen Hund.", "今天天气很好，我们去公园散步吧。",
] * 4
TEXTS = [t for t in texts(50, seed=23) if "\0" not in t] + ["=" * 37, "foobar foo foob<sep>ar", "you你 " * 20, "abc" * 400, ">>fr<< Hello >>fr<< World"]
USER = dict(user_defined_symbols=["<sep>", "▁▁", "foo", "foobar"], control_symbols=["<ctl>"])


def write(name, files, rows):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file, data in files.items():
        if isinstance(data, (dict, list)):
            data = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        (folder / file).write_bytes(data.encode() if isinstance(data, str) else data)
    rows = rows(folder) if callable(rows) else rows
    with gzip.GzipFile(folder / "golden.jsonl.gz", "wb", mtime=0) as f:
        for row in rows:
            f.write((json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n").encode())
    print(name, len(rows), sum(f.stat().st_size for f in folder.iterdir()))


def train(kind, size, unused=False, **options):
    model = spm.train(CORPUS, model_type=kind, vocab_size=size, hard_vocab_limit=False, **options)
    m = pb.ModelProto.FromString(model)
    if unused:
        for i, p in enumerate(m.pieces):
            if p.type == 1 and i % 5 == 3:
                p.type = 5
    m.trainer_spec.ClearField("input")
    return m.SerializeToString()


def pieces(model):
    """Rows of sentencepiece: special tokens are never parsed."""
    sp = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [{"text": t, "parse": False, "ids": sp.encode(t), "decoded": sp.decode(sp.encode(t))} for t in TEXTS]


def offset(model, first):
    """Rows of sentencepiece with fairseq's ids: <s> <pad> </s> <unk> and then the pieces from the third on."""
    sp = sentencepiece.SentencePieceProcessor(model_proto=model)
    rows = []
    for t in TEXTS:
        ids = [i + 1 if i else 3 for i in sp.encode(t)]
        rows.append({"text": t, "parse": False, "ids": ids, "special": [0] + ids + [2]})
    return rows


def transformer(parse=True, decode=True):
    def rows(folder):
        tok = transformers.AutoTokenizer.from_pretrained(str(folder))
        out = []
        for t in TEXTS:
            ids = tok.encode(t, add_special_tokens=False)
            row = {"text": t, "parse": parse, "ids": ids, "special": tok.encode(t)}
            if decode:
                row["decoded"] = tok.decode(ids, clean_up_tokenization_spaces=False)
            out.append(row)
        return out
    return rows


def ranked(pattern, ranks, shift=0, form=None):
    enc = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    rows = []
    for t in TEXTS:
        ids = enc.encode_ordinary(unicodedata.normalize(form, t) if form else t)
        rows.append({"text": t, "parse": False, "ids": [i + shift for i in ids], "decoded": enc.decode(ids)})
    return rows


def byte_ranks():
    """Ranks of a byte-level vocabulary: its tokens in the order of their merges."""
    data = json.loads((SMALL / "bpe-gpt2.json").read_text())["model"]
    chars = transformers.convert_slow_tokenizer.bytes_to_unicode()
    back = {c: b for b, c in chars.items()}
    ranks = {bytes([b]): b for b in range(256)}
    for m in data["merges"]:
        whole = bytes(back[c] for c in "".join(m if isinstance(m, list) else m.split(" ")))
        ranks.setdefault(whole, len(ranks))
    return ranks


def main():
    uni = train("unigram", 420)
    bpe = train("bpe", 500)
    models = {
        "spm-unigram": uni,
        "spm-unigram-user": train("unigram", 700, byte_fallback=True, **USER),
        "spm-unigram-suffix": train("unigram", 420, treat_whitespace_as_suffix=True),
        "spm-bpe": bpe,
        "spm-bpe-user": train("bpe", 800, byte_fallback=True, **USER),
        "spm-bpe-unused": train("bpe", 500, unused=True),
        "spm-bpe-raw": train("bpe", 700, normalization_rule_name="identity", remove_extra_whitespaces=False, byte_fallback=True, split_by_whitespace=False),
        "spm-char": train("char", 400, **USER),
        "spm-word": train("word", 300),
    }
    for name, model in models.items():
        write(name, {"tokenizer.model": model}, pieces(model))
    write("fairseq", {"sentencepiece.bpe.model": uni, "tokenizer_config.json": {"tokenizer_class": "XLMRobertaTokenizer"}}, offset(uni, 3))
    texts_of = [p.piece for p in pb.ModelProto.FromString(uni).pieces][3:]
    vocab = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    for p in texts_of:
        vocab["made%d" % len(vocab) if len(vocab) % 11 == 0 else p] = len(vocab)
    write("numbered", {"sentencepiece.bpe.model": uni, "vocab.json": vocab, "tokenizer_config.json": {"tokenizer_class": "M2M100Tokenizer", "src_lang": "de"}}, transformer(decode=False))
    vocab = {"</s>": 0, "<unk>": 1, ">>fr<<": 2}
    for p in reversed(texts_of):
        vocab[p] = len(vocab)
    vocab["<pad>"] = len(vocab)
    write("pair", {"source.spm": uni, "target.spm": bpe, "vocab.json": vocab, "tokenizer_config.json": {"tokenizer_class": "MarianTokenizer", "source_lang": "en"}}, transformer(decode=False))
    words = json.loads((SMALL / "wordpiece-bert.json").read_text())["model"]["vocab"]
    lines = "".join(w + "\n" for w in sorted(words, key=words.get))
    write("words", {"vocab.txt": lines}, lambda folder: words_rows(lines, {}))
    conf = {"tokenizer_class": "BertTokenizer", "do_lower_case": False, "tokenize_chinese_chars": False}
    write("words-cased", {"vocab.txt": lines, "tokenizer_config.json": conf}, transformer())
    data = json.loads((SMALL / "bpe-gpt2.json").read_text())["model"]
    merges = "#version: 0.2\n" + "".join((m if isinstance(m, str) else " ".join(m)) + "\n" for m in data["merges"])
    conf = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True}
    write("merges", {"vocab.json": data["vocab"], "merges.txt": merges, "tokenizer_config.json": conf}, transformer())
    conf = {"tokenizer_class": "RobertaTokenizer", "pad_token": "<unk>", "mask_token": {"content": "the", "lstrip": True, "__type": "AddedToken"}}
    write("merges-around", {"vocab.json": data["vocab"], "merges.txt": merges, "tokenizer_config.json": conf}, transformer())
    ranks = byte_ranks()
    text = "".join(base64.b64encode(t).decode() + " %d\n" % r for t, r in ranks.items())
    presets = json.loads((OUT.parent.parent / "data" / "pretokenizers.json").read_text())["splits"]
    write("ranks", {"cl100k_base.tiktoken": text}, ranked(presets["llama3"][0], ranks))
    write("ranks-model", {"qwen.tiktoken": text}, ranked(presets["qwen2"][0], ranks, form="NFC"))
    tekken = {"config": {"pattern": presets["tekken"][0], "default_vocab_size": len(ranks) + 10, "default_num_special_tokens": 10},
              "vocab": [{"rank": r, "token_bytes": base64.b64encode(t).decode(), "token_str": None} for t, r in ranks.items()]}
    write("tekken", {"tekken.json": tekken}, ranked(presets["tekken"][0], ranks, shift=10))


def words_rows(lines, conf):
    """Rows of a folder that says no class: transformers is told it."""
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        (folder / "vocab.txt").write_text(lines)
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **conf}))
        return transformer()(folder)


main()
