package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/model/modeltest"
)

// TestAdvice: the sampling that a card advises goes along, both ways and through
// a folder, under GGUF's keys too; what the files say stays.
func TestAdvice(t *testing.T) {
	dir := t.TempDir()
	plain := modeltest.Write(t, t.TempDir(), modeltest.Options{})
	folder := copyFolder(t, filepath.Join(zoo(t), "llama"), map[string]string{generationFile: `{"top_p": 0.5, "eos_token_id": 2}`})
	greedy := copyFolder(t, filepath.Join(zoo(t), "llama"), map[string]string{generationFile: `{"do_sample": false}`})
	for i, c := range []struct {
		in          string
		outs        []string
		temperature float64
		topP        float64
	}{
		{plain, []string{"a.gguf"}, 0.2, 0.9}, {plain, []string{"b"}, 0.2, 0.9}, {plain, []string{"c.gguf", "d", "e.gguf", "f.gguf"}, 0.2, 0.9},
		{folder, []string{"g.gguf", "h"}, 0.2, 0.5}, {folder, []string{"i"}, 0.2, 0.5}, {greedy, []string{"j.gguf"}, 0, 0},
	} {
		in, told := c.in, ""
		o := Options{Advice: map[string]float64{"temperature": 0.2, "top_p": 0.9}, Notice: func(s string) { told += s + "\n" }}
		for _, out := range c.outs {
			out = filepath.Join(dir, out)
			if err := Run(in, out, o); err != nil {
				t.Fatal(i, err)
			}
			in, o.Advice = out, nil
		}
		m, err := model.Open(in, model.Options{NoTokenizer: true})
		if err != nil {
			t.Fatal(err)
		}
		g := m.Generation
		m.Close()
		if c.temperature == 0 {
			if !g.Greedy || strings.Contains(told, "advises") {
				t.Errorf("%v: %+v, told %q", c.outs, g, told)
			}
			continue
		}
		if g.Temperature == nil || float32(*g.Temperature) != float32(c.temperature) || g.TopP == nil || float32(*g.TopP) != float32(c.topP) || strings.Count(told, "advises") != 1 {
			t.Errorf("%v: %+v, told %q", c.outs, g, told)
		}
		if strings.HasSuffix(in, ".gguf") {
			f, err := gguf.Open(in)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := f.Meta.Float("general.sampling.temp"); err != nil || float32(v) != 0.2 {
				t.Errorf("%s: general.sampling.temp is %v: %v", in, v, err)
			}
			f.Close()
		} else if raw, err := os.ReadFile(filepath.Join(in, generationFile)); err != nil || !strings.Contains(string(raw), `"temperature": 0.2`) {
			t.Errorf("%s: %s %v", in, raw, err)
		}
	}
}
