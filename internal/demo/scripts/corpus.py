#!/usr/bin/env python3
"""Make the training corpus of the demo model from the stories that internal/demo/write collected.

    corpus.py [--vocabulary OLD.npz] [--held-out] [--judged JUDGED.jsonl]... TEACHER.gguf OUT.npz STORIES.jsonl...

The vocabulary is a part of the teacher's byte-level BPE: the 256 bytes and the tokens that the stories use most, with
every token that a merge needs on the way. Merges keep their order, so the teacher's likeliest tokens map to ids here:
a token that is missing maps to the first piece of its text. OUT holds ids (one end token between stories), the soft
targets of each id, and where the stories begin. With --vocabulary the vocabulary is that of an older corpus, so that a
training goes on with more stories. Judged texts are the demo's own with the teacher's opinion (sample.py, write -judge):
only the soft targets count in them.
"""
import argparse
import json
import os
import zlib
from collections import Counter

import gguf
import numpy as np
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import BPE

VOCAB = 2560  # with the end token, which is id 0
END = "<|endoftext|>"
TOP = 6
TEMPERATURE, MIN_P = 0.8, 0.05  # as in write
HELD_OUT = 40  # one of so many stories is kept for evaluation


def teacher_vocabulary(path):
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    return tokens, merges, fields["tokenizer.ggml.eos_token_id"].contents()


def alphabet():
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def choose(tokens, merges, counts):
    """The texts of the vocabulary, closed under the merges that make them, and these merges."""
    made = {}
    for a, b in merges:
        made.setdefault(a + b, (a, b))

    def needs(text, into):
        if text in into or text not in made:
            return
        into.add(text)
        for part in made[text]:
            needs(part, into)

    kept = set(alphabet())
    room = VOCAB - 1
    for text, _ in counts.most_common():
        if text not in made:
            continue
        more = set()
        needs(text, more)
        if len(kept | more) <= room:
            kept |= more
        if len(kept) == room:
            break
    ours = [m for m in merges if m[0] in kept and m[1] in kept and m[0] + m[1] in kept]
    order = {t: i for i, t in enumerate(tokens)}
    return [END] + sorted(kept, key=lambda t: order.get(t, len(order))), ours


def bpe(vocab, merges):
    t = Tokenizer(BPE(vocab={v: i for i, v in enumerate(vocab)}, merges=merges))
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    return t


BYTE = None


def raw(text):
    """The bytes of a token's text."""
    global BYTE
    if BYTE is None:
        printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
        BYTE = {chr(b): b for b in printable}
        n = 0
        for b in range(256):
            if b not in printable:
                BYTE[chr(256 + n)] = b
                n += 1
    return bytes(BYTE[c] for c in text)


def tidy(story, tokens, end):
    """The number of ids worth keeping and whether the story ends there; 0 for a story that is not worth it."""
    ids = story["ids"]
    ended = ids[-1] == end
    n = len(ids) - 1 if ended else len(ids)
    if any(i < 17 for i in ids[:n]):
        return 0, False
    if not ended:
        while n and tokens[ids[n - 1]][-1] not in '.!?"':
            n -= 1
    grams = Counter(tuple(ids[i : i + 4]) for i in range(n - 3))
    text = "".join(tokens[i] for i in ids[:n])
    odd = any(w in text for w in ("Original", "http", "*", "#", "AI", "Title", "storyĠends", "ĠstoryĠis", "Note"))
    if n < 24 or odd or len(grams) < 0.8 * (n - 3) or max(grams.values()) > 4 or any(ord(c) > 0x17F and c not in "ĠĊ" for c in text):
        return 0, False
    return n, ended


class Mapper:
    def __init__(self, tokens, vocab, merges, end):
        self.tokens, self.end, self.tok = tokens, end, bpe(vocab, merges)
        self.vocab = vocab
        self.first = {end: 0}

    def head(self, i):
        """The id here of teacher token i, or of the first piece of it."""
        if i not in self.first:
            if i < 17:
                self.first[i] = 0
            else:
                text = raw(self.tokens[i]).decode("utf-8", "ignore")
                ids = self.tok.encode(text).ids if text else []
                self.first[i] = ids[0] if ids else 0
        return self.first[i]

    def story(self, story, n, ended):
        text = b"".join(raw(self.tokens[i]) for i in story["ids"][:n])
        start, at = {}, 0
        for k in range(n):
            start[at] = k
            at += len(raw(self.tokens[story["ids"][k]]))
        ids = self.tok.encode(text.decode("utf-8")).ids
        rows, at = [], 0
        for i in ids:
            rows.append(self.row(story, start.get(at), i))
            at += len(raw(self.vocab[i]))
        assert at == len(text)
        if ended:
            ids.append(0)
            rows.append(self.row(story, n, 0))
        return ids, rows

    def row(self, story, k, hard):
        """Soft targets as a list of id, probability; hard where the teacher has none at this place."""
        if k is None:
            return [(hard, 1.0)]
        sums = {}
        for t, p in zip(story["top"][k], sharpen(story["prob"][k])):
            sums[self.head(t)] = sums.get(self.head(t), 0) + p
        return [(t, p) for t, p in sums.items() if p > 0]


def sharpen(thousandths):
    """The probabilities with which write draws: at its temperature, without what is too far below the likeliest. Of the
    tokens that are not listed each is at most as likely as the last listed one, which bounds what they have together."""
    p = np.array(thousandths) / 1000
    rest = max(0.0, 1 - p.sum())
    low = p[-1] if len(p) else 0.0
    rest = 0.5 * rest * low ** (1 / TEMPERATURE - 1) if len(p) == TOP and low >= MIN_P * p[0] else 0.0
    q = np.where(p >= MIN_P * p.max(initial=0), p ** (1 / TEMPERATURE), 0)
    return q / (q.sum() + rest) if q.sum() > 0 else q


def held_out(story):
    """Depends on the story alone, so that it stays as it is when more are written."""
    return zlib.crc32(str(story["ids"]).encode()) % HELD_OUT == 0


def read_judged(paths):
    stories = []
    for path in paths:
        for line in open(path):
            s = json.loads(line)
            if len(s["ids"]) > 10:
                stories.append((s, len(s["ids"]) - 1, True))
    return stories


def read(paths, tokens, end):
    """The stories that are worth it with the number of ids to keep, and how often each token is used."""
    stories, counts = [], Counter()
    for path in paths:
        for line in open(path):
            try:
                s = json.loads(line)
            except ValueError:
                continue  # a writer is at it
            n, ended = tidy(s, tokens, end)
            if n:
                stories.append((s, n, ended))
                counts.update(tokens[i] for i in s["ids"][:n])
    return stories, counts


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--vocabulary")
    p.add_argument("--held-out", action="store_true", help="hold all stories out: a corpus to evaluate with")
    p.add_argument("--judged", action="append", default=[])
    p.add_argument("teacher")
    p.add_argument("out")
    p.add_argument("stories", nargs="+")
    a = p.parse_args()
    tokens, merges, end = teacher_vocabulary(a.teacher)
    stories, counts = read(a.stories, tokens, end)
    if a.vocabulary:
        z = np.load(a.vocabulary)
        vocab, ours = [str(v) for v in z["vocab"]], [tuple(str(x).split(" ")) for x in z["merges"]]
    else:
        vocab, ours = choose(tokens, merges, counts)
    m = Mapper(tokens, vocab, ours, end)
    ids, top, prob, at, kind = [], [], [], [], []
    judged = read_judged(a.judged)
    for k, (s, n, ended) in enumerate(stories + judged):
        i, rows = m.story(s, n, ended)
        at.append(len(ids))
        kind.append("judged" if k >= len(stories) else "held out" if a.held_out or held_out(s) else "")
        ids += i
        for row in rows:
            row = row[:TOP] + [(0, 0.0)] * (TOP - len(row))
            top.append([t for t, _ in row])
            prob.append([p for _, p in row])
    at.append(len(ids))
    np.savez(a.out + ".new.npz", ids=np.array(ids, np.uint16), top=np.array(top, np.uint16), prob=np.array(prob, np.float16), at=np.array(at),
             kind=np.array(kind), vocab=np.array(vocab), merges=np.array([" ".join(x) for x in ours]))
    os.replace(a.out + ".new.npz", a.out)
    known = sum(c for t, c in counts.items() if t in set(vocab)) / sum(counts.values())
    print(f"{len(stories)} stories and {len(judged)} judged, {len(ids)} ids, {len(vocab)} tokens cover {known:.1%} of the teacher's; {len(ours)} merges")


if __name__ == "__main__":
    main()
