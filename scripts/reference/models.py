"""Folders of tiny models, one a family."""


def variants(roots, families):
    """{family: folders, the first first}, of each root in turn: FAMILY itself, FAMILY~gguf, FAMILY~base, its other variants. Those that leave keys
    to their class (bare) come last: other programs do not know the class's values."""
    order = ['', 'gguf', 'base', None, 'bare']

    def place(f):
        variant = f.name.partition('~')[2]
        return order.index(variant if variant in order else None), f.name

    found = {}
    for root in roots:
        for f in sorted(root.iterdir(), key=place):
            name = f.name.split('~')[0]
            if (f / 'golden.json').exists() and (not families or name in families):
                found.setdefault(name, []).append(f)
    return found


def folders(roots, families):
    """{family: the first of its folders}."""
    return {name: list[0] for name, list in variants(roots, families).items()}
