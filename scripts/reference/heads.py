#!/usr/bin/env python3
"""Holds the heads of encoders (classes of texts and of tokens, spans, hidden values) against PyTorch on tiny random models.

    heads.py BINARY OUT ZOO [FAMILY …]

Makes OUT/FAMILY~HEAD from the configurations in ZOO, runs `BINARY logits` exact and compiled, and prints what differs by more than 1e-5 of the
largest value. Needs torch and transformers 5.24.
"""
import json, pathlib, subprocess, sys

import torch
import transformers

FAMILIES = ("bert camembert data2vec-text distilbert electra ernie eurobert gte megatron-bert modernbert nomic_bert rembert roberta roformer "
            "xlm-roberta mpnet albert roberta-prelayernorm xlm-roberta-xl jina_embeddings_v3 esm esmc ibert xmod luke squeezebert mobilebert convbert deberta deberta-v2 "
            "big_bird xlm flaubert xlnet ultrabert longformer").split()
BASE = pathlib.Path(__file__).resolve().parent / "variants" / "base"  # families that the zoo has not
HEADS = ["ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "Model"]
POOLINGS = {"modernbert": ["cls", "mean"], "eurobert": ["bos", "mean", "late"]}
LENGTHS = {"longformer": 48}  # a multiple of all its windows
REFUSED = {("longformer", "ForQuestionAnswering")}  # tokens of the question that all see
IDS = [5, 9, 17, 33, 8, 100, 42, 7, 61]


def randomize(model):
    g = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, p in model.named_parameters():
            r = torch.randn(p.shape, generator=g)
            if p.dim() >= 2:
                p.copy_(r * (0.5 if "emb" in name else p.shape[-1] ** -0.5))
            elif name.endswith("bias") or "norm" not in name.lower():
                p.copy_(0.2 * r)
            else:
                p.copy_(p + 0.2 * r)


def rows(head, out):
    if head == "Model":
        return out.last_hidden_state[0].tolist()
    if head == "ForQuestionAnswering" and not hasattr(out, "start_logits"):
        return None  # a search over spans
    if head == "ForQuestionAnswering":
        return torch.stack([out.start_logits[0], out.end_logits[0]], -1).tolist()
    if head == "ForTokenClassification":
        return out.logits[0].tolist()
    return [out.logits[0].tolist()]  # one row a text


def check(binary, folder, ids, want):
    worst = 0.0
    for mode in (["--exact"], ["--kv", "f32"]):
        r = subprocess.run([binary, "logits", str(folder), "--json", *mode], input=json.dumps({"input_ids": ids}), capture_output=True, text=True)
        if r.returncode:
            return r.stderr[-400:]
        (got,) = json.loads(r.stdout).values()  # "logits", or "hidden" where there is no head
        if len(got) != len(want) or len(got[0]) != len(want[0]):
            return f"{len(got)} x {len(got[0])} values, expected {len(want)} x {len(want[0])}"
        top = max(abs(v) for w in want for v in w)
        worst = max(worst, max(abs(a - b) for p, q in zip(got, want) for a, b in zip(p, q)) / top)
    return worst


def main():
    binary, out, zoo = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    bad = n = 0
    for family in sys.argv[4:] or FAMILIES:
        own = BASE / (family + ".json")
        base = json.loads((own if own.exists() else zoo / family / "config.json").read_text())
        base.pop("_kind", None)
        ids = [(IDS * 8)[i] % base.get("vocab_size", 200) for i in range(LENGTHS.get(family, len(IDS)))]
        name = base["architectures"][0].replace("WithLMHeadModel", "ForMaskedLM").replace("LMHeadModel", "ForMaskedLM")
        for head in HEADS:
            cls = getattr(transformers, name.replace("ForMaskedLM", head), None)
            if cls is None or (family, head) in REFUSED:
                continue
            for pooling in POOLINGS.get(family, [None]) if head == HEADS[0] else [None]:
                names = ["start", "end"] if head == "ForQuestionAnswering" else ["neg", "neutral", "pos"]
                config = dict(base, architectures=[cls.__name__], id2label={str(i): s for i, s in enumerate(names)}, label2id={s: i for i, s in enumerate(names)})
                if pooling:
                    config["classifier_pooling"] = pooling
                cfg = transformers.AutoConfig.for_model(**config)
                cfg._attn_implementation = "eager"
                model = cls(cfg).float().eval()
                randomize(model)
                folder = out / f"{family}~{head}"
                model.save_pretrained(folder)
                with torch.no_grad():
                    want = rows(head, model(input_ids=torch.tensor([ids])))
                if want is None:
                    continue
                result = check(binary, folder, ids, want)
                n += 1
                if isinstance(result, str) or result > 1e-5:
                    bad += 1
                    print(family, head, pooling or "", result, flush=True)
    print(f"{n - bad} of {n} heads agree within 1e-5")
    sys.exit(1 if bad else 0)


main()
