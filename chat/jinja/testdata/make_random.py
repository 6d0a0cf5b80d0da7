#!/usr/bin/env python3
"""Writes N random small templates with what Jinja2 makes of them.

    python3 make_random.py N SEED OUT/expressions.json
    INFERFLOW_TESTDATA=OUT go test ./chat/jinja -run TestRandom
"""
import json
import pathlib
import random
import re
import sys
import warnings

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here.parent.parent / "testdata"))
import reference

warnings.simplefilter("ignore")
n, seed, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = random.Random(seed)
VARS = json.loads((here / "expressions.json").read_text())["vars"]
ATOMS = list(VARS) + ["missing", "none", "true", "0", "1", "-1", "2.5", "''", "'a,b'", "' x '", "[]", "{}", "(1, 'b')", "[none, 'a']",
                      "range(3)", "'%s-%s'", "d.items()", "users[0]", "nested.k", "floats[0]", "lines", "1e16", "'A-b c'", "'{}|{}'", "'ß'", "('<'|safe)"]
FILTERS = """abs attr('b') batch(2) batch(2,'x') capitalize center(9) default('q') default('q',true) dictsort dictsort(true) dictsort(by='value')
e escape first float float(1) forceescape format(1,2) groupby('age') indent indent(2,true) indent('>',blank=true) int int(3) items join join('-')
join(', ','name') last length list lower map('string') map('upper') map(attribute='name') map('length') max min max(attribute='age') reject('none')|list
rejectattr('x')|list replace('a','Z') replace('','-') replace('l','',1) reverse reverse|list round round(1) round(1,'floor') safe select|list
select('string')|list select('number')|list selectattr('age')|list selectattr('age','eq',3)|list slice(2)|list sort sort(reverse=true) sort(attribute='name')
string striptags sum sum(start=1) title tojson tojson(indent=2) tojson(separators=(',',':')) tojson(sort_keys=true) tojson(ensure_ascii=true) trim trim('a ')
truncate(5) truncate(5,true,'') unique|list upper urlencode wordcount d count""".split()
FILTERS = [f for f in FILTERS]
METHODS = """upper() lower() title() strip() lstrip('aH') rstrip() split() split(',') split(',',1) rsplit(' ',1) splitlines() startswith('a') endswith('d')
find('o') rfind('l') count('l') replace('l','w') replace('a','b',1) join(['x','y']) join(l) format(1,'z') partition(',') rpartition(' ') zfill(8) ljust(6,'.')
isdigit() isalpha() isupper() islower() istitle casefold() capitalize() swapcase() center(9,'*') removeprefix('He') index('o') get('b') get('zz','dd') keys()
values() items() pop(0) copy() index(1) count(1) b name x.y foo""".split("\n")
METHODS = " ".join(METHODS).split(" ")
TESTS = "defined undefined none string number mapping iterable sequence boolean true false integer float odd even lower upper callable escaped eq(1) gt(1) lt('b') in([1,'a']) in('abc') sameas(none) divisibleby(2)".split(" ")
OPS = "+ - * / // % ~ == != < <= > >= in and or".split() + ["not in"]


def expr(depth):
    if depth <= 0:
        return rng.choice(ATOMS)
    k = rng.random()
    x = expr(depth - 1)
    if k < 0.4:
        return f"({x}|{rng.choice(FILTERS)})"
    if k < 0.55:
        return f"({x}).{rng.choice(METHODS)}"
    if k < 0.62:
        return f"({x} is {rng.choice(['', 'not '])}{rng.choice(TESTS)})"
    if k < 0.72:
        i = lambda: rng.choice(["", "0", "1", "-1", "2", "-2", "5"])
        if x not in ("s", "u", "l", "names", "floats", "lines", "range(3)", "users", "html", "ws"):
            return x  # Jinja2 folds slices of constants by other rules
        return f"({x})[{rng.choice([i() or '0', i() + ':' + i(), i() + ':' + i() + ':' + rng.choice(['-1', '2', '-2', ''])])}]"
    if k < 0.95:
        return f"({x} {rng.choice(OPS)} {expr(depth - 2)})"
    return f"[{x}, {expr(depth - 2)}]"


cases = []
while len(cases) < n:
    src = "{{ " + expr(rng.randint(1, 4)) + " }}"
    try:
        got = reference.render(src, [], **json.loads(json.dumps(VARS)))
    except Exception as e:
        got = e
    if isinstance(got, Exception):
        if rng.random() < 0.6:
            continue
        cases.append({"source": src, "error": f"{type(got).__name__}: {got}"})
    elif not re.search(r"(?i)0x[0-9a-f]{6}|object at|o-b-j-e", got) and not (" - " in src and "{" in got):
        # no addresses of objects, no sets
        cases.append({"source": src, "text": got})
pathlib.Path(out).write_text(json.dumps({"vars": VARS, "cases": cases}, ensure_ascii=False) + "\n")
print(len(cases), "cases,", sum("error" in c for c in cases), "of them errors")
