"""Folders of tiny models, one a family."""
import json
import re


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


def settings(told, config):
    """Of the settings that a conversion says it took because the file lacks them, those of config: {key: value}."""
    taken = re.search('taken as (.*); --set', told)
    config = config.get('text_config', config)
    keys = re.findall(r'(?:^|, )([a-z_0-9]+): ', taken.group(1)) if taken else []
    return {k: config[k] for k in keys if config.get(k) is not None}


def given(config):
    """Settings as arguments."""
    return ['--set=%s=%s' % (k, v if isinstance(v, str) else json.dumps(v)) for k, v in config.items()]
