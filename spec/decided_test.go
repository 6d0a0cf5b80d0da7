package spec

import (
	"strings"
	"testing"

	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// TestDecidedWhileTraced refuses what would silently go one way: a value's
// numbers are not known yet.
func TestDecidedWhileTraced(t *testing.T) {
	body := func(s string) string {
		return "def model(c):\n    x = embed(\"model.embed_tokens\")\n    " + s + "\n    return x\n"
	}
	for name, c := range map[string]struct{ text, says string }{
		"if":           {body("y = 1 if positions() else 2"), "m.star:3: a value is asked whether it is true"},
		"less":         {body("y = 1 if less(positions(), 1) else 2"), "where(less(a, b), x, y)"},
		"not":          {body("y = not x"), "asked whether it is true"},
		"equal":        {body("y = 1 if positions() == 0 else 2"), "m.star:3: a value is compared with =="},
		"not equal":    {body("y = 1 if 0 != positions() else 2"), "compared with =="},
		"two values":   {body("y = x == positions()"), "compared with =="},
		"ordered":      {body("y = positions() < 3"), "where(less(a, b), x, y)"},
		"two ordered":  {body("y = x > x"), "two values are compared with >"},
		"power":        {body("y = x ** 2"), "there is no **"},
		"f-string":     {body("y = f\"a\""), "no f-strings"},
		"while":        {body("while True:\n        pass"), "while loops"},
		"weight":       {body("x = silu(tensor(\"model.norm.weight\"))"), "param(w) makes a value"},
		"value":        {body("x = neg_exp(x)"), "a weight is what is stored"},
		"weights":      {body("w = tensor(\"model.norm.weight\")\n    x = x * (w * w)"), "param(w) makes a value"},
		"eps":          {body("x = rms_norm(x, \"model.norm\")"), "m.star:3: rms_norm: eps is missing: rms_norm(x, NAME, eps)"},
		"eps in place": {body("x = rms_norm(x, 1e-6)"), "rms_norm(x, eps = 1e-06) is the norm without a weight"},
		"no name":      {body("name(x, 3)"), "a string or None"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := traceText(loadShapes(t, "llama.hf"), c.text)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, expected …%s…", err, c.says)
			}
		})
	}
	for _, text := range []string{"y = 1 if x == None or x != None else 2", "y = [x] if \"a\" == c.get(\"b\", 3) or 1 != 1.0 else [0]", "x = x + -tensor(\"model.norm.weight\")", "x = name(x, None)"} {
		if _, err := traceText(loadShapes(t, "llama.hf"), body(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestIgnoreHoldsForBoth covers a weight and its bias by their module's name,
// and tells of what fits nothing.
func TestIgnoreHoldsForBoth(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	for _, name := range []string{"extra.lang.weight", "extra.lang.bias", "extra.3.a.weight"} {
		f.tensors[name] = tensor.View{Name: name, Type: quant.F32, Shape: tensor.Shape{3}}
	}
	src, err := librarySource("llama")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace("m.star", "ignore(\"extra.lang\", \"extra.{i}.a\", \"nothing.*\")\n"+src, f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Ignored) < 3 || strings.Join(tr.IdleIgnores, " ") == "" || !strings.Contains(strings.Join(tr.IdleIgnores, " "), "nothing.*") || strings.Contains(strings.Join(tr.IdleIgnores, " "), "extra") {
		t.Errorf("ignored %q, idle %q", tr.Ignored, tr.IdleIgnores)
	}
}
