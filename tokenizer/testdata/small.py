"""Trains small tokenizers of every kind on a few lines of text and writes each with its golden: small/NAME.json, small/NAME.golden.jsonl.gz.

    pip install tokenizers sentencepiece && python small.py
"""
import gzip
import json
import pathlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import spm
from texts import FIXED, texts

OUT = pathlib.Path(__file__).parent / "small"
CORPUS = FIXED * 2 + [
    "The quick brown fox jumps over the lazy dog, and the dog does not mind.", "Once upon a time there was a little house in the big woods.",
    "She sells sea shells by the sea shore; the shells she sells are surely seashells.", "In 1999 there were 365 days, 52 weeks and 12 months.",
    "int main(void) {\n    printf(\"hello, world\\n\");\n    return 0;\n}\n", "Der schnelle braune Fuchs springt über den faulen Hund.", "Le café était fermé hier à midi.",
    "今天天气很好，我们去公园散步吧。", "Привет, как дела? Всё хорошо.",
] * 3
# The reference's tables of punctuation are older than these two characters.
TEXTS = [t for t in texts(60, seed=11) if "\u061d" not in t and "\u20c0" not in t]
GPT4O = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ADDED = [AddedToken("<s>", special=True), AddedToken("</s>", special=True, rstrip=True), AddedToken("<mask>", special=True, lstrip=True),
         AddedToken("iPhone", special=False, single_word=True), AddedToken("Hello", special=False, normalized=True), AddedToken("   ", special=False)]


def template(tok):
    s, e = tok.token_to_id("<s>"), tok.token_to_id("</s>")
    return processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", s), ("</s>", e)])


def bpe(size=600, alphabet=True, norm=None, pre=None, dec=None, post=template, special=("<unk>", "<s>", "</s>"), train=None, added=None, bytes=False, **model):
    tok = Tokenizer(models.BPE(**model))
    if norm:
        tok.normalizer = norm
    if pre:
        tok.pre_tokenizer = pre
    if dec:
        tok.decoder = dec
    extra = dict(train or {})
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [], **extra)
    tok.train_from_iterator(CORPUS, trainer)
    if bytes:
        tok = with_bytes(tok)
    tok.add_tokens(ADDED if added is None else added)
    if post:
        tok.post_processor = post(tok)
    return tok


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
LLAMA_DECODER = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def set_json(tok, change):
    data = json.loads(tok.to_str())
    change(data)
    return Tokenizer.from_str(json.dumps(data, ensure_ascii=False))


def with_bytes(tok):
    """Gives a vocabulary byte tokens, as SentencePiece does."""
    def change(data):
        vocab = data["model"]["vocab"]
        for b in range(256):
            vocab.setdefault("<0x%02X>" % b, len(vocab))
        data["model"].update(byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    return set_json(tok, change)


def unigram(norm, pre, dec, byte_fallback=False, post=template):
    tok = Tokenizer(models.Unigram())
    tok.normalizer, tok.pre_tokenizer, tok.decoder = norm, pre, dec
    tok.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=500, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False))
    if byte_fallback:
        def change(data):
            have = {p for p, _ in data["model"]["vocab"]}
            data["model"]["vocab"] += [["<0x%02X>" % b, -30.0] for b in range(256) if "<0x%02X>" % b not in have]
            data["model"]["byte_fallback"] = True
        tok = set_json(tok, change)
    tok.add_tokens(ADDED)
    tok.post_processor = post(tok)
    return tok


def wordpiece(norm, pre, post):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    tok.normalizer, tok.pre_tokenizer, tok.decoder = norm, pre, decoders.WordPiece()
    tok.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    tok.post_processor = post(tok)
    return tok


def wordlevel(pre, norm=None):
    tok = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tok.pre_tokenizer = pre
    if norm:
        tok.normalizer = norm
    tok.train_from_iterator(CORPUS, trainers.WordLevelTrainer(vocab_size=300, special_tokens=["[UNK]"], show_progress=False))
    return tok


def charsmap():
    return spm.read(spm.train(CORPUS, vocab_size=420, model_type="unigram", hard_vocab_limit=False))[1]


def sentencepiece_meta(model_type, texts, **options):
    """The GGUF metadata that a SentencePiece model becomes, and what the library itself makes of the texts."""
    if model_type == "bpe":
        options["normalization_rule_name"] = "identity"  # GGUF's "llama" knows no other
    model = spm.train(CORPUS, model_type=model_type, user_defined_symbols=["<sep>", "▁▁"], control_symbols=["<ctl>"], hard_vocab_limit=False, **options)
    pieces, chars = spm.read(model)
    sp = spm.sentencepiece.SentencePieceProcessor(model_proto=model)
    key = "tokenizer.ggml."
    meta = {
        key + "model": "llama" if model_type == "bpe" else "t5",
        key + "tokens": [p for p, _, _ in pieces],
        key + "scores": [round(s, 6) for _, s, _ in pieces],
        key + "token_type": [t for _, _, t in pieces],
        key + "bos_token_id": sp.bos_id(), key + "eos_token_id": sp.eos_id(), key + "unknown_token_id": sp.unk_id(),
        key + "add_space_prefix": options.get("add_dummy_prefix", True), key + "remove_extra_whitespaces": options.get("remove_extra_whitespaces", True),
        key + "precompiled_charsmap": list(chars),
    }
    rows = [{"text": t, "ids": sp.encode(t), "special": [], "decoded": sp.decode(sp.encode(t)), "skipped": ""} for t in texts if "\0" not in t and "▁" not in t]
    return meta, rows


def panics(tok, text):
    try:
        tok.encode(text)
    except BaseException:
        return True
    return False


def main():
    OUT.mkdir(exist_ok=True)
    byte_level = decoders.ByteLevel()
    all_norms = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Replace("ae", "e")])
    makers = {
        "bpe-gpt2": lambda: bpe(pre=pre_tokenizers.ByteLevel(add_prefix_space=False), dec=byte_level),
        "bpe-prefix-space": lambda: bpe(pre=pre_tokenizers.ByteLevel(add_prefix_space=True), dec=byte_level, post=lambda t: processors.RobertaProcessing(("</s>", 2), ("<s>", 1))),
        "bpe-llama3": lambda: bpe(pre=pre_tokenizers.Sequence([split(LLAMA3), BYTES]), dec=byte_level, ignore_merges=True),
        "bpe-nfc-gpt4o": lambda: bpe(norm=normalizers.NFC(), pre=pre_tokenizers.Sequence([split(GPT4O), BYTES]), dec=byte_level),
        "bpe-digits": lambda: bpe(pre=pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]), dec=byte_level),
        "bpe-falcon": lambda: bpe(pre=pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.Digits(), split("[0-9][0-9][0-9]")]), dec=byte_level),
        "bpe-clip": lambda: bpe(norm=normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
            pre=pre_tokenizers.Sequence([split(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", "removed", True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
            dec=byte_level, end_of_word_suffix="</w>", unk_token="<unk>", train={"end_of_word_suffix": "</w>"}),
        "bpe-byte-normalizer": lambda: bpe(norm=normalizers.ByteLevel(), dec=byte_level),
        "bpe-sentencepiece": lambda: bpe(size=500, alphabet=False, bytes=True, norm=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), dec=LLAMA_DECODER, unk_token="<unk>", fuse_unk=True),
        "bpe-metaspace": lambda: bpe(size=500, alphabet=False, pre=pre_tokenizers.Metaspace(prepend_scheme="first"), dec=decoders.Metaspace(prepend_scheme="first"), unk_token="<unk>"),
        "bpe-split-space": lambda: bpe(size=500, alphabet=False, bytes=True, norm=normalizers.Replace(" ", "▁"), pre=pre_tokenizers.Split(" ", "merged_with_previous"), dec=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])),
        "bpe-suffix": lambda: bpe(size=500, alphabet=False, norm=all_norms, pre=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_next")]),
            dec=decoders.BPEDecoder(), end_of_word_suffix="</w>", unk_token="<unk>", fuse_unk=True, train={"end_of_word_suffix": "</w>"}, added=[]),
        "bpe-continuing": lambda: bpe(size=500, alphabet=False, pre=pre_tokenizers.Whitespace(), dec=decoders.WordPiece("##", False), continuing_subword_prefix="##", unk_token="<unk>", train={"continuing_subword_prefix": "##"}),
        "unigram-metaspace": lambda: unigram(normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]), pre_tokenizers.Metaspace(), decoders.Metaspace()),
        "unigram-fallback": lambda: unigram(normalizers.NFKD(), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always", split=False)]),
            decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]), byte_fallback=True),
        "unigram-charsmap": lambda: unigram(normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Replace(Regex(" {2,}"), " ")]), pre_tokenizers.Metaspace(), decoders.Metaspace()),
        "wordpiece-bert": lambda: wordpiece(normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), lambda t: processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))),
        "wordpiece-cased": lambda: wordpiece(normalizers.BertNormalizer(lowercase=False, clean_text=False), pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit(" "), pre_tokenizers.Punctuation("merged_with_previous")]),
            lambda t: processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])),
        "wordlevel": lambda: wordlevel(pre_tokenizers.Sequence([split(r"\s+", "removed"), split(r"[^\w]", "contiguous"), pre_tokenizers.FixedLength(6)])),
    }
    spm_makers = {
        "spm-bpe": lambda: sentencepiece_meta("bpe", TEXTS, vocab_size=800, byte_fallback=True, remove_extra_whitespaces=False),
        "spm-bpe-plain": lambda: sentencepiece_meta("bpe", TEXTS, vocab_size=500, add_dummy_prefix=False, remove_extra_whitespaces=False),
        "spm-unigram": lambda: sentencepiece_meta("unigram", TEXTS, vocab_size=500),
        "spm-unigram-bytes": lambda: sentencepiece_meta("unigram", TEXTS, vocab_size=800, byte_fallback=True, remove_extra_whitespaces=False),
    }
    for name, make in spm_makers.items():
        meta, rows = make()
        (OUT / (name + ".meta.json")).write_text(json.dumps(meta, ensure_ascii=False, separators=(",", ":")) + "\n")
        write(name, rows)
    for name, make in makers.items():
        tok = make()
        text = tok.to_str()
        (OUT / (name + ".json")).write_text(json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")) + "\n")
        tok = Tokenizer.from_str(text)
        rows = []
        for t in TEXTS:
            if panics(tok, t):
                print(name, "the reference panics on", repr(t))
                continue
            ids = tok.encode(t, add_special_tokens=False).ids
            rows.append({"text": t, "ids": ids, "special": tok.encode(t, add_special_tokens=True).ids, "decoded": tok.decode(ids, skip_special_tokens=False), "skipped": tok.decode(ids, skip_special_tokens=True)})
        write(name, rows)


def write(name, rows):
    with gzip.GzipFile(OUT / (name + ".golden.jsonl.gz"), "wb", mtime=0) as f:
        for row in rows:
            f.write((json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n").encode())
    print(name, len(rows))


main()
