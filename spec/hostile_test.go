package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// TestZeroHeads names the key behind a division by zero.
func TestZeroHeads(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	f.config["num_attention_heads"] = 0
	_, err := resolveAndTrace(f, Options{})
	if err == nil || !errors.Is(err, ErrTrace) || !strings.Contains(err.Error(), "num_attention_heads (config.json)") {
		t.Errorf("got %v", err)
	}
}

// TestBiasNotes tells of biases that the configuration promises and no tensor has.
func TestBiasNotes(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	for _, on := range []bool{false, true} {
		f.config["attention_bias"] = on
		tr, err := resolveAndTrace(f, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(tr.Notes, "\n"); strings.Contains(notes, "attention_bias = true") != on {
			t.Errorf("attention_bias %v: notes %q", on, notes)
		}
	}
}

// TestLongNames keeps what files say of themselves short in messages.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	f := loadShapes(t, "llama.hf")
	f.config["hidden_act"] = long
	if _, err := resolveAndTrace(f, Options{}); err == nil || len(err.Error()) > 2000 {
		t.Errorf("hidden_act: %.300v", err)
	}
	f.config["model_type"], f.config["architectures"] = long, []any{long}
	if _, err := resolveAndTrace(f, Options{}); err == nil || len(err.Error()) > 4000 {
		t.Errorf("model_type: %.300v", err)
	}
}

// TestLongTensorNames keeps names of tensors short in messages, with what is said of them.
func TestLongTensorNames(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	f := loopFiles()
	f.tensors = map[string]tensor.View{"embed": f.tensors["embed"], long: {Name: long, Type: quant.F32, Shape: tensor.Shape{16, 8}}}
	for line, says := range map[string]string{
		"embed(\"embed\")":                            "… (1048576 bytes) F32 [",
		"embed(\"y\" * 1000000)":                      "missing tensor " + strings.Repeat("y", 100) + "… (1000007 bytes)",
		"linear(slice(row, 0, 3), \"x\" * (1 << 20))": "of " + strings.Repeat("x", 100) + "… (1048576 bytes)",
	} {
		_, err := trace("m.star", stateSpec("return "+line), f, Options{})
		if err == nil || !strings.Contains(err.Error(), says) || len(err.Error()) > 2500 {
			t.Errorf("%s: %.900v, want …%s…", line, err, says)
		}
	}
}
