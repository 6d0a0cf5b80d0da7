package near

import "testing"

func TestName(t *testing.T) {
	list := []string{"embed", "serves", "qwen2", "qwen3", "qwen3_moe", "rms_norm", "llama"}
	for name, want := range map[string]string{"embd": "embed", "serve": "serves", "qwn3": "qwen3", "qwen33": "qwen3", "Qwen3": "qwen3", "rmsnorn": "rms_norm", "rsm_norm": "rms_norm",
		"lama": "llama", "bert": "", "em": "", "embedding": "", "": ""} {
		if got := Name(name, list); got != want {
			t.Errorf("%q is taken for %q, want %q", name, got, want)
		}
	}
	if h := Hint("embd", list); h != "; did you mean embed?" {
		t.Errorf("hint %q", h)
	}
	if Hint("bert", list) != "" {
		t.Error("a hint to nothing")
	}
}

func TestEdits(t *testing.T) {
	for _, x := range []struct {
		a, b string
		n    int
	}{{"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1}, {"abc", "abcd", 1}, {"abc", "xbc", 1}, {"abc", "xyc", 2}, {"abc", "", 3}, {"", "", 0}} {
		if n := Edits(x.a, x.b); n != x.n {
			t.Errorf("%q and %q: %d, want %d", x.a, x.b, n, x.n)
		}
	}
}
