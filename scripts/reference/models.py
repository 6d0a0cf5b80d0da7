"""Folders of tiny models, one a family."""


def folders(roots, families):
    """{family: folder}: of names FAMILY~VARIANT where no root has FAMILY itself, FAMILY~gguf, else the first."""
    found = {}
    for root in roots:
        here = {}
        for f in sorted(root.iterdir(), key=lambda f: (not f.name.endswith('~gguf'), f.name)):
            name = f.name.split('~')[0]
            if (f / 'golden.json').exists() and (not families or name in families):
                here.setdefault(name, f)
        found = here | found
    return found
