"""The reference for chat templates: Jinja2 3.1.6 set up as Hugging Face
transformers sets it up (utils/chat_template_utils.py of 5.24), with a fixed
clock, and with the filter from_json that some templates of llama.cpp expect.

Needs the package jinja2 only.
"""
import datetime
import functools
import json

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
REASONING = ("reasoning_content", "thinking", "reasoning")


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(lineno)

    def _support(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment(cls):
    env = cls(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.filters["from_json"] = lambda s: json.loads(s)
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: NOW.strftime(f)
    return env


ENV = environment(ImmutableSandboxedEnvironment)
# Templates that append to their own lists fail in transformers and work in
# plain Jinja2; they are held to the latter.
MUTABLE = environment(SandboxedEnvironment)


@functools.lru_cache(maxsize=None)
def compiled(env, source):
    return env.from_string(source)


def normalize(messages):
    out = []
    for m in messages:
        m = {k: v for k, v in m.items() if v is not None}
        reasoning = next((m[k] for k in REASONING if m.get(k) is not None), None)
        if reasoning is not None:
            m = {"thinking": reasoning, **m, "reasoning_content": reasoning}
        out.append(m)
    return out


def render(source, messages, tools=None, add_generation_prompt=False, **variables):
    """The prompt, or the exception."""
    for env in (ENV, MUTABLE):
        try:
            return compiled(env, source).render(
                messages=normalize(json.loads(json.dumps(messages))), tools=tools, documents=None,
                add_generation_prompt=add_generation_prompt, **variables)
        except jinja2.exceptions.SecurityError:
            continue
        except Exception as e:  # whatever it is, the case is one of failure
            return e
    return jinja2.exceptions.SecurityError("refused by the sandbox")
