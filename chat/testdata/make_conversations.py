#!/usr/bin/env python3
"""Writes conversations.json, the conversations that goldens are made of."""
import json
import pathlib

U = lambda c: {"role": "user", "content": c}
S = lambda c: {"role": "system", "content": c}
A = lambda c, **k: {"role": "assistant", "content": c, **k}
def call(id, name, **args):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": args}}
def T(id, name, c):
    return {"role": "tool", "content": c, "name": name, "tool_call_id": id}

WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Get the weather of a city.\nIn °C.", "parameters": {
    "type": "object", "properties": {
        "city": {"type": "string", "description": "The city's name, e.g. \"Zürich\""},
        "days": {"type": "integer", "description": "How many days", "default": 1, "minimum": 0},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "factor": {"type": ["number", "null"], "default": 1.5e-7}},
    "required": ["city"]}}}
SEARCH = {"type": "function", "function": {"name": "search", "description": "Search <things> & 'more'", "parameters": {
    "type": "object", "properties": {
        "query": {"type": "string"},
        "filters": {"type": "array", "items": {"type": "object", "properties": {
            "key": {"type": "string", "description": "key"}, "value": {"type": "boolean"}}, "required": ["key"]}},
        "options": {"type": "object", "properties": {"deep": {"type": "object", "properties": {"x": {"type": "number"}}}},
                    "additionalProperties": False}},
    "required": ["query", "filters"]}}}
NOARGS = {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}}
TOOLS = [WEATHER, SEARCH, NOARGS]
I1, I2 = "call00001", "call00002"
WEIRD = "  \"quo'tes\" {{ x }} {% if %} <|im_end|> <|eot_id|> </s> [INST] \\n \\ tab\t é ß Σ 日本語 🙂 \u200b\n\n# a\r\n  <think>no</think> trailing  \n"

tooltalk = [S("Be brief."), U("Weather in Zürich?"),
            A("", tool_calls=[call(I1, "get_weather", city="Zürich", days=2, factor=0.5)]),
            T(I1, "get_weather", "{\"temp\": 21.5}"), A("It is 21.5 °C."), U("Thanks. And Bern?")]
cases = [
    ("user", [U("Hello!")]),
    ("system", [S("You are a helpful assistant."), U("Hello!")]),
    ("multi", [S("  Be brief. \n"), U("Hi"), A("Hello."), U(" How are you? "), A("Fine.\nAnd you?\n"), U("Good.")]),
    ("nosystem", [U("Hi"), A("Hello."), U("Bye")]),
    ("ends-assistant", [U("Hi"), A("Hello, I")]),
    ("developer", [{"role": "developer", "content": "Answer in French."}, U("Hi"), A("Salut."), U("Bye")]),
    ("late-system", [S("One."), U("Hi"), A("Hello."), S("Two."), U("Bye")]),
    ("late-only", [U("Hi"), S("Two."), U("Bye")]),
    ("weird", [S(WEIRD), U(WEIRD), A(WEIRD), U("{{ messages }}")]),
    ("empty", [S(""), U(""), A(""), U("x")]),
    ("null-content", [U("Hi"), A(None), U("Bye")]),
    ("parts", [{"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "this?"}]}, A("A."), U("b")]),
    ("parts-image", [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What?"}]}]),
    ("named", [{"role": "user", "content": "Hi", "name": "Ann"}, {"role": "assistant", "content": "Hello", "name": "bot"}, U("x")]),
    ("unknown-role", [U("Hi"), {"role": "critic", "content": "Hm."}, U("x")]),
    ("reasoning", [U("2+2?"), A("4", reasoning_content="Two and two\n make four."), U("3+3?"), A("6", reasoning_content="Six."), U("Sure?")]),
    ("reasoning-last", [U("2+2?"), A("4", reasoning_content="Two and two make four.\n")]),
    ("think-tags", [U("2+2?"), A("<think>\nTwo and two.\n</think>\n\n4"), U("3+3?")]),
    ("tools-only", [U("Weather in Bern?")], TOOLS),
    ("tools-system", [S("Be brief."), U("Weather in Bern?")], TOOLS),
    ("tools-developer", [{"role": "developer", "content": "Be brief."}, U("Weather?")], [WEATHER]),
    ("tool-talk", tooltalk, TOOLS),
    ("tool-talk-notools", tooltalk),
    ("tool-result", tooltalk[:4], [WEATHER]),
    ("tool-call-last", tooltalk[:3], [WEATHER]),
    ("tool-null", [U("Weather?"), A(None, tool_calls=[call(I1, "get_weather", city="Bern")]), T(I1, "get_weather", "rain"), A("Rain."), U("x")], [WEATHER]),
    ("tool-two", [U("Both?"), A("Let me look.", reasoning_content="Two calls.", tool_calls=[
        call(I1, "search", query="a \"b\" <c>", filters=[{"key": "k", "value": True}], options={"deep": {"x": 1}}, none=None, n=[1, 2.0, -3]),
        call(I2, "now")]), T(I1, "search", "line 1\nline 2"), T(I2, "now", "12:00"), A("Done.", reasoning_content="Ok."), U("More?")], TOOLS),
    ("tool-chain", [U("Go"), A("", tool_calls=[call(I1, "now")]), T(I1, "now", "12:00"),
                    A("", tool_calls=[call(I2, "search", query="x", filters=[])], reasoning_content="r"), T(I2, "search", "[]"), A("End.")], TOOLS),
    ("tool-json-content", [U("Go"), A("", tool_calls=[call(I1, "get_weather", city="a\nb")]), T(I1, "get_weather", [{"type": "text", "text": "sunny"}]), U("k")], [WEATHER]),
]
D = lambda c: {"role": "developer", "content": c}
P = lambda *texts: [{"type": "text", "text": t} for t in texts]
agent = [D("Use tools."), {"role": "user", "content": P("Which is warmer, ", "Bern or Zürich?")},
         A("I look both up.", reasoning_content="Two cities,\ntwo calls.", tool_calls=[call(I1, "get_weather", city="Bern"), call(I2, "get_weather", city="Zürich", days=1)]),
         T(I1, "get_weather", "{\"temp\": 19}"), T(I2, "get_weather", P("{\"temp\": 21.5}")),
         A("", reasoning_content="Check the time.", tool_calls=[call("call00003", "now")]), T("call00003", "now", "12:00"),
         A("Zürich, by 2.5 °C.", reasoning_content="21.5 > 19."), U("And in Basel?")]
cases += [
    ("agent", agent, TOOLS),
    ("agent-system", [S("Use tools.")] + agent[1:], TOOLS),
    ("agent-result-last", [S("Use tools.")] + agent[1:7], TOOLS),
    ("agent-late-system", [S("One.")] + agent[1:8] + [S("Be brief now."), U("And in Basel?")], TOOLS),
    ("late-developer", [S("One."), U("Hi"), A("Hello."), D("Two."), U("Bye")]),
    ("developer-then-system", [D("One."), S("Two."), U("Hi"), A("Hello."), U("Bye")]),
    ("two-systems", [S("One."), S("Two."), U("Hi")]),
    ("late-system-last", [U("Hi"), A("Hello."), U("Bye"), S("Two.")]),
    ("late-system-tools", tooltalk[:5] + [S("Two."), U("And Bern?")], TOOLS),
    ("system-parts", [{"role": "system", "content": P("Be ", "brief.")}, {"role": "user", "content": P("Hi")}, {"role": "assistant", "content": P("Hel", "lo.")}, U("Bye")]),
    ("images", [U("Look."), A("At what?"), {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "image_url", "image_url": {"url": "x"}},
                                                                         {"type": "text", "text": "b"}]}]),
    ("reasoning-many", [S("Think."), U("1?"), A("one", reasoning_content="r1"), U("2?"), A("two", reasoning_content="r2"), U("3?"), A("three"), U("4?"),
                        A("four", reasoning_content=" r4\n"), U("5?")]),
    ("users-in-row", [U("Hi"), U("Again"), A("Hello."), A("Still here."), U("Bye")]),
    ("tool-first", [T(I1, "now", "12:00"), U("Hi")], TOOLS),
]
flagged = [
    ("thinking-on", "user", {"enable_thinking": True, "thinking": True}),
    ("thinking-off", "multi", {"enable_thinking": False, "thinking": False}),
    ("thinking-off-tools", "tool-talk", {"enable_thinking": False, "thinking": False}),
    ("agent-thinking-off", "agent-system", {"enable_thinking": False, "thinking": False}),
    ("effort-high", "reasoning", {"reasoning_effort": "high", "preserve_thinking": True, "clear_thinking": False}),
    ("identity", "tool-two", {"model_identity": "You are Test.", "builtin_tools": ["browser", "python"], "custom_instructions": "Do."}),
    ("dated", "system", {"date_string": "01 Jan 2025", "tools_in_user_message": False}),
    ("tools-in-system", "tools-system", {"tools_in_user_message": False, "xml_tools": [WEATHER]}),
]
out = []
for name, msgs, *tools in cases:
    c = {"name": name, "messages": msgs}
    if tools:
        c["tools"] = tools[0]
    out.append(c)
by = {c["name"]: c for c in out}
for name, base, extra in flagged:
    out.append({**by[base], "name": name, "extra": extra})
(pathlib.Path(__file__).parent / "conversations.json").write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")
print(len(out), "conversations")
