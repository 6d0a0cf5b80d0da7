package sample

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func params(change func(*Params)) Params {
	p := Defaults()
	change(&p)
	return p
}

func must(t testing.TB, p Params, vocab int, prompt []int32) *Sampler {
	t.Helper()
	s, err := NewSampler(p, vocab, prompt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The vectors are those of Random123's kat_vectors for philox4x32, 10 rounds.
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		ctr  [4]uint32
		key  [2]uint32
		want [4]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{
			[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := philox(c.ctr, c.key); got != c.want {
			t.Errorf("philox(%x, %x) = %x, want %x", c.ctr, c.key, got, c.want)
		}
	}
}

func TestUniformDependsOnEveryArgument(t *testing.T) {
	seen := map[float64]bool{}
	for _, a := range [][3]int{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1 << 40, 0, 0}, {0, 1 << 40, 0}, {0, 0, 1 << 40}} {
		u := Uniform(uint64(a[0]), a[1], a[2])
		if u < 0 || u >= 1 || seen[u] {
			t.Errorf("Uniform(%v) = %v: outside [0,1) or seen before", a, u)
		}
		seen[u] = true
	}
}

func TestGreedyIsArgmax(t *testing.T) {
	inf := float32(math.Inf(-1))
	for _, c := range []struct {
		logits []float32
		want   int32
	}{
		{[]float32{1, 3, 3, 2}, 1},
		{[]float32{inf, -5, inf}, 1},
		{[]float32{0, float32(math.Copysign(0, -1)), 0}, 0},
		{[]float32{-math.MaxFloat32, inf}, 0},
	} {
		s := must(t, params(func(p *Params) { p.Temperature = 0 }), len(c.logits), nil)
		if r, err := s.Next(c.logits, 0, 0, nil); err != nil || r.ID != c.want {
			t.Errorf("%v: token %d, %v; want %d", c.logits, r.ID, err, c.want)
		}
	}
}

func TestPenaltiesAndBias(t *testing.T) {
	logits := []float32{2, -2, 1, 0.5}
	for _, c := range []struct {
		name           string
		p              Params
		prompt, answer []int32
		want           []float32
	}{
		{"none", Defaults(), []int32{0}, []int32{1}, logits},
		{"repetition", params(func(p *Params) { p.RepetitionPenalty = 2 }), []int32{0, 0}, []int32{1}, []float32{1, -4, 1, 0.5}},
		{"presence", params(func(p *Params) { p.PresencePenalty = 0.5 }), []int32{0}, []int32{1, 1}, []float32{2, -2.5, 1, 0.5}},
		{"frequency", params(func(p *Params) { p.FrequencyPenalty = 0.5 }), []int32{0}, []int32{1, 1}, []float32{2, -3, 1, 0.5}},
		{"window", params(func(p *Params) { p.RepetitionPenalty, p.FrequencyPenalty, p.PenaltyWindow = 2, 1, 2 }),
			[]int32{0, 0, 0}, []int32{1, 2, 2}, []float32{2, -2, -1.5, 0.5}},
		{"window over both", params(func(p *Params) { p.RepetitionPenalty, p.PresencePenalty, p.PenaltyWindow = 2, 1, 3 }),
			[]int32{3, 0}, []int32{0, 1}, []float32{0, -5, 1, 0.5}},
		{"outside the vocabulary", params(func(p *Params) { p.RepetitionPenalty, p.PenaltyWindow = 2, 2 }),
			[]int32{-1, 99, 99, 0}, nil, []float32{1, -2, 1, 0.5}},
		{"bias", params(func(p *Params) { p.LogitBias = map[int32]float32{1: 3, 3: float32(math.Inf(-1))} }),
			nil, nil, []float32{2, 1, 1, float32(math.Inf(-1))}},
		{"overflow", params(func(p *Params) { p.RepetitionPenalty = 1e-300 }), []int32{0}, nil, []float32{math.MaxFloat32, -2, 1, 0.5}},
	} {
		s := must(t, c.p, len(logits), c.prompt)
		for _, id := range c.answer {
			s.Accept(id)
		}
		if got := s.adjust(logits); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if got := s.Fork().adjust(logits); !slices.Equal(got, c.want) {
			t.Errorf("%s: a fork gives %v, want %v", c.name, got, c.want)
		}
	}
}

func TestFilters(t *testing.T) {
	// Probabilities 0.4, 0.3, 0.15, 0.1, 0.05; the entropy is 1.392 nats, so by
	// distance of the surprise from it the order is 1, 0, 2, 3, 4.
	probs := []float64{0.05, 0.3, 0.1, 0.4, 0.15}
	logits := make([]float32, len(probs))
	for i, q := range probs {
		logits[i] = float32(math.Log(q)) + 3
	}
	for _, c := range []struct {
		name string
		p    Params
		want []int32
	}{
		{"top-k", params(func(p *Params) { p.TopK = 2 }), []int32{1, 3}},
		{"top-k above the vocabulary", params(func(p *Params) { p.TopK = 50 }), []int32{0, 1, 2, 3, 4}},
		{"top-p", params(func(p *Params) { p.TopP = 0.71 }), []int32{1, 3, 4}},
		{"tiny top-p", params(func(p *Params) { p.TopP = 5e-324 }), []int32{3}},
		{"top-p near 1", params(func(p *Params) { p.TopP = 1 - 1e-16 }), []int32{0, 1, 2, 3, 4}},
		{"min-p", params(func(p *Params) { p.MinP = 0.3 }), []int32{1, 3, 4}},
		{"min-p 1", params(func(p *Params) { p.MinP = 1 }), []int32{3}},
		{"typical", params(func(p *Params) { p.TypicalP = 0.2 }), []int32{1}},
		{"typical, wider", params(func(p *Params) { p.TypicalP = 0.75 }), []int32{1, 3, 4}},
		{"top-p of what top-k left", params(func(p *Params) { p.TopK, p.TopP = 2, 0.57 }), []int32{3}},
	} {
		var got []int32
		for _, x := range new(Scratch).filter(logits, nil, logits[3], &c.p) {
			got = append(got, x.id)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: kept %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTiesKeepTheLowerIds(t *testing.T) {
	s := must(t, params(func(p *Params) { p.TopK = 3 }), 1000, nil)
	logits := make([]float32, 1000)
	logits[7] = float32(math.Copysign(0, -1))
	for pos := range 200 {
		r, err := s.Next(logits, pos, 0, nil)
		if err != nil || r.ID > 2 {
			t.Fatalf("token %d, %v; want one of 0 to 2", r.ID, err)
		}
	}
}

func TestMaskAndErrors(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	only2 := NewMask(4)
	only2.Allow(2)
	for _, temperature := range []float64{0, 1} {
		s := must(t, params(func(p *Params) { p.Temperature = temperature }), 4, nil)
		if r, err := s.Next([]float32{9, 9, -9, 9}, 0, 0, only2); err != nil || r.ID != 2 {
			t.Errorf("mask: token %d, %v; want 2", r.ID, err)
		}
		for _, c := range []struct {
			logits []float32
			mask   Mask
			want   error
			index  int
		}{
			{[]float32{0, nan, inf, 0}, nil, ErrNonFinite, 1},
			{[]float32{0, 1, 2, inf}, only2, ErrNonFinite, 3},
			{[]float32{nan, 1, 2, 3}, nil, ErrNonFinite, 0},
			{[]float32{-inf, -inf, -inf, -inf}, nil, ErrNoCandidate, -1},
			{[]float32{1, 1, -inf, 1}, only2, ErrNoCandidate, -1},
			{[]float32{1, 1, 1, 1}, NewMask(4), ErrNoCandidate, -1},
		} {
			_, err := s.Next(c.logits, 0, 0, c.mask)
			if !errors.Is(err, c.want) {
				t.Errorf("%v: %v, want %v", c.logits, err, c.want)
			}
			if nf := new(NonFiniteError); errors.As(err, &nf) && nf.Index != c.index {
				t.Errorf("%v: index %d, want %d", c.logits, nf.Index, c.index)
			}
		}
		if _, err := s.Next(make([]float32, 5), 0, 0, nil); err == nil {
			t.Error("a row of the wrong length is accepted")
		}
		if _, err := s.Next(make([]float32, 4), 0, 0, Mask{}); err == nil {
			t.Error("a mask of the wrong length is accepted")
		}
	}
}

func TestLogprobsAreOfTheRawDistribution(t *testing.T) {
	logits := []float32{float32(math.Log(0.2)), float32(math.Log(0.5)), float32(math.Log(0.3)), float32(math.Inf(-1))}
	p := Params{Temperature: 0, TopP: 1, TypicalP: 1, TailFree: 1, RepetitionPenalty: 1, TopLogprobs: 3, LogitBias: map[int32]float32{0: 50}}
	r, err := must(t, p, 4, nil).Next(logits, 0, 0, nil)
	if err != nil || r.ID != 0 || math.Abs(float64(r.Logprob)-math.Log(0.2)) > 1e-6 {
		t.Fatalf("%+v, %v", r, err)
	}
	want := []int32{1, 2, 0}
	for i, x := range r.Top {
		if x.ID != want[i] || math.Abs(float64(x.Logprob-logits[x.ID])) > 1e-6 {
			t.Errorf("top %d is %+v", i, x)
		}
	}
	if len(r.Top) != 3 {
		t.Errorf("%d alternatives, want 3", len(r.Top))
	}
}

// TestGoldenDraws pins the tokens: a change here changes every seeded answer.
func TestGoldenDraws(t *testing.T) {
	logits := make([]float32, 100)
	for i := range logits {
		logits[i] = float32((i*37)%101) / 20
	}
	for _, c := range []struct {
		name string
		p    Params
		want []int32
	}{
		{"plain", params(func(p *Params) { p.Seed = 42 }), goldenPlain},
		{"usual", params(func(p *Params) { p.Seed, p.TopK, p.TopP, p.MinP, p.Temperature = 7, 40, 0.9, 0.05, 0.7 }), goldenUsual},
		{"typical", params(func(p *Params) { p.Seed, p.TypicalP, p.RepetitionPenalty = 1<<63+5, 0.6, 1.3 }), goldenTypical},
	} {
		s := must(t, c.p, len(logits), nil)
		var got []int32
		for pos := range len(c.want) {
			r, err := s.Next(logits, pos, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.Accept(r.ID)
			got = append(got, r.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestDistribution holds 60,000 draws to the probabilities by Pearson's
// chi-square at a significance of about 1e-4 (fixed seeds, so it never flakes).
func TestDistribution(t *testing.T) {
	const draws = 60000
	logits := []float32{0, 1, 2, -1, 0.5, 3, -2, 1.5}
	for _, c := range []struct {
		name    string
		p       Params
		allowed []int32 // tokens that stay
	}{
		{"temperature 1", Defaults(), []int32{0, 1, 2, 3, 4, 5, 6, 7}},
		{"temperature 2", params(func(p *Params) { p.Temperature, p.Seed = 2, 9 }), []int32{0, 1, 2, 3, 4, 5, 6, 7}},
		{"top-k 3", params(func(p *Params) { p.TopK, p.Temperature, p.Seed = 3, 1.5, 3 }), []int32{2, 5, 7}},
		{"min-p", params(func(p *Params) { p.MinP, p.Temperature, p.Seed = 0.1, 0.5, 4 }), []int32{1, 2, 5, 7}},
	} {
		s := must(t, c.p, len(logits), nil)
		counts := map[int32]int{}
		for pos := range draws / 2 {
			for choice := range 2 {
				r, err := s.Next(logits, pos, choice, nil)
				if err != nil {
					t.Fatal(err)
				}
				counts[r.ID]++
			}
		}
		wide := make([]float64, len(logits))
		for i, l := range logits {
			wide[i] = float64(l)
		}
		chi, total := 0.0, 0
		for i, q := range refSoftmax(c.allowed, wide, c.p.Temperature) {
			n := counts[c.allowed[i]]
			d := float64(n) - q*draws
			chi += d * d / (q * draws)
			total += n
		}
		// The 1-1e-4 quantiles of chi-square for 2, 3 and 7 degrees of freedom.
		limit := map[int]float64{2: 18.4, 3: 21.1, 7: 29.9}[len(c.allowed)-1]
		if chi > limit || total != draws {
			t.Errorf("%s: chi-square %.1f above %.1f, or %d of %d draws fell outside", c.name, chi, limit, draws-total, draws)
		}
	}
}

func randomCase(r *rand.Rand) (logits []float32, p Params, prompt []int32, mask Mask) {
	n := 1 + r.IntN(300)
	logits = make([]float32, n)
	spread := math.Exp(r.NormFloat64())
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * spread)
		if r.IntN(20) == 0 {
			logits[i] = float32(math.Inf(-1))
		}
		if r.IntN(4) == 0 {
			logits[i] = float32(math.Round(float64(logits[i]))) // ties
		}
	}
	p = Defaults()
	p.Seed = r.Uint64()
	p.Temperature = []float64{0, 0.3, 1, 1.7}[r.IntN(4)]
	pick := func(f *float64, v float64) {
		if r.IntN(2) == 0 {
			*f = v
		}
	}
	pick(&p.TopP, 1-r.Float64())
	pick(&p.MinP, r.Float64()*r.Float64())
	pick(&p.TypicalP, 1-r.Float64())
	pick(&p.RepetitionPenalty, 0.5+r.Float64())
	pick(&p.FrequencyPenalty, r.Float64())
	pick(&p.PresencePenalty, r.Float64()*4-2)
	if r.IntN(2) == 0 {
		p.TopK = r.IntN(n + 5)
	}
	p.PenaltyWindow = r.IntN(2) * r.IntN(20)
	if r.IntN(3) == 0 {
		p.LogitBias = map[int32]float32{r.Int32N(int32(n)): float32(r.NormFloat64())}
	}
	for range r.IntN(10) {
		prompt = append(prompt, r.Int32N(int32(n)))
	}
	if r.IntN(3) == 0 {
		mask = NewMask(n)
		for i := range n {
			if r.IntN(3) > 0 {
				mask.Allow(int32(i))
			}
		}
	}
	return logits, p, prompt, mask
}

// FuzzAgainstReference holds the linear-time sampler against the one that sorts.
func FuzzAgainstReference(f *testing.F) {
	for seed := range uint64(400) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		logits, p, prompt, mask := randomCase(rand.New(rand.NewPCG(seed, 1)))
		s := must(t, p, len(logits), prompt)
		var answer []int32
		for pos := range 20 {
			r, err := s.Next(logits, pos, 0, mask)
			want, near := refNext(logits, p, prompt, answer, pos, 0, mask)
			if want < 0 {
				if !errors.Is(err, ErrNoCandidate) {
					t.Fatalf("nothing is allowed, but: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.ID != want && !near {
				t.Fatalf("position %d: token %d, want %d (%+v)", pos, r.ID, want, p)
			}
			s.Accept(r.ID)
			answer = append(answer, r.ID)
		}
	})
}

// FuzzHostileLogits gives Next any bits at all: it must not panic, and must
// choose a token that is allowed.
func FuzzHostileLogits(f *testing.F) {
	f.Add([]byte{0, 0, 0x80, 0x7f, 0, 0, 0x80, 0xff}, 0.9, 0.1, 0.5, 2.0, 3)
	f.Add([]byte{0xff, 0xff, 0x7f, 0x7f, 0xff, 0xff, 0x7f, 0xff, 1, 0, 0, 0}, 0.9, 0.1, 0.5, 1e-308, 0)
	f.Fuzz(func(t *testing.T, data []byte, topP, minP, typical, temperature float64, topK int) {
		logits := make([]float32, len(data)/4)
		for i := range logits {
			logits[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		p := Params{Temperature: temperature, TopP: topP, MinP: minP, TypicalP: typical, TailFree: 1, TopK: topK, RepetitionPenalty: 1.1}
		p.TopLogprobs = 2
		s, err := NewSampler(p, len(logits), []int32{0})
		if err != nil {
			return
		}
		r, err := s.Next(logits, 3, 0, nil)
		if err != nil {
			return
		}
		if math.IsInf(float64(logits[r.ID]), -1) || math.IsNaN(float64(r.Logprob)) {
			t.Fatalf("chose token %d with logit %v and log-probability %v", r.ID, logits[r.ID], r.Logprob)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	logits := make([]float32, 5000)
	for i := range logits {
		logits[i] = float32(i%173) / 10
	}
	p := params(func(p *Params) {
		p.TopP, p.MinP, p.TypicalP, p.TopK, p.TopLogprobs = 0.9, 0.01, 0.95, 500, 5
		p.RepetitionPenalty, p.PenaltyWindow = 1.1, 64
		p.LogitBias = map[int32]float32{3: 1}
	})
	s := must(t, p, len(logits), nil)
	pos := 0
	step := func() {
		r, err := s.Next(logits, pos, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Accept(r.ID)
		pos++
	}
	for range 500 {
		step()
	}
	if n := testing.AllocsPerRun(200, step); n != 0 {
		t.Errorf("%v allocations a token", n)
	}
}

func benchmarkNext(b *testing.B, p Params) {
	r := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 262144)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	s := must(b, p, len(logits), nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Next(logits, i, 0, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGreedy(b *testing.B) { benchmarkNext(b, params(func(p *Params) { p.Temperature = 0 })) }
func BenchmarkPlain(b *testing.B)  { benchmarkNext(b, Defaults()) }
func BenchmarkTopP(b *testing.B)   { benchmarkNext(b, params(func(p *Params) { p.TopP = 0.95 })) }
func BenchmarkUsual(b *testing.B) {
	benchmarkNext(b, params(func(p *Params) { p.TopP, p.TopK, p.MinP = 0.95, 40, 0.05 }))
}
func BenchmarkTypical(b *testing.B) { benchmarkNext(b, params(func(p *Params) { p.TypicalP = 0.9 })) }
func BenchmarkLogprobs(b *testing.B) {
	benchmarkNext(b, params(func(p *Params) { p.TopLogprobs = 20 }))
}
