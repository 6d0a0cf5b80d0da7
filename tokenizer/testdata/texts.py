"""The texts that goldens are made of: hand-written traps, and random ones from a fixed seed."""
import random

FIXED = [
    "", " ", "  ", "   ", "\t", "\n", "\n\n", "\n\n\n", "\r\n", "\t\n", " \n", "\n ", "Hello world", " Hello world", "Hello World", " Hello World!",
    "Hello, world!", " Hello, world!", " this is 🦙.cpp", "w048 7tuijk dsdfhu", "нещо на Български", "កាន់តែពិសេសអាចខលចេញ",
    "🚀 (normal) 😶\u200d🌫️ (multiple emojis concatenated) ✅ (only emoji that has its own token)", "Hello\n Hello\n  Hello", " (", "\n =", "' era",
    "Hello, y'all! How are you 😁 ?我想在apple工作1314151天～", "3", "33", "333", "3333", "33333", "333333", "3333333", "33333333", "333333333", "1234567890123",
    "I'm you're they've he'd she'll it's don't I'M YOU'RE IT'S DON'T 'S 'T 'RE 'Ve 'lL 'd", "'\u017f \u212aelvin I'\u017f", "a\u00a0b\u3000c\u2003d\u0085e\u200bf\ufeffg",
    "The quick brown fox jumps over the lazy dog. ", "    four spaces\n        eight\n\ttab\n\t\ttwo tabs   \n   \n\n   trailing   ", "a  b   c    d     e",
    "def f(x):\n    return x**2 + 1  # square\n\n\nclass A:\n\tpass\n", "if (a != b && c <= d) { return foo->bar[i]; }", "https://example.com/a/b?c=d&e=f#g", "x = [1,2,3];;;\n//////\n/*---*/",
    "$100.50 €20 £3 ¥5 ₹7 +5% -3% <=>~|^`", "«Ça va?» — dit-il… “oui” ‘non’", "ﬁﬂ ﬃ ½ ² ³ ¹ ™ © ® № ℃ Å Ω ① ⅷ", "e\u0301 é n\u0303 ñ A\u030a Å \u1e9b\u0323 ẛ̣", "各位好，今天天气不错。明天也是晴天！",
    "こんにちは、世界。カタカナとひらがな漢字ー", "안녕하세요 세계 한국어 테스트", "مرحبا بالعالم ١٢٣", "नमस्ते दुनिया १२३ क्षत्रिय", "สวัสดีชาวโลก", "שלום עולם", "Привет, мир! ЁЖИК", "Γειά σου Κόσμε ΟΔΥΣΣΕΥΣ ς", "İstanbul ığdır STRASSE straße ǅ",
    "👨\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 🇫🇷 👍🏽", "\U00010400\U00010428 𝕳𝖊𝖑𝖑𝖔 𓀀", "a" * 300, " " * 200, "ab" * 150, "\n" * 70, "x" + " " * 63 + "y", "!" * 100, "=" * 80, "9" * 100, "你" * 60,
    "</s><s>", "<s>", "<|endoftext|>", "<|im_start|>user\nhi<|im_end|>", "<unk>", "[CLS] [MASK] [SEP]", "a<s>b </s> c", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>", "<bos><start_of_turn>user\nhi<end_of_turn>",
    "<mask>", "▁▁ ▁a▁", "Ġhello Ċ", "<0x0A>", "\x00\x01\x7f", "camelCaseWordsAndHTMLParser XMLHttpRequest iPhone", "ALLCAPS lowerUPPER Mixed-Case_snake_case", "éÉèÈ àÀ", "Ünïcödé", "1st 2nd 3rd 4th", "3.14159 1,000,000 1e-10 0xFF",
    "\u0301leading mark", "a\u0301\u0301b", "क्", "\ufffd", "\ue000", "a\u2028b\u2029c", "tab\there", "mixed\r\nline\rends\n\r", "   \n  \n ", "\n\n  a", "a \n b", "a\n\n\nb", "?!?!...", "word/word\\word", "don’t can’t", "O'Neil's", "'tis 'twas", "''''", "\"\"\"",
]

BLOCKS = [(0x20, 0x7e)] * 6 + [(0xa0, 0x17f), (0x370, 0x3ff), (0x400, 0x4ff), (0x590, 0x6ff), (0x900, 0x97f), (0xe00, 0xe7f), (0x1100, 0x11ff), (0x2000, 0x206f), (0x2070, 0x218f),
    (0x2190, 0x25ff), (0x3000, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0xf900, 0xfaff), (0xff00, 0xffef), (0x1d400, 0x1d7ff), (0x1f300, 0x1f6ff), (0x300, 0x36f)]
PARTS = ["the", " of", "'s", "'LL", " \n", "\n\n", "  ", "\t", "12", "3456", ".", ",", " -", "...", "é", "你好", "の", "🙂", "Abc", "XYZ", "_", "(", ")", "\r\n", " ", "/", "'", "’", "a", "B", "\u00a0", "कि", "ر"]


def texts(n=400, seed=7):
    rng = random.Random(seed)
    out = list(FIXED)
    for _ in range(n):
        if rng.random() < 0.5:
            lo, hi = rng.choice(BLOCKS), rng.choice(BLOCKS)
            s = "".join(chr(rng.randint(*rng.choice([lo, hi, (0x20, 0x7e)]))) for _ in range(rng.randint(1, 40)))
        else:
            s = "".join(rng.choice(PARTS) for _ in range(rng.randint(1, 25)))
        out.append(s)
    return out
