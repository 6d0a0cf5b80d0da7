"""The prompts that are continued: plain beginnings, and conversations in the
file's own chat template (or, for a file without one, the turns that its family
is trained on)."""
import jinja2

PLAIN = [
    "Once upon a time", "The capital of France is", "def fibonacci(n):\n", "Water boils at a temperature of",
    "The three laws of motion state that", "1, 2, 3, 4, 5,", "Dear Sir or Madam,\n\nI am writing to", "In the year 1969,",
    "import numpy as np\n\n", "Photosynthesis is the process by which", "La tour Eiffel se trouve", "Q: What is the largest planet?\nA:",
]
CHATS = [
    [{"role": "user", "content": "Why is the sky blue?"}],
    [{"role": "user", "content": "Write a haiku about the sea."}],
    [{"role": "user", "content": "What is 17 + 25?"}],
    [{"role": "system", "content": "You answer in one short sentence."}, {"role": "user", "content": "Who wrote Hamlet?"}],
    [{"role": "user", "content": "Name three fruits."}, {"role": "assistant", "content": "Apple, banana, cherry."},
     {"role": "user", "content": "And three vegetables?"}],
    [{"role": "user", "content": "Explain recursion to a child."}],
    [{"role": "user", "content": "Translate to German: The house is small."}],
    [{"role": "user", "content": "Give me a recipe for pancakes.\nList the ingredients first."}],
    [{"role": "user", "content": "What are the primary colours?"}],
    [{"role": "user", "content": "Summarise: The quick brown fox jumps over the lazy dog. The dog sleeps on."}],
]


def turns(messages):
    out = ""
    for m in messages:
        if m["role"] == "system":
            continue
        out += "<start_of_turn>%s\n%s<end_of_turn>\n" % ("model" if m["role"] == "assistant" else "user", m["content"])
    return out + "<start_of_turn>model\n"


def prompts(f):
    source = f.get("tokenizer.chat_template")
    if source:
        env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        template = env.from_string(source)
        render = lambda m: template.render(messages=m, add_generation_prompt=True, bos_token="", eos_token="")
    else:
        render = turns
    return [("plain", t) for t in PLAIN] + [("chat", render(m)) for m in CHATS]
