"""Folders of tiny models, one a family."""


def folders(roots, families):
    """{family: folder} of the first root that has the family: FAMILY itself, else FAMILY~gguf, FAMILY~base, or the first of its variants. Those
    that leave keys to their class (bare) come last: other programs do not know the class's values."""
    order = ['', 'gguf', 'base', None, 'bare']

    def place(f):
        variant = f.name.partition('~')[2]
        return order.index(variant if variant in order else None), f.name

    found = {}
    for root in roots:
        here = {}
        for f in sorted(root.iterdir(), key=place):
            name = f.name.split('~')[0]
            if (f / 'golden.json').exists() and (not families or name in families):
                here.setdefault(name, f)
        found = here | found
    return found
