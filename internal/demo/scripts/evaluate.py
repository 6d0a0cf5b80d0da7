#!/usr/bin/env python3
"""Hold the demo's stories against the teacher's: how likely does the teacher find each?

    evaluate.py CORPUS.npz TEACHER.gguf INFERFLOW WRITE [--show 5] [sampling options of `inferflow run`]

INFERFLOW is the built program, WRITE the built internal/demo/write. The first words of 50 stories that were not trained
on are continued by the demo with its own default sampling; the teacher judges these texts and the 50 stories. Prints
both mean losses a token and their ratio, which is to be at most 1.3.
"""
import argparse
import json
import subprocess

import numpy as np

from corpus import raw


def stories(path, count):
    z = np.load(path)
    vocab = [str(v) for v in z["vocab"]]
    for i in np.flatnonzero(z["kind"] == "held out")[:count]:
        ids = z["ids"][z["at"][i] : z["at"][i + 1]]
        yield b"".join(raw(vocab[k]) for k in ids if k).decode()


def tell(program, prompt, seed, options):
    r = subprocess.run([program, "run", "demo", prompt, "--json", "--threads", "1", "--seed", str(seed), *options], capture_output=True, check=True)
    return prompt + json.loads(r.stdout)["text"]


def judge(write, teacher, texts):
    lines = "".join(json.dumps({"text": t}) + "\n" for t in texts)
    r = subprocess.run([write, "-judge", "-model", teacher, "-threads", "1"], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    rows = [json.loads(line) for line in r.stdout.splitlines()]
    return sum(r["nll"] for r in rows) / sum(r["tokens"] for r in rows)


def main():
    p = argparse.ArgumentParser()
    for name in ("corpus", "teacher", "inferflow", "write"):
        p.add_argument(name)
    p.add_argument("--show", type=int, default=0)
    p.add_argument("--count", type=int, default=50)
    a, options = p.parse_known_args()
    theirs = list(stories(a.corpus, a.count))
    ours = [tell(a.inferflow, " ".join(t.split(" ")[:3]), i, options) for i, t in enumerate(theirs)]
    for t in ours[: a.show]:
        print(t, "\n--")
    own, demo = judge(a.write, a.teacher, theirs), judge(a.write, a.teacher, ours)
    words = [sum(len(t.split()) for t in x) / len(x) for x in (theirs, ours)]
    print(f"{len(theirs)} stories of {words[0]:.0f} words: the teacher's loss {own:.3f} a token on its own, {demo:.3f} on the demo's "
          f"of {words[1]:.0f} words; ratio {demo / own:.3f}")


if __name__ == "__main__":
    main()
