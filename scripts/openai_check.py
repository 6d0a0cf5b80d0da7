#!/usr/bin/env python3
"""Holds a running server against the openai package, as its users call it.

    pip install openai
    inferflow serve MODEL --name NAME --alias org/alias --context 2048 --port 8080 &
    python3 scripts/openai_check.py http://127.0.0.1:8080/v1 NAME

With --program PATH --file MODEL it also starts servers of its own, to see that
a signal lets streams end and that a busy port is told. The model must have a
chat template. Prints "N passed, M failed" and ends with 1 if any check failed.
"""

import argparse
import asyncio
import json
import math
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import openai

args = argparse.ArgumentParser()
args.add_argument("base")
args.add_argument("model")
args.add_argument("--alias", default="org/alias")
args.add_argument("--context", type=int, default=2048)
args.add_argument("--program")
args.add_argument("--file")
args = args.parse_args()

root = args.base.removesuffix("/v1")
client = openai.OpenAI(base_url=args.base, api_key="none", max_retries=0, timeout=300)
M = {"model": args.model}
HI = [{"role": "user", "content": "Count from one to ten."}]
checks = []


def check(f):
    checks.append(f)
    return f


def chat(**k):
    k.setdefault("messages", HI)
    k.setdefault("max_tokens", 12)
    return client.chat.completions.create(**{**M, "temperature": 0, **k})


def text(**k):
    k.setdefault("prompt", "Once upon a time")
    k.setdefault("max_tokens", 8)
    return client.completions.create(**{**M, "temperature": 0, **k})


def refused(kind, f, status, code=None, param=None):
    try:
        f()
    except kind as e:
        assert e.status_code == status, e.status_code
        body = e.body
        assert isinstance(body, dict) and body["message"] and body["type"] and "param" in body and "code" in body, body
        assert code is None or e.code == code, e.code
        assert param is None or e.param == param, e.param
        return
    raise AssertionError("was not refused")


def raw(method, path, body=None, headers=None):
    r = urllib.request.Request(root + path, data=body, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(r, timeout=60) as x:
            return x.status, dict(x.headers), x.read()
    except urllib.error.HTTPError as e:
        return e.code, dict(e.headers), e.read()


def gauge(name):
    for line in raw("GET", "/metrics")[2].decode().splitlines():
        if line.startswith("inferflow_" + name + " "):
            return float(line.split()[1])
    raise AssertionError(name)


def idle():
    for _ in range(200):
        if gauge("requests_running") == 0 and gauge("requests_waiting") == 0 and gauge("kv_cache_usage") == 0:
            return
        time.sleep(0.02)
    raise AssertionError("something is still held")


# Lists and health


@check
def models_are_listed():
    ids = [m.id for m in client.models.list()]
    assert args.model in ids and args.alias in ids, ids


@check
def a_model_is_found():
    m = client.models.retrieve(args.model)
    assert m.id == args.model and m.object == "model" and m.created > 0 and m.owned_by
    assert m.max_model_len == args.context


@check
def a_model_with_a_slash_is_found():
    assert client.models.retrieve(args.alias).id == args.alias


@check
def an_unknown_model_is_not_found():
    refused(openai.NotFoundError, lambda: client.models.retrieve("nobody"), 404, "model_not_found")


@check
def health_and_metrics():
    assert raw("GET", "/health")[0] == 200
    status, headers, body = raw("GET", "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain") and b"inferflow_requests_running" in body


# Chat


@check
def chat_answers():
    r = chat()
    c = r.choices[0]
    assert r.object == "chat.completion" and r.id.startswith("chatcmpl-") and r.model == args.model and abs(r.created - time.time()) < 3600
    assert c.index == 0 and c.message.role == "assistant" and c.message.content and c.finish_reason in ("stop", "length")
    assert c.message.tool_calls is None and c.logprobs is None


@check
def usage_adds_up():
    u = chat(max_tokens=5).usage
    assert u.completion_tokens == 5 and u.prompt_tokens > 5 and u.total_tokens == u.prompt_tokens + 5
    assert u.prompt_tokens_details.cached_tokens >= 0 and u.completion_tokens_details.reasoning_tokens == 0


@check
def a_request_has_an_id():
    assert chat(max_tokens=1)._request_id
    r = client.chat.completions.with_raw_response.create(**M, messages=HI, max_tokens=1, extra_headers={"X-Request-Id": "mine"})
    assert r.headers["x-request-id"] == "mine"


@check
def length_ends_an_answer():
    assert chat(max_tokens=3).choices[0].finish_reason == "length"


@check
def max_completion_tokens_counts():
    assert chat(max_tokens=openai.omit, max_completion_tokens=4).usage.completion_tokens == 4


@check
def the_end_token_ends_an_answer():
    c = chat(messages=[{"role": "user", "content": "Say hi."}], max_tokens=400).choices[0]
    assert c.finish_reason == "stop" and "<|im_end|>" not in c.message.content, c


@check
def greedy_repeats():
    assert chat().choices[0].message.content == chat().choices[0].message.content


@check
def a_seed_repeats():
    a, b, c = (chat(temperature=1.5, seed=s, max_tokens=20).choices[0].message.content for s in (7, 7, 8))
    assert a == b and a != c


@check
def no_seed_varies():
    assert len({chat(temperature=1.5, max_tokens=20).choices[0].message.content for _ in range(3)}) > 1


@check
def several_answers():
    r = chat(n=4, temperature=1.2, seed=3, max_tokens=16)
    assert sorted(c.index for c in r.choices) == [0, 1, 2, 3] and len({c.message.content for c in r.choices}) > 1
    assert r.choices[0].message.content == chat(temperature=1.2, seed=3, max_tokens=16).choices[0].message.content


@check
def a_stop_string_ends_an_answer():
    whole = chat(max_tokens=24).choices[0].message.content
    stop = whole[5:9]
    c = chat(max_tokens=24, stop=stop).choices[0]
    assert c.finish_reason == "stop" and c.message.content == whole[: whole.index(stop)], (whole, c.message.content)


@check
def a_list_of_stop_strings():
    whole = chat(max_tokens=24).choices[0].message.content
    c = chat(max_tokens=24, stop=["\x00never", whole[8:11], whole[3:6]]).choices[0]
    assert c.finish_reason == "stop" and c.message.content == whole[: min(whole.index(whole[8:11]), whole.index(whole[3:6]))]


@check
def logprobs_of_chat():
    c = chat(logprobs=True, top_logprobs=5, max_tokens=6).choices[0]
    assert len(c.logprobs.content) == 6
    for t in c.logprobs.content:
        assert t.logprob <= 0 and bytes(t.bytes).decode(errors="replace") == t.token and len(t.top_logprobs) == 5
        top = [x.logprob for x in t.top_logprobs]
        assert top == sorted(top, reverse=True) and abs(top[0] - t.logprob) < 1e-6, "greedy takes the likeliest"
        assert sum(math.exp(x) for x in top) < 1.0001
    assert "".join(t.token for t in c.logprobs.content) == c.message.content


@check
def logprobs_do_not_change_the_answer():
    assert chat(logprobs=True, top_logprobs=20).choices[0].message.content == chat().choices[0].message.content


@check
def a_bias_forbids_a_token():
    first = chat(max_tokens=1, logprobs=True).choices[0].logprobs.content[0].token
    ids = json.loads(raw("POST", "/tokenize", json.dumps({"content": first}).encode())[2])["tokens"]
    assert chat(max_tokens=1, logit_bias={str(ids[0]): -100}).choices[0].message.content != first


@check
def penalties_change_an_answer():
    say = [{"role": "user", "content": "Write the word yes thirty times."}]
    a = chat(messages=say, max_tokens=40).choices[0].message.content
    b = chat(messages=say, max_tokens=40, frequency_penalty=2.0, presence_penalty=2.0).choices[0].message.content
    assert a != b


@check
def system_and_developer_are_one():
    a, b = (chat(messages=[{"role": r, "content": "Answer in French."}] + HI).choices[0].message.content for r in ("system", "developer"))
    assert a == b


@check
def parts_are_joined():
    a = chat(messages=[{"role": "user", "content": [{"type": "text", "text": "Count from"}, {"type": "text", "text": "one to ten."}]}])
    b = chat(messages=[{"role": "user", "content": "Count from\none to ten."}])
    assert a.choices[0].message.content == b.choices[0].message.content


@check
def a_conversation_goes_on():
    r = chat(messages=HI + [{"role": "assistant", "content": "One, two."}, {"role": "user", "content": "Go on."}])
    assert r.choices[0].message.content


@check
def a_begun_answer_is_continued():
    whole = chat(max_tokens=16).choices[0].message.content
    cut = whole.index(" ", 4)
    rest = chat(max_tokens=12, messages=HI + [{"role": "assistant", "content": whole[:cut]}]).choices[0].message.content
    assert (whole[:cut] + rest)[: len(whole) - 12] == whole[: len(whole) - 12], (whole, rest)


@check
def special_tokens_of_a_user_are_text():
    plain = chat(messages=[{"role": "user", "content": "a"}], max_tokens=1).usage.prompt_tokens
    fake = chat(messages=[{"role": "user", "content": "a<|im_end|><|im_end|><|im_end|>"}], max_tokens=1).usage.prompt_tokens
    assert fake - plain > 9, (plain, fake)


@check
def every_script_and_emoji():
    r = chat(messages=[{"role": "user", "content": "Translate: Größe 猫 кошка 😺 नमस्ते"}], max_tokens=30)
    assert "\ufffd" not in r.choices[0].message.content[:-1]


@check
def fields_that_change_nothing():
    chat(max_tokens=1, user="u", store=False, metadata={"a": "b"}, service_tier="auto", parallel_tool_calls=True, tool_choice="auto",
         response_format={"type": "text"}, reasoning_effort="low", verbosity="low", modalities=["text"], extra_body={"new_thing": 1, "top_k": 5, "min_p": 0.1})


# Streams


@check
def a_stream_is_the_answer():
    parts = list(chat(stream=True, max_tokens=24))
    assert parts[0].choices[0].delta.role == "assistant" and parts[-1].choices[0].finish_reason and not parts[-1].choices[0].delta.content
    assert len({(p.id, p.created, p.model, p.object) for p in parts}) == 1 and parts[0].object == "chat.completion.chunk"
    assert "".join(p.choices[0].delta.content or "" for p in parts) == chat(max_tokens=24).choices[0].message.content
    assert all(p.usage is None for p in parts)


@check
def a_stream_tells_usage_when_asked():
    parts = list(chat(stream=True, max_tokens=4, stream_options={"include_usage": True}))
    assert parts[-1].choices == [] and parts[-1].usage.completion_tokens == 4
    assert all(p.usage is None and p.choices for p in parts[:-1])


@check
def a_stream_of_several_answers():
    got = {}
    for p in chat(stream=True, n=3, temperature=1.2, seed=5, max_tokens=12):
        c = p.choices[0]
        got.setdefault(c.index, ["", None])
        got[c.index][0] += c.delta.content or ""
        got[c.index][1] = c.finish_reason or got[c.index][1]
    whole = {c.index: c.message.content for c in chat(n=3, temperature=1.2, seed=5, max_tokens=12).choices}
    assert {i: x[0] for i, x in got.items()} == whole and all(x[1] for x in got.values())


@check
def a_stream_stops_at_a_string():
    whole = chat(max_tokens=24).choices[0].message.content
    parts = list(chat(stream=True, max_tokens=24, stop=whole[6:12]))
    assert "".join(p.choices[0].delta.content or "" for p in parts) == whole[: whole.index(whole[6:12])]
    assert parts[-1].choices[0].finish_reason == "stop"


@check
def a_stream_has_logprobs():
    tokens = [t for p in chat(stream=True, logprobs=True, top_logprobs=2, max_tokens=6) if p.choices[0].logprobs for t in p.choices[0].logprobs.content]
    plain = chat(logprobs=True, top_logprobs=2, max_tokens=6).choices[0].logprobs.content
    assert [(t.token, t.logprob) for t in tokens] == [(t.token, t.logprob) for t in plain]


@check
def a_stream_helper_collects():
    say = [{"role": "user", "content": "Say hi."}]  # the helper refuses answers that end by length
    with client.chat.completions.stream(**M, messages=say, max_tokens=400, temperature=0) as s:
        kinds = {e.type for e in s}
        assert "content.delta" in kinds and "content.done" in kinds
        assert s.get_final_completion().choices[0].message.content == chat(messages=say, max_tokens=400).choices[0].message.content


@check
def a_stream_that_is_closed_frees_all():
    s = chat(stream=True, max_tokens=1500, extra_body={"ignore_eos": True})
    for _, p in zip(range(5), s):
        pass
    s.close()
    idle()


@check
def an_answer_that_is_given_up_frees_all():
    try:
        client.with_options(timeout=0.5).chat.completions.create(**M, messages=HI, max_tokens=1500, extra_body={"ignore_eos": True})
        raise AssertionError("no timeout")
    except openai.APITimeoutError:
        pass
    idle()


# Completions


@check
def a_text_is_continued():
    r = text()
    assert r.object == "text_completion" and r.id.startswith("cmpl-") and r.choices[0].text and r.usage.completion_tokens == 8


@check
def sixteen_tokens_by_default():
    assert text(max_tokens=openai.omit).usage.completion_tokens <= 16


@check
def ids_are_a_prompt():
    ids = json.loads(raw("POST", "/tokenize", b'{"content": "Once upon a time"}')[2])["tokens"]
    assert text(prompt=ids).choices[0].text == text().choices[0].text == text(prompt=[ids]).choices[0].text


@check
def several_prompts_and_answers():
    r = text(prompt=["One", "Two"], n=2)
    assert [c.index for c in r.choices] == [0, 1, 2, 3]
    assert r.choices[0].text == text(prompt="One").choices[0].text and r.choices[3].text == text(prompt="Two").choices[0].text


@check
def a_prompt_is_echoed():
    assert text(echo=True).choices[0].text == "Once upon a time" + text().choices[0].text


@check
def logprobs_of_a_prompt():
    l = text(echo=True, logprobs=3, max_tokens=1).choices[0].logprobs
    assert l.token_logprobs[0] is None and all(x <= 0 for x in l.token_logprobs[1:])
    assert "".join(l.tokens).startswith("Once upon a time") and l.text_offset[0] == 0 and l.text_offset[1] == len(l.tokens[0])
    assert len(l.tokens) == len(l.token_logprobs) == len(l.top_logprobs) == len(l.text_offset)
    only = text(echo=True, logprobs=0, max_tokens=0)
    assert only.usage.completion_tokens == 0 and only.choices[0].text == "Once upon a time"
    for a, b in zip(only.choices[0].logprobs.token_logprobs[1:], l.token_logprobs[1:]):
        assert a == b


@check
def a_text_is_streamed():
    parts = list(text(stream=True, stream_options={"include_usage": True}))
    assert "".join(p.choices[0].text for p in parts[:-1]) == text().choices[0].text
    assert parts[-1].usage.completion_tokens == 8 and parts[-2].choices[0].finish_reason == "length"


# Refusals


@check
def wrong_requests_are_refused():
    bad = openai.BadRequestError
    refused(openai.NotFoundError, lambda: chat(model="nobody"), 404, "model_not_found", "model")
    refused(bad, lambda: chat(messages=[]), 400, param="messages")
    refused(bad, lambda: chat(messages=[{"role": "king", "content": "x"}]), 400, param="messages")
    refused(bad, lambda: chat(temperature=-1), 400, param="temperature")
    refused(bad, lambda: chat(top_p=7), 400, param="top_p")
    refused(bad, lambda: chat(n=0), 400, param="n")
    refused(bad, lambda: chat(n=1000000), 400, param="n")
    refused(bad, lambda: chat(max_tokens=-5), 400, param="max_tokens")
    refused(bad, lambda: chat(logprobs=True, top_logprobs=50), 400, param="top_logprobs")
    refused(bad, lambda: chat(stop=[""]), 400, param="stop")
    refused(bad, lambda: chat(logit_bias={"zero": 1}), 400, param="logit_bias")
    refused(bad, lambda: chat(response_format={"type": "json_object"}), 400, param="response_format")


@check
def too_long_a_prompt_is_refused_before_the_stream():
    long = [{"role": "user", "content": "word " * (args.context + 10)}]
    refused(openai.BadRequestError, lambda: chat(messages=long, stream=True), 400, "context_length_exceeded")
    refused(openai.BadRequestError, lambda: text(prompt="word " * (args.context + 10)), 400, "context_length_exceeded")


@check
def images_are_refused():
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]
    refused(openai.BadRequestError, lambda: chat(messages=image), 400, param="messages")


@check
def broken_bodies_are_refused():
    for body in (b"", b"{", b"[]", b"null", b'{"model": 7}', b'{"model": "\xff"}', b'{"a":' * 20000):
        status, _, answer = raw("POST", "/v1/chat/completions", body)
        assert status == 400 and json.loads(answer)["error"]["message"], (body[:20], status)


@check
def a_huge_body_is_refused():
    s = socket.create_connection((root.split("//")[1].split(":")[0], int(root.rsplit(":", 1)[1])), timeout=60)
    s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n" + b'{"model": "')
    try:
        while True:
            s.sendall(b"x" * 65536)
    except OSError:
        pass
    s.close()
    assert raw("GET", "/health")[0] == 200


@check
def wrong_methods_and_paths():
    assert raw("GET", "/v1/chat/completions")[0] == 405 and raw("POST", "/v1/models", b"{}")[0] == 405
    assert raw("GET", "/v1/nothing")[0] == 404 and raw("POST", "/v2/chat", b"{}")[0] == 404
    assert raw("HEAD", "/v1/models")[0] == 200


@check
def a_browser_may_ask():
    status, h, _ = raw("OPTIONS", "/v1/chat/completions", headers={"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST",
                                                                   "Access-Control-Request-Headers": "authorization,x-stainless-os"})
    assert status == 204 and h["Access-Control-Allow-Origin"] == "http://localhost:3000" and "x-stainless-os" in h["Access-Control-Allow-Headers"]
    assert "Access-Control-Allow-Origin" not in raw("GET", "/health", headers={"Origin": "https://example.org"})[1]


# Many at once


def prompt(i):
    return [{"role": "user", "content": f"Tell me something about the number {i}."}]


@check
def thirty_two_clients_get_their_own_answers():
    alone = {i: chat(messages=prompt(i), max_tokens=8 + i % 5).choices[0].message.content for i in range(0, 32, 4)}
    got = {}

    def one(i):
        if i % 2:
            s = chat(messages=prompt(i), max_tokens=8 + i % 5, stream=True)
            got[i] = "".join(p.choices[0].delta.content or "" for p in s)
        else:
            got[i] = chat(messages=prompt(i), max_tokens=8 + i % 5).choices[0].message.content

    threads = [threading.Thread(target=one, args=(i,)) for i in range(32)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == 32 and all(got.values())
    for i, a in alone.items():
        assert got[i] == a, (i, got[i], a)
    idle()


@check
def asynchronous_clients():
    async def all_of_them():
        c = openai.AsyncOpenAI(base_url=args.base, api_key="none", max_retries=0, timeout=300)
        rs = await asyncio.gather(*(c.chat.completions.create(**M, messages=prompt(i), max_tokens=4, temperature=0) for i in range(32)))
        assert all(r.usage.completion_tokens == 4 for r in rs)
        n = 0
        async for p in await c.chat.completions.create(**M, messages=HI, max_tokens=4, temperature=0, stream=True):
            n += len(p.choices)
        assert n >= 5
        await c.close()

    asyncio.run(all_of_them())


@check
def sixty_four_come_and_go():
    def one(i):
        s = chat(messages=prompt(i), max_tokens=600, stream=True, extra_body={"ignore_eos": True})
        for _, p in zip(range(3), s):
            pass
        s.close()

    threads = [threading.Thread(target=one, args=(i,)) for i in range(64)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    idle()


@check
def the_counters_count():
    before = gauge("generated_tokens_total"), gauge("requests_total")
    chat(max_tokens=3)
    assert gauge("generated_tokens_total") - before[0] == 3 and gauge("requests_total") - before[1] == 1
    assert gauge("requests_failed_total") == 0


# Servers of its own


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def started(*more):
    port = free_port()
    p = subprocess.Popen([args.program, "serve", args.file, "--name", "own", "--port", str(port), *more], stderr=subprocess.PIPE, text=True)
    c = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=120)
    for _ in range(600):
        try:
            c.models.list()
            return p, c, port
        except openai.APIConnectionError:
            if p.poll() is not None:
                break
            time.sleep(0.05)
    raise AssertionError("the server does not start: " + p.stderr.read())


def a_signal_lets_streams_end():
    p, c, _ = started()
    s = c.chat.completions.create(model="own", messages=HI, max_tokens=60, temperature=0, stream=True, extra_body={"ignore_eos": True})
    next(iter(s))
    p.send_signal(signal.SIGTERM)
    last = None
    for x in s:
        last = x
    assert last.choices[0].finish_reason == "length"
    assert p.wait(30) == 0, p.returncode


def a_second_signal_ends_at_once():
    p, c, _ = started("--context", "8000")
    s = c.chat.completions.create(model="own", messages=HI, max_tokens=7000, temperature=0, stream=True, extra_body={"ignore_eos": True})
    next(iter(s))
    p.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert p.poll() is None
    p.send_signal(signal.SIGTERM)
    p.wait(5)


def a_busy_port_is_told():
    p, _, port = started()
    q = subprocess.run([args.program, "serve", args.file, "--port", str(port)], capture_output=True, text=True, timeout=60)
    assert q.returncode == 1 and "--port" in q.stderr, q
    p.terminate()
    assert p.wait(30) == 0


if args.program:
    checks += [a_signal_lets_streams_end, a_second_signal_ends_at_once, a_busy_port_is_told]

passed = failed = 0
for f in checks:
    t0 = time.time()
    try:
        f()
        passed += 1
        print(f"ok    {f.__name__} ({time.time() - t0:.1f} s)", flush=True)
    except Exception as e:  # noqa: BLE001: any exception is a failed check
        failed += 1
        print(f"FAIL  {f.__name__}: {type(e).__name__}: {e}", flush=True)
print(f"{passed} passed, {failed} failed")
os._exit(1 if failed else 0)
