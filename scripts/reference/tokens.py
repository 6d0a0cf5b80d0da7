"""Token ids of texts by `inferflow tokenize`, whose ids are held against
Hugging Face's elsewhere."""
import json
import subprocess


def encode(binary, model, texts, special=True, parse=True):
    """Returns a list of ids for each text."""
    lines = "".join(json.dumps({"text": t, "special": special, "parse": parse}) + "\n" for t in texts)
    r = subprocess.run([binary, "tokenize", model, "--jsonl"], input=lines, capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(r.stderr)
    return [json.loads(x) for x in r.stdout.splitlines()]
