#!/usr/bin/env python3
"""Renders every template over every conversation with Jinja2.

    python3 make_goldens.py [TEMPLATES_DIR [GOLDENS.json]]

Without arguments it remakes goldens.json here from templates/. For the large
corpus see collect_templates.py.
"""
import json
import pathlib
import sys

import reference

here = pathlib.Path(__file__).parent
templates = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "templates"
out = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else here / "goldens.json"
cases = json.loads((here / "conversations.json").read_text())
goldens, failures = {}, 0
for path in sorted(templates.glob("*.jinja")):
    # the bytes as they are: Jinja2 itself normalises line ends
    source = path.read_bytes().decode("utf-8")
    results = {}
    for case in cases:
        for prompt in (False, True):
            got = reference.render(source, case["messages"], case.get("tools"), prompt,
                                   bos_token="<s>", eos_token="</s>", **case.get("extra", {}))
            key = case["name"] + ("+" if prompt else "")
            if isinstance(got, Exception):
                results[key] = {"error": f"{type(got).__name__}: {got}"}
                failures += 1
            else:
                results[key] = {"text": got}
    goldens[path.name] = results
out.write_text(json.dumps(goldens, ensure_ascii=False, indent=1) + "\n")
total = sum(map(len, goldens.values()))
print(f"{len(goldens)} templates, {total} renderings, {failures} of them errors")
