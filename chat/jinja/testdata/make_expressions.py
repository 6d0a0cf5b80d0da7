#!/usr/bin/env python3
"""Writes expressions.json: small templates with what Jinja2 makes of them."""
import json
import pathlib
import sys

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here.parent.parent / "testdata"))
import reference

VARS = {
    "s": "Hello, World", "u": "é ß Σ ΟΔΟΣ 日本 🙂\u200b", "ws": " \t\n a  b \u00a0\u3000", "e": "", "n": None, "i": 7, "neg": -7,
    "f": 2.5, "big": 12345678901234567890, "t": True, "l": [3, 1, 2], "names": ["bob", "Ann", "ann", "Zed"],
    "d": {"b": 1, "a": "x", "items": "shadow", "C": None}, "users": [
        {"name": "Ann", "age": 3, "x": {"y": 1}}, {"name": "bob", "age": 1}, {"name": "Cy", "age": 3, "x": {"y": 0}}],
    "html": "<a href=\"x\">T&'s</a>", "lines": "a\nb\r\n\nc", "nested": {"k": [1, {"z": [True, None, 1.0]}]},
    "floats": [1e16, 1e15, 1e-5, 0.0001, 1.0, 100.0, 1e22, 1.5e300, 0.1, -0.0, 3.14159],
}
E = """
s[0] ~ s[-1] ~ s[100]|string
s[1:4] ~ '|' ~ s[-3:] ~ '|' ~ s[::-1] ~ '|' ~ s[::2] ~ '|' ~ s[10:2:-3] ~ '|' ~ s[:100]
u[0] ~ u[2] ~ u[-1]
u[4:8] ~ u[::-1]
u|length
l[1:] + l[:1]
l[::-1]
(1,2,3)[1:]
()|string ~ (1,)|string
s.split(', ') ~ s.split('o', 1) ~ s.rsplit('o', 1) ~ ws.split() ~ ws.split(none, 1) ~ e.split(',') ~ e.split()
ws.rsplit(none, 1)
'a,b,,c'.split(',')
s.split('')
s.upper() ~ s.lower() ~ s.title() ~ 'hello wORLD'.capitalize() ~ s.swapcase()
u.upper() ~ '|' ~ u.lower() ~ '|' ~ u.title() ~ '|' ~ u|title ~ '|' ~ u.capitalize()
'ǆ ŉ ﬁ'.upper() ~ 'ǆ ŉ ﬁ'.title() ~ 'ÀÉ'.lower() ~ 'İ'.lower()
"it's a dog-eat-dog (world) 3d x1y"|title ~ "it's a dog-eat-dog (world) 3d x1y".title()
[s.find('o'), s.rfind('o'), s.find('zz'), s.count('o'), s.count('l', 3), s.find('o', 5), s.count('')]
s.index('zz')
s.startswith('Hell') ~ s.endswith(('x', 'ld')) ~ s.startswith('ell', 1) ~ s.startswith('')
'  x '.strip() ~ '|' ~ 'xxaxx'.strip('x') ~ '|' ~ 'abcba'.lstrip('ab') ~ '|' ~ 'abcba'.rstrip('ab') ~ '|' ~ ws.strip() ~ '|' ~ ws|trim
'xxaxx'|trim('x')
s.replace('l', 'L') ~ s.replace('l', '', 1) ~ 'abc'.replace('', '-') ~ 'abc'.replace('', '-', 2)
s|replace('l', 'L') ~ s|replace('o', '0', 1) ~ 123|replace(2, 'x')
s.partition(', ') ~ s.rpartition('o') ~ s.partition('zz') ~ s.rpartition('zz')
'-'.join(['a', 'b']) ~ ','.join('abc')
'-'.join([1])
s.isalpha() ~ 'abc'.isalpha() ~ '12'.isdigit() ~ ''.isdigit() ~ 'a1'.isalnum() ~ ' '.isspace() ~ 'AB'.isupper() ~ 'Ab'.islower() ~ 'ab1'.islower()
'abc'.center(8, '*') ~ 'abc'.center(7) ~ 'abcd'.center(7, '.') ~ 'ab'.ljust(4) ~ '|' ~ 'ab'.rjust(4) ~ '7'.zfill(3) ~ '-7'.zfill(4)
'abc'|center(9)
lines.splitlines() ~ lines.splitlines(true) ~ 'a\\n'.splitlines()
'prefix-x'.removeprefix('prefix-') ~ 'x.py'.removesuffix('.py')
'%s is %d, %5.2f|%-5s|%05d|%x|%%|%r' % (s, i, f, 'ab', i, 255, 'q')
'%s' % s ~ '%s' % l ~ '%(b)s-%(a)s' % d
'%d' % s
'%s %s' % (1,)
'%s' % (1, 2)
'%+d % d %e %g %g %G %c %c %o %#x %.3s|%*d' % (3, 4, 12345.678, 1e-10, 100000.0, 1e20, 65, 'z', 8, 255, 'abcdef', 5, 42)
'{} {1}'.format(1, 2)
'{0} {1} {0} {x}'.format(1, 2, x=s) ~ '{:>5}|{:<5}|{:^5}|{:*^7}|{:05d}|{:.2f}|{:,}|{:x}|{:+d}|{!r}'.format('a', 'b', 'c', 'd', 42, 3.14159, 1234567, 255, 5, 'q')
'{0[b]} {1} {{}} {2[1]}'.format(d, 3, l)
'{:e} {:g} {:%} {} {:.3} {:>{w}}'.format(1234.5, 0.00001234, 0.25, 1e16, 2.0, 'x', w=4)
'{}'.format()
"%s, %s!"|format('a', 1) ~ "%(x)s"|format(x=2)
1 + 2 * 3 - 4 / 2
7 // 2 ~ ' ' ~ -7 // 2 ~ ' ' ~ 7 % 3 ~ ' ' ~ -7 % 3 ~ ' ' ~ 7 % -3 ~ ' ' ~ 2 ** 10 ~ ' ' ~ 2 ** -1 ~ ' ' ~ 7.5 // 2 ~ ' ' ~ -7.5 % 2
-2 ** 2
2 ** 3 ** 2
1 / 0
10 / 2
big + 1 ~ ' ' ~ big * big ~ ' ' ~ -big
true + 1 ~ true * 3
'a' * 3 ~ 3 * 'b' ~ [1] * 2 ~ 'a' * -1
'a' + 1
'a' + n
l + 'a'
[1] + [2] ~ (1,) + (2,)
floats
floats|join(' ')
1_000 ~ 0x1f ~ 0b11 ~ 0o17 ~ 1.5e3 ~ 1e5 ~ 00
1 == 1.0 ~ true == 1 ~ '1' == 1 ~ n == none ~ [1, 2] == [1, 2.0] ~ {'a': 1} == {'a': 1.0} ~ (1,) == [1]
1 < 2 < 3 ~ 1 < 3 < 2 ~ 'a' < 'b' ~ [1, 2] < [1, 3] ~ (1, 'a') < (1, 'b')
1 < 'a'
n < 1
'el' in s ~ 'x' in s ~ 3 in l ~ 'b' in d ~ 9 not in l ~ 'x' in missing ~ not 1 in [1]
1 in s
1 in 5
i if t else 0 ~ (1 if e) ~ ('y' if not e else 'z')
t and i ~ ' ' ~ e or 'dflt' ~ ' ' ~ n and 1 ~ ' ' ~ (not n)
missing ~ '|' ~ missing|default('d') ~ '|' ~ e|default('d') ~ '|' ~ e|default('d', true) ~ '|' ~ n|d('x')
missing.foo
missing['foo']
missing + 1
missing()
d.zzz ~ '|' ~ d['zzz'] ~ '|' ~ n.foo ~ '|' ~ l[9] ~ '|' ~ l.foo ~ '|' ~ i.foo
d.zzz.yyy
d.items() ~ d['items'] ~ d.keys()|list ~ d.values()|list ~ d.get('b') ~ d.get('q') ~ d.get('q', 5) ~ d|length
d
nested ~ [s, u, html, 'it\\'s', "q\\"'", '\\\\', '\\x00\\x7f\\u2028']
d|dictsort ~ d|dictsort(true) ~ {'b': 2, 'a': 3}|dictsort(by='value') ~ {'b': 2, 'a': 3}|dictsort(reverse=true)
d|items|list ~ missing|items|list
l|sort ~ l|sort(reverse=true) ~ names|sort ~ names|sort(case_sensitive=true) ~ users|sort(attribute='age,name')|map(attribute='name')|list
l|sort|first ~ l|last ~ l|first ~ []|first ~ []|last ~ s|first ~ s|last ~ d|first
[1, 'a']|sort
l|min ~ l|max ~ names|min ~ users|max(attribute='age') ~ []|max
l|sum ~ users|sum(attribute='age') ~ l|sum(start=10) ~ [[1], [2]]|sum(start=[])
l|join ~ l|join(', ') ~ users|join('; ', attribute='name') ~ n|string|join('.')
users|map(attribute='x.y')|list ~ users|map(attribute='x', default='-')|list ~ names|map('upper')|join(' ') ~ l|map('string')|list ~ users|map(attribute='zz')|list
users|selectattr('x')|list|length ~ users|selectattr('age', 'equalto', 3)|map(attribute='name')|list ~ users|rejectattr('age', '>', 2)|map(attribute='name')|list ~ users|selectattr('x.y', 'defined')|list|length
l|select('odd')|list ~ l|reject('odd')|list ~ [0, 1, '', 'a', none]|select|list ~ l|select('>', 1)|list ~ l|select('in', [1, 2])|list ~ l|select('divisibleby', 3)|list
l|select('nosuch')|list
names|unique|list ~ [1, 1.0, 2, true]|unique|list ~ names|unique(case_sensitive=true)|list
users|groupby('age') | map(attribute='grouper') | list ~ users|groupby('age')|map('last')|map('length')|list ~ (users|groupby('age'))[0].list|length
l|batch(2)|list ~ l|batch(2, 0)|list ~ l|slice(2)|list ~ l|slice(2, 'x')|list
l|reverse|list ~ s|reverse ~ 'abc'|list ~ d|list
l|reverse|length
(l|map('string'))|length
5|length
'42'|int ~ ' 42 '|int ~ '4.9'|int ~ 'x'|int ~ 'x'|int(7) ~ '0x1f'|int(base=16) ~ '1f'|int(0, 16) ~ 3.9|int ~ -3.9|int ~ true|int ~ n|int ~ '1e3'|int ~ ''|int(default=none)
missing|int
'4.5'|float ~ 'x'|float ~ 'x'|float(1.5) ~ 3|float ~ 'inf'|float ~ '1e400'|float
2.5|round ~ 3.5|round ~ 2.675|round(2) ~ 42.55|round(1, 'floor') ~ 42.51|round(1, 'ceil') ~ 5|round ~ 1234.5|round(-2) ~ 2.5|round|int
-5|abs ~ (-5)|abs ~ (-2.5)|abs
'a\\nb\\n\\nc'|indent ~ '|' ~ 'a\\nb'|indent(2, true) ~ '|' ~ 'a\\n\\nb'|indent(1, blank=true) ~ '|' ~ 'a\\nb'|indent('> ') ~ '|' ~ ''|indent ~ '|' ~ 'a\\n'|indent(width=2, first=true)
html|e ~ html|escape ~ html|forceescape
html|safe ~ (html|safe)|e
('<b>'|safe) + html
html + ('<b>'|safe)
('%s<i>'|safe) % html
('<{}>'|safe).format(html) ~ ('<'|safe).join([html, '<'|safe])
('<b>'|safe).upper() + '<' ~ 'x'
('a<b'|safe).replace('<', '<<') ~ (('<b>'|safe) * 2 + '<')
('<b>'|e|string) + '<'
('<b> c'|safe).split()[0] + '<'
html|striptags ~ '<p>a  b</p><!-- c <x> -->d < e'|striptags
'foo bar baz qux'|truncate(9) ~ 'foo bar baz qux'|truncate(9, true) ~ 'foo bar baz qux'|truncate(11) ~ 'foo bar baz qux'|truncate(11, false, '..', 0)
'Hello World, it is'|wordcount ~ s|urlencode ~ u|urlencode
s|upper ~ s|lower ~ 'hello World'|capitalize ~ 12|string ~ [1]|string ~ n|string ~ true|string ~ 12|upper
l is sequence ~ s is sequence ~ d is sequence ~ i is sequence ~ d.items() is sequence ~ missing is sequence
l is iterable ~ s is iterable ~ d is iterable ~ i is iterable ~ n is iterable ~ missing is iterable ~ range(3) is sequence ~ (l|map('string')) is iterable ~ (l|map('string')) is sequence
d is mapping ~ l is mapping ~ s is string ~ i is string ~ i is number ~ t is number ~ f is number ~ t is integer ~ i is integer ~ f is float ~ i is float ~ t is boolean ~ i is boolean
n is none ~ missing is none ~ missing is defined ~ missing is undefined ~ d.zz is defined ~ n is defined ~ t is true ~ t is false ~ 1 is true
i is odd ~ i is even ~ i is divisibleby 7 ~ i is divisibleby(2) ~ i is eq 7 ~ i is gt 3 ~ i is in [7] ~ 'a' is in 'abc' ~ i is not odd ~ i is sameas 7 ~ l is sameas l ~ l is sameas [3, 1, 2]
'abc' is lower ~ 'ABC' is upper ~ 'upper' is filter ~ 'nosuch' is filter ~ 'odd' is test ~ range is callable ~ 5 is callable
i is nosuch
s|nosuch
s.nosuch()
5()
l()
d|tojson ~ nested|tojson ~ floats|tojson ~ u|tojson ~ html|tojson ~ '\\x01\\x7f\\u2028"\\\\/\\b\\f'|tojson
nested|tojson(indent=2) ~ []|tojson(indent=2) ~ {}|tojson(indent=2) ~ [[], {}]|tojson(indent=1)
d|tojson(separators=(',', ':')) ~ d|tojson(sort_keys=true) ~ u|tojson(ensure_ascii=true) ~ l|tojson(indent=0) ~ (1, 2)|tojson ~ {1: 2, none: 3, true: 4, 1.5: 5}|tojson
missing|tojson
d.items()|tojson
big|tojson ~ n|tojson ~ t|tojson ~ 1.0|tojson ~ 1e100|tojson
'[1, {"a": null}]'|from_json
range(5)|list ~ range(2, 8, 3)|list ~ range(5, 0, -2)|list ~ range(3) ~ range(0)|list ~ range(1, 3)|length ~ range(4)[1] ~ range(5)[1:3]|list
range(100001)
range('a')
dict(a=1, b=2) ~ dict({'x': 1}, y=2) ~ dict([('k', 'v')])
namespace(a=1).a ~ namespace({'b': 2}).b ~ namespace().zz
{'a': 1, 'b': [1, 2], 3: 4, 'a': 5} ~ {'x': {}}.x ~ {1: 'i', true: 'b', 1.0: 'f'}
{[1]: 2}
'a' 'b' "c"
'\\n\\t\\x41\\u00e9\\101\\q\\'"'
[1, 2,] ~ (1, 2,) ~ {'a': 1,}
s . upper ( )
l.0 ~ users.0.name
l[1:2, 3]
not t == false ~ not not t
(1 if false).x
1 if 0 else 2 if 0 else 3
strftime_now('%Y-%m-%d %H:%M:%S %d %b %B %A %a %j %I %p %y %U %W %w %u %e %-d %-m %% %D %T %F %R %c')
raise_exception('no: ' ~ s)
cycler('a', 'b').next()
joiner(', ')()
l.index(1) ~ l.count(3) ~ (1, 2).index(2)
l.append(4) ~ l ~ l.pop(0) ~ l ~ l.insert(1, 'x') ~ l ~ l.extend([9]) ~ l ~ l.remove('x') ~ l
d.pop('b') ~ d ~ d.update(q=1) ~ d ~ d.setdefault('r', 2) ~ d
d.pop('zz')
s.__class__ ~ '|' ~ d.__len__
s.__class__.foo
'a' ~ 1 ~ none ~ true ~ 1.0 ~ [none]
u|upper|lower|length
[missing, 1]|join('-') ~ [missing]|string
[[1, 2], [3]]|map('first')|list ~ [[1, 2], [3]]|map('join', '-')|list
'abc'|attr('upper') is callable ~ d|attr('b')
i|d(1) ~ '' or none
"a" "b"|upper
-i|abs
s|length > 3 and s|length < 100
s|length - 2
l is defined and l|length
d['b' if t else 'a']
users|map(attribute='name')|map('lower')|select('in', ['ann'])|list
users[0]['x']['y'] ~ users[-1].x.y ~ users[1].x
""".strip("\n").split("\n")

# whole templates: (name, source)
T = [
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }};{% endfor %}",
    "{% for x in l if x > 1 %}{{ x }}{{ loop.length }}{{ loop.last }}{% else %}none{% endfor %}",
    "{% for x in [] %}{% else %}none{% endfor %}{% for x in l %}{% break %}{% else %}E{% endfor %}{% for x in l %}{{ x }}{% continue %}!{% else %}F{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if loop.index == 3 %}{% break %}{% endif %}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }} {% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in s %}{{ c }}.{% endfor %}",
    "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for a, b in [[1]] %}{% endfor %}",
    "{% for x in 5 %}{% endfor %}", "{% for x in n %}{% endfor %}", "{% for x in missing %}{{ x }}{% else %}empty{% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}",
    "{% for x in [[1, [2]], [3]] recursive %}{% if x is iterable %}<{{ loop(x) }}>{% else %}{{ x }}{{ loop.depth }}{% endif %}{% endfor %}",
    "{% set ns = namespace(found=false) %}{% for x in l if not ns.found %}{{ x }}{% if x == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}",
    "{% set ns = namespace(found=false) %}{% for x in l if not ns.found %}{{ x }}{{ loop.last }}{% if x == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}",
    "{% set x = 1 %}{% for y in l %}{% set x = y %}{{ x }}{% endfor %}{{ x }}", "{% if t %}{% set z = 1 %}{% endif %}{{ z }}",
    "{% set x = 1 %}{% for y in l %}{{ x }}{% set x = x + 1 %}{{ x }} {% endfor %}{{ x }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}{% set q = 1, 2 %}{{ q }}",
    "{% set ns = namespace(a=1) %}{% set ns.b = 2 %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}{{ ns.c }}{% set d.x = 1 %}",
    "{% set x %}a{{ s }}{% endset %}[{{ x }}]{% set y | upper | replace('A', 'Z') %}a{{ s }}{% endset %}{{ y }}",
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{{ d2 }}{% endmacro %}{{ m(1) }}{{ m(1, c=5) }}{{ m(b=1, a=2) }}{{ m() }}{{ m.name }}",
    "{% macro m(a) %}{{ varargs }}{{ kwargs }}{{ a }}{% endmacro %}{{ m(1, 2, 3, k=4) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}", "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}x{{ s }}{% endcall %}{{ m() }}",
    "{% macro m(l) %}{% for x in l %}{{ caller(x, k=1) }}{% endfor %}{% endmacro %}{% call(x, k) m(l) %}[{{ x }}{{ k }}]{% endcall %}",
    "{% macro fact(n) %}{% if n <= 1 %}1{% else %}{{ n * (fact(n - 1)|int) }}{% endif %}{% endmacro %}{{ fact(10) }}",
    "{% macro a() %}{{ v }}{% endmacro %}{% set v = 1 %}{{ a() }}{% set v = 2 %}{{ a() }}{% for v in [7] %}{{ a() }}{% endfor %}",
    "{{ late() if late is defined }}{% macro late() %}x{% endmacro %}{{ late() }}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}{{ a }}{{ c }}", "{% with %}x{% endwith %}",
    "{% filter upper | replace('A', 'b') %}abc{{ s }}{% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}",
    "{% generation %}a{{ s }}{% endgeneration %}", "{% block x %}a{% endblock x %}", "{% autoescape false %}{{ html }}{% endautoescape %}",
    "{% print s, 1 %}", "{% do x %}", "{% raw %}{{ x }} {% if %}{% endraw %}|{%- raw -%}  {{ y }}  {%- endraw -%}  z",
    "a {# comment {{ x }} #} b {#- c -#} d\n{# x #}\ne", "{{ '{{' }}{{ '}}' }}{{ '%}' }}", "{{ {'a': {'b': 1}}['a']['b'] }}{{ {} }}",
    "a\n  {% if t %}\n  b\n  {% endif %}\nc\n", "a\n  {%- if t -%}\n  b\n  {%- endif -%}\nc", "a\n  {%+ if t +%}\n  b\n  {%+ endif %}\nc",
    "  {{ s }}\n  {{- s -}}\n  x\n\n", "{% if t %}\n\nx{% endif %}\n\ny", "x  {% if t %}y{% endif %}  z", "\t{% set x = 1 %}\n{{ x }}\n\n", "{{ s }}\n", "\n\n",
    "{% if e %}1{% elif n %}2{% elif i %}3{% else %}4{% endif %}", "{% if t and not e or n %}y{% endif %}", "{% if missing %}a{% else %}b{% endif %}",
    "{% if l %}{% if d %}{{ l[0] }}{% endif %}{% endif %}", "a\r\nb\rc\n{{ 'x\r\ny' }}", "{%if t%}{{s}}{%endif%}", "{% for x in l -%}\n {{ x }}\n{%- endfor %}",
    "{{ s", "{{ s }", "{% if t %}", "{% endif %}", "{% for x l %}{% endfor %}", "{{ 'abc }}", "{# abc", "{% raw %}x", "{{ (1, 2 }}", "{{ ] }}", "{{ }}", "{{ 1 + }}",
    "{% set 1 = 2 %}", "{% set true = 2 %}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ f(a=1, 2) }}", "{{ a.b. }}", "{{ a[ }}", "{{ a is b is c }}", "{{ $ }}", "{% break %}",
    "{{ s is string and s }}{{ s is defined and l[0] }}", "{{ not s is string }}", "{{ 1 if s is string else 2 }}", "{{ l | length == 3 }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}",
    "{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "{% set it = l|map('string') %}{{ it|list }}{{ it|list }}",
    "{% for g, xs in users|groupby('age') %}{{ g }}:{% for x in xs %}{{ x.name }}{% endfor %};{% endfor %}", "{% set l2 = l %}{% set _ = l2.append(5) %}{{ l }}",
    "{% for m in users %}{% set ns = namespace(x=loop.index) %}{{ ns.x }}{% endfor %}{{ ns }}", "{% set loop = 3 %}{{ loop }}{% for x in [1] %}{{ loop.index }}{% endfor %}",
    "{% for x in range(3) %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "{{ [1,2,3]|map('string')|join(',') }}{{ x.y if x is defined }}", "{{ dict(l|map('string')|map('center', 2)) }}",
    "{% set f = s.upper %}{{ f() }}{{ s.split(sep=',', maxsplit=1) }}", "{% call 5 %}{% endcall %}", "{% set x = [] %}{% for i in l %}{{ x.append(i) or '' }}{% endfor %}{{ x }}",
    "{% for x in l %}{% set x = 5 %}{{ x }}{% endfor %}", "{% macro m(x) %}{% set x = x + 1 %}{{ x }}{% endmacro %}{{ m(1) }}", "{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m() }}",
    "{{ loop }}", "{% for x in l %}{{ loop is defined }}{{ loop.foo }}{% endfor %}", "{{- 1 -}} {{ 2 -}}\n{{- 3 }}", "{%- set x = 1 -%}\n\n{{ x }}",
]

out = []
for src in ["{{ %s }}" % e for e in E] + T:
    try:
        text = reference.render(src, [], **json.loads(json.dumps(VARS)))
    except Exception as e:
        text = e
    if isinstance(text, Exception):
        out.append({"source": src, "error": f"{type(text).__name__}: {text}"})
    else:
        out.append({"source": src, "text": text})
(here / "expressions.json").write_text(json.dumps({"vars": VARS, "cases": out}, ensure_ascii=False, indent=1) + "\n")
print(len(out), "cases,", sum("error" in c for c in out), "of them errors")
