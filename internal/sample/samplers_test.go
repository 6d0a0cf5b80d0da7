package sample

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// samplers is testdata/samplers.json, which scripts/reference/samplers.py writes.
type samplers struct {
	Rows    [][]float32
	Typical []struct {
		Row  int
		P    float64
		Kept []int32
	}
	TailFree []struct {
		Row  int
		Z    float64
		Kept []int32
	} `json:"tail_free"`
	Mirostat []struct {
		Version  int
		Tau, Eta float64
		Steps    []struct {
			Kept   []int32
			Chosen int32
		}
	}
	FSD []struct {
		Prompt                   []int32
		Alpha, Beta, Temperature float64
		K, N, Pool               int
		Tokens                   []int32
	}
	Pooled []struct {
		Row         int
		Pool        int
		Temperature float64
		TopP        float64 `json:"top_p"`
		MaxK        int     `json:"max_k"`
		MinP        float64 `json:"min_p"`
		Kept        []int32
	}
}

func readSamplers(t *testing.T) (g samplers) {
	t.Helper()
	raw, err := os.ReadFile("testdata/samplers.json")
	if err == nil {
		err = json.Unmarshal(raw, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func idsOf(c []cand) (ids []int32) {
	for _, x := range c {
		ids = append(ids, x.id)
	}
	return ids
}

// kept are the tokens that the filters leave of a row.
func kept(t *testing.T, p Params, row []float32) []int32 {
	t.Helper()
	s := must(t, p, len(row), nil)
	top, _ := argmax(row)
	return idsOf(s.pick(row, top, 0, 0, nil))
}

// TestFiltersAgainstOthers holds typical sampling against llama.cpp, tail-free
// sampling against its formula, and the chain over a pool against the C++
// Inferflow's order.
func TestFiltersAgainstOthers(t *testing.T) {
	g := readSamplers(t)
	for _, c := range g.Typical {
		if got := kept(t, params(func(p *Params) { p.TypicalP = c.P }), g.Rows[c.Row]); !slices.Equal(got, c.Kept) {
			t.Errorf("typical %g of row %d keeps %v, want %v", c.P, c.Row, got, c.Kept)
		}
	}
	for _, c := range g.TailFree {
		if got := kept(t, params(func(p *Params) { p.TailFree = c.Z }), g.Rows[c.Row]); !slices.Equal(got, c.Kept) {
			t.Errorf("tail-free %g of row %d keeps %v, want %v", c.Z, c.Row, got, c.Kept)
		}
	}
	for _, c := range g.Pooled {
		p := params(func(p *Params) {
			p.Pool, p.Temperature, p.TopP, p.TopK, p.MinP = c.Pool, c.Temperature, c.TopP, c.MaxK, c.MinP
		})
		if got := kept(t, p, g.Rows[c.Row]); !slices.Equal(got, c.Kept) {
			t.Errorf("%+v: keeps %v", c, got)
		}
	}
}

// TestMirostatAgainstLlamaCpp follows its choices through both versions: the
// bound moves as there if the same tokens are kept at every step.
func TestMirostatAgainstLlamaCpp(t *testing.T) {
	g := readSamplers(t)
	for _, c := range g.Mirostat {
		s := must(t, params(func(p *Params) { p.Mirostat = Mirostat{c.Version, c.Tau, c.Eta} }), len(g.Rows[0]), nil)
		for i, step := range c.Steps {
			row := g.Rows[i%len(g.Rows)]
			top, _ := argmax(row)
			list, total := s.mirostat(row, nil, row[top], 1)
			if got := idsOf(list); !slices.Equal(got, step.Kept) {
				t.Errorf("version %d, tau %g, step %d (mu %g): kept %d tokens, want %d", c.Version, c.Tau, i, s.mu, len(got), len(step.Kept))
				break
			}
			s.observe(surprise(list, step.Chosen, total))
		}
	}
}

// TestMirostatSteers draws a long answer: its mean surprise comes near the target.
func TestMirostatSteers(t *testing.T) {
	g := readSamplers(t)
	for _, m := range []Mirostat{{2, 3, 0.1}, {2, 1.5, 0.2}, {1, 3, 0.1}} {
		s := must(t, params(func(p *Params) { p.Mirostat, p.Seed = m, 5 }), len(g.Rows[0]), nil)
		sum, n := 0.0, 4000
		for pos := range n {
			r, err := s.Next(g.Rows[[]int{1, 2, 5}[pos%3]], pos, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			sum += s.last.bits
			s.Accept(r.ID)
		}
		if mean := sum / float64(n); math.Abs(mean-m.Tau) > 0.25 {
			t.Errorf("%+v: the mean surprise is %.2f bits", m, mean)
		}
	}
}

// TestFSDAgainstAuthors holds the choices against the authors' tables of n-grams.
func TestFSDAgainstAuthors(t *testing.T) {
	g := readSamplers(t)
	for i, c := range g.FSD {
		p := params(func(p *Params) {
			p.FSD, p.Pool, p.Temperature = FSD{Alpha: c.Alpha, K: c.K, N: c.N, Beta: c.Beta}, c.Pool, c.Temperature
		})
		s := must(t, p, len(g.Rows[0]), c.Prompt)
		for pos, want := range c.Tokens {
			r, err := s.Next(g.Rows[pos%3], len(c.Prompt)+pos, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.ID != want {
				t.Errorf("case %d, step %d: token %d, want %d", i, pos, r.ID, want)
				break
			}
			s.Accept(r.ID)
		}
	}
}

// TestRandomFSD draws some of the first tokens, and none of those behind them.
func TestRandomFSD(t *testing.T) {
	row := readSamplers(t).Rows[1]
	p := params(func(p *Params) { p.FSD.Alpha, p.FSD.Random, p.Pool, p.TopP, p.TopK = 0.5, 10, 50, 0.93, 8 })
	first, behind := map[int32]bool{}, map[int32]bool{}
	for seed := range uint64(40) {
		p.Seed = seed
		s := must(t, p, len(row), []int32{1, 2, 3})
		for pos := range 12 {
			r, err := s.Next(row, 3+pos, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			switch pos {
			case 0:
				first[r.ID] = true
			case 11:
				behind[r.ID] = true
			}
			s.Accept(r.ID)
			if pos == 10 { // the same text for all
				s.said = append(s.said[:0], 1, 2, 3)
			}
		}
	}
	if len(first) < 3 || len(first) > 8 || len(behind) != 1 {
		t.Errorf("%d first tokens, %d behind the random ones", len(first), len(behind))
	}
}

// TestPutOff puts an end off as often as it may, under every strategy.
func TestPutOff(t *testing.T) {
	row := []float32{1, 9, 2, 8.5}
	for name, change := range map[string]func(*Params){
		"greedy":   func(p *Params) { p.Temperature = 0 },
		"plain":    func(p *Params) { p.LogitBias = map[int32]float32{1: 90} },
		"top-p":    func(p *Params) { p.TopP = 0.99 },
		"min-p":    func(p *Params) { p.MinP = 0.01 },
		"mirostat": func(p *Params) { p.Mirostat.Version = 2 },
		"fsd":      func(p *Params) { p.FSD.Alpha = 1e-9 },
		"pool":     func(p *Params) { p.Pool, p.Temperature = 3, 0.1 },
	} {
		s := must(t, params(func(p *Params) { p.PutOff, p.End = 2, []int32{1}; change(p) }), len(row), nil)
		ends := 0
		for pos := 0; ends == 0 && pos < 200; pos++ {
			s.last = drawn{id: -1}
			r, err := s.Next(row, pos, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			off := s.last.putOff
			if off && r.ID != 3 {
				t.Errorf("%s: token %d in the end's place", name, r.ID)
			}
			s.Accept(r.ID)
			if r.ID == 1 {
				ends++
				if s.putOff != 2 {
					t.Errorf("%s: it ends after %d were put off", name, s.putOff)
				}
			}
		}
		if ends == 0 {
			t.Errorf("%s: it never ends", name)
		}
	}
	only := must(t, params(func(p *Params) { p.PutOff, p.End, p.TopK = 2, []int32{1}, 1 }), len(row), nil)
	if r, err := only.Next(row, 0, 0, nil); err != nil || r.ID != 1 {
		t.Errorf("the only candidate is the end, and token %d came, %v", r.ID, err)
	}
}

// TestForksKeepState: a fork goes on as its origin would.
func TestForksKeepState(t *testing.T) {
	g := readSamplers(t)
	for name, change := range map[string]func(*Params){
		"mirostat": func(p *Params) { p.Mirostat = Mirostat{2, 2, 1} },
		"fsd":      func(p *Params) { p.FSD.Alpha = 0.6 },
		"put off":  func(p *Params) { p.PutOff, p.End = 3, []int32{1, 2, 3, 4, 5, 6, 7, 8} },
	} {
		s := must(t, params(change), len(g.Rows[0]), []int32{1, 2, 3})
		var f *Sampler
		for pos := range 40 {
			if pos == 20 {
				f = s.Fork()
			}
			r, err := s.Next(g.Rows[pos%5], pos, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.Accept(r.ID)
			if f == nil {
				continue
			}
			x, err := f.Next(g.Rows[pos%5], pos, 0, nil)
			if err != nil || x.ID != r.ID {
				t.Fatalf("%s, position %d: %d and %d, %v", name, pos, r.ID, x.ID, err)
			}
			f.Accept(x.ID)
		}
	}
}

// TestStrategiesAllocateNothing holds for each strategy that keeps state.
func TestStrategiesAllocateNothing(t *testing.T) {
	row := make([]float32, 5000)
	for i := range row {
		row[i] = float32(i*7919%1000) / 50
	}
	for name, change := range map[string]func(*Params){
		"tail-free":   func(p *Params) { p.TailFree = 0.9 },
		"mirostat":    func(p *Params) { p.Mirostat.Version = 1 },
		"mirostat 2":  func(p *Params) { p.Mirostat.Version = 2 },
		"pool":        func(p *Params) { p.Pool, p.Temperature, p.TopP = 50, 0.7, 0.9 },
		"fsd":         func(p *Params) { p.FSD.Alpha = 0.5 },
		"fsd, pooled": func(p *Params) { p.FSD.Alpha, p.FSD.Random, p.Pool, p.PutOff, p.End = 0.5, 300, 50, 9, []int32{3} },
	} {
		s := must(t, params(change), len(row), nil)
		pos := 0
		step := func() {
			r, err := s.Next(row, pos, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.Accept(r.ID)
			pos++
		}
		for range 50 {
			step()
		}
		if n := testing.AllocsPerRun(200, step); n != 0 {
			t.Errorf("%s: %v allocations a token", name, n)
		}
	}
}

// FuzzStrategies gives the strategies any numbers at all: no panic, and a token
// that is allowed.
func FuzzStrategies(f *testing.F) {
	f.Add([]byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40}, 5.0, 0.1, 0.5, 1.0, 0.9, 6, 2)
	f.Add([]byte{0xff, 0xff, 0x7f, 0x7f, 0xff, 0xff, 0x7f, 0xff, 1, 0, 0, 0}, 0.0, 100.0, 1.0, 1e-308, 0.1, 1, 1)
	f.Add([]byte{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f}, 100.0, 100.0, 0.0, 1e308, 1.0, 1024, 1)
	f.Fuzz(func(t *testing.T, data []byte, tau, eta, alpha, temperature, z float64, k, version int) {
		if len(data) > 1<<14 {
			return
		}
		row := make([]float32, len(data)/4)
		for i := range row {
			row[i] = math.Float32frombits(uint32(data[4*i]) | uint32(data[4*i+1])<<8 | uint32(data[4*i+2])<<16 | uint32(data[4*i+3])<<24)
		}
		p := Defaults()
		p.Temperature, p.TailFree, p.Pool, p.PutOff, p.End = temperature, z, k/2, 3, []int32{0}
		p.Mirostat = Mirostat{version, tau, eta}
		p.FSD = FSD{Alpha: alpha, K: k, N: 1 + k%16, Beta: z, Random: k % 3}
		s, err := NewSampler(p, len(row), []int32{0, 0, 1})
		if err != nil {
			return
		}
		for pos := range 6 {
			r, err := s.Next(row, pos, 0, nil)
			if err != nil {
				return
			}
			if math.IsInf(float64(row[r.ID]), -1) || math.IsNaN(s.mu) {
				t.Fatalf("chose token %d with logit %v, the bound is %v", r.ID, row[r.ID], s.mu)
			}
			s.Accept(r.ID)
		}
	})
}

func BenchmarkTailFree(b *testing.B) { benchmarkNext(b, params(func(p *Params) { p.TailFree = 0.95 })) }
func BenchmarkMirostat(b *testing.B) {
	benchmarkNext(b, params(func(p *Params) { p.Mirostat.Version = 2 }))
}
func BenchmarkFSD(b *testing.B) { benchmarkNext(b, params(func(p *Params) { p.FSD.Alpha = 0.5 })) }
