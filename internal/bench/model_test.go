package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/model"
)

// smallModel writes a folder with the configuration and the tensor shapes of
// one of the specification tests' models, and random float32 values.
func smallModel(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../spec/testdata/shapes", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Config  json.RawMessage
		Tensors [][3]json.RawMessage
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Type    string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	head, data := map[string]entry{}, []byte{}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, x := range file.Tensors {
		var name string
		e := entry{Type: "F32"}
		if json.Unmarshal(x[0], &name) != nil || json.Unmarshal(x[2], &e.Shape) != nil {
			t.Fatalf("tensor %s", x)
		}
		n := 1
		for _, d := range e.Shape {
			n *= d
		}
		e.Offsets[0] = len(data)
		for range n {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(rng.NormFloat64())*0.2))
		}
		e.Offsets[1] = len(data)
		head[name] = e
	}
	h, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	h = append(h, bytes.Repeat([]byte(" "), (8-len(h)%8)%8)...)
	dir := t.TempDir()
	out := append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), append(h, data...)...)
	for file, content := range map[string][]byte{"model.safetensors": out, "config.json": file.Config, "generation_config.json": []byte(`{"eos_token_id": [7, 9], "temperature": 0.6, "top_k": 20}`)} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, name string, o model.Options) *model.Model {
	t.Helper()
	o.Threads = 2
	m, err := model.Open(smallModel(t, name), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestMeasure(t *testing.T) {
	for _, name := range []string{"llama.hf", "mixtral.hf", "gemma3_text.hf", "gpt2.hf"} {
		m := open(t, name, model.Options{Rows: 16})
		r, err := Measure(context.Background(), m, Config{Prefill: []int{5, 40}, Decode: 4, Depths: []int{0, 20}, Sequences: []int{1, 3, 999},
			Repeat: 2, Threads: 2, Context: 64, Bandwidth: 1e10})
		if err != nil {
			t.Fatal(name, err)
		}
		if len(r.Results) != 6 || len(r.Skipped) != 2 || !strings.Contains(r.Skipped[0].Reason, "at most") {
			t.Fatalf("%s: %d results, skipped %v", name, len(r.Results), r.Skipped)
		}
		for _, x := range r.Results {
			if x.TokensPerSecond <= 0 || x.BytesPerToken <= 0 || x.BandwidthShare <= 0 {
				t.Errorf("%s: %+v", name, x)
			}
		}
		// One sequence reads all packed weights but the embedding table, of
		// which it reads a row, and the experts that it does not choose.
		if got := r.Results[2].BytesPerToken; got > 1.1*float64(r.WeightBytes)+4096 || got < 0.3*float64(r.WeightBytes) {
			t.Errorf("%s: %v bytes a token of %d packed", name, got, r.WeightBytes)
		}
	}
}

// TestContract holds the JSON to what the comparison script reads.
func TestContract(t *testing.T) {
	m := open(t, "llama.hf", model.Options{})
	r, err := Measure(context.Background(), m, Config{Prefill: []int{8}, Decode: 4, Depths: []int{0}, Sequences: []int{1}, Threads: 1, Bandwidth: 1e10})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Bandwidth float64          `json:"bandwidth_gb_s"`
		Results   []map[string]any `json:"results"`
	}
	if err := json.Unmarshal(raw, &got); err != nil || len(got.Results) != 2 || got.Bandwidth <= 0 {
		t.Fatalf("%v: %s", err, raw)
	}
	for i, test := range []string{"prefill", "decode"} {
		x := got.Results[i]
		if x["test"] != test {
			t.Errorf("result %d is %v", i, x)
		}
		for _, key := range []string{"n", "depth", "sequences", "tokens_per_second", "bytes_per_token", "bandwidth_share", "seconds"} {
			if _, ok := x[key].(float64); !ok {
				t.Errorf("result %d has no number %s: %v", i, key, x)
			}
		}
	}
}

func TestNothingFits(t *testing.T) {
	m := open(t, "llama.hf", model.Options{})
	_, err := Measure(context.Background(), m, Config{Prefill: []int{100}, Threads: 1, Context: 50})
	if err == nil || !strings.Contains(err.Error(), "the context was limited to 50 tokens") {
		t.Errorf("got %v", err)
	}
	_, err = Measure(context.Background(), m, Config{Prefill: []int{100}, Threads: 1, Memory: 1})
	if err == nil || !strings.Contains(err.Error(), "were granted") {
		t.Errorf("got %v", err)
	}
}

func TestExplain(t *testing.T) {
	m := open(t, "gemma3_text.hf", model.Options{Profile: true})
	e, err := Explain(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Config) == 0 || len(e.Types) != 1 || e.Types[0].Bits != 32 || e.Model.Spec != "gemma3_text" || len(e.NotFused) != 0 {
		t.Errorf("%+v", e)
	}
	if len(e.EndTokens) < 2 || e.EndTokens[len(e.EndTokens)-2].ID != 7 || e.EndTokens[len(e.EndTokens)-1].Sources[0] != "generation_config.json" {
		t.Errorf("end tokens %+v", e.EndTokens)
	}
	if len(e.Generation) < 3 || len(e.KV.Caches) != 2 || e.KV.Caches[0].Window == e.KV.Caches[1].Window {
		t.Errorf("generation %+v, caches %+v", e.Generation, e.KV.Caches)
	}
	var per int64
	for _, c := range e.KV.Caches {
		per += int64(len(c.Layers) * c.Heads * (c.KeyDim + c.ValueDim) * 2)
	}
	if per != e.KV.BytesPerToken {
		t.Errorf("%d bytes a token, the caches take %d", e.KV.BytesPerToken, per)
	}
	nodes := 0
	for i, l := range e.Lines {
		if l.Text == "" || i > 0 && l.Line <= e.Lines[i-1].Line {
			t.Errorf("line %+v", l)
		}
		for _, n := range l.Nodes {
			nodes += n.Count
		}
	}
	if nodes != len(m.Traced.Graph.Nodes) {
		t.Errorf("lines hold %d nodes of %d", nodes, len(m.Traced.Graph.Nodes))
	}
	if err := e.AddProfile(context.Background(), m, 20, 4); err != nil {
		t.Fatal(err)
	}
	checkProfile(t, e)
	if _, err := json.Marshal(e); err != nil {
		t.Error(err)
	}
}

// checkProfile adds up the times of steps and of lines.
func checkProfile(t *testing.T, e *Explanation) {
	t.Helper()
	var steps, lines Times
	for _, g := range e.Groups {
		for _, s := range g.Steps {
			if s.Prefill < 0 || s.Decode < 0 {
				t.Errorf("step %s took %+v", s.Text, s.Times)
			}
			steps.Prefill, steps.Decode = steps.Prefill+s.Prefill, steps.Decode+s.Decode
		}
	}
	rows := Times{} // of Rows steps, which belong to no line
	for _, g := range e.Groups {
		for _, s := range g.Steps {
			if len(s.Lines) == 0 {
				rows.Prefill, rows.Decode = rows.Prefill+s.Prefill, rows.Decode+s.Decode
			}
		}
	}
	for _, l := range e.Lines {
		lines.Prefill, lines.Decode = lines.Prefill+l.Prefill, lines.Decode+l.Decode
	}
	if steps.Prefill <= 0 || steps.Decode <= 0 {
		t.Errorf("steps took %+v", steps)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(a)+1e-12 }
	p := e.Profile
	if !near(steps.Prefill+p.PrefillOutside, p.PrefillSeconds) || !near(steps.Decode+p.DecodeOutside, p.DecodeSeconds) {
		t.Errorf("steps %+v do not add up to %+v", steps, p)
	}
	if !near(steps.Prefill, lines.Prefill+rows.Prefill) || !near(steps.Decode, lines.Decode+rows.Decode) {
		t.Errorf("steps took %+v, lines %+v, rows %+v", steps, lines, rows)
	}
}

// TestProfileOfStages adds up the stages of a cut program.
func TestProfileOfStages(t *testing.T) {
	m := open(t, "llama.hf", model.Options{Profile: true, Cut: []int{1}})
	e, err := Explain(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.AddProfile(context.Background(), m, 8, 2); err != nil {
		t.Fatal(err)
	}
	checkProfile(t, e)
}

func TestNotFused(t *testing.T) {
	m := open(t, "gpt2.hf", model.Options{Unfused: true})
	e, err := Explain(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.NotFused) == 0 || e.NotFused[0].Why == "" || !strings.HasPrefix(e.NotFused[0].Line, "gpt2.star:") {
		t.Errorf("%+v", e.NotFused)
	}
}
