package sample

import (
	"math"
	"slices"
	"testing"
)

// allowed lists the tokens below 8 that rules let follow.
func allowedBy(r Rules, said ...int32) (ids []int32) {
	logits := make([]float32, 8)
	r.apply(logits, said)
	for id, v := range logits {
		if v == 0 {
			ids = append(ids, int32(id))
		}
	}
	return ids
}

func TestRules(t *testing.T) {
	all := []int32{0, 1, 2, 3, 4, 5, 6, 7}
	but := func(ids ...int32) []int32 {
		return slices.DeleteFunc(slices.Clone(all), func(id int32) bool { return slices.Contains(ids, id) })
	}
	for _, c := range []struct {
		name string
		r    Rules
		said []int32
		want []int32
	}{
		{"none", Rules{}, []int32{1, 2}, all},
		{"an end too early", Rules{End: []int32{1, 3}, MinLength: 3}, []int32{1, 2}, but(1, 3)},
		{"an end in time", Rules{End: []int32{1, 3}, MinLength: 3}, []int32{1, 2, 4}, all},
		{"no pair twice", Rules{NoRepeat: 2}, []int32{1, 2, 1, 3, 1}, but(2, 3)},
		{"no token twice", Rules{NoRepeat: 1}, []int32{1, 2, 1}, but(1, 2)},
		{"too short to repeat", Rules{NoRepeat: 3}, []int32{1}, all},
		{"exactly long enough", Rules{NoRepeat: 3}, []int32{1, 1}, all},
		{"a run of itself", Rules{NoRepeat: 3}, []int32{1, 1, 1}, but(1)},
		{"no triple of the source", Rules{Source: []int32{5, 1, 2, 6, 1, 2, 7}, NoRepeatSource: 3}, []int32{0, 1, 2}, but(6, 7)},
		{"a bad word", Rules{Bad: [][]int32{{4}, {1, 2, 3}, {2, 5, 6}}}, []int32{1, 2}, but(3, 4)},
		{"a bad word longer than what was said", Rules{Bad: [][]int32{{1, 2, 3, 4}}}, []int32{2}, all},
		{"the last", Rules{MaxLength: 4, Last: []int32{2}, End: []int32{2}, MinLength: 9}, []int32{7, 1, 3}, []int32{2}},
		{"not yet the last", Rules{MaxLength: 5, Last: []int32{2}}, []int32{7, 1, 3}, all},
		{"an end is no bad word", Rules{Bad: [][]int32{{3}, {4}, {1, 3}}, End: []int32{3}}, []int32{2}, but(4)},
		{"suppressed, the last too", Rules{MaxLength: 3, Last: []int32{2, 5}, Suppress: []int32{2}}, []int32{7, 1}, []int32{5}},
		{"suppressed at first", Rules{SuppressFirst: []int32{2, 5}, FirstAt: 2}, []int32{7, 1}, but(2, 5)},
		{"not suppressed later", Rules{SuppressFirst: []int32{2, 5}, FirstAt: 2}, []int32{7, 1, 1}, all},
		{"ids beyond the vocabulary", Rules{Bad: [][]int32{{99}, {-1}}, Last: []int32{99}}, nil, all},
	} {
		if got := allowedBy(c.r, c.said...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestSamplerRules draws greedily under rules, in a fork too.
func TestSamplerRules(t *testing.T) {
	p := Defaults()
	p.Temperature, p.Rules = 0, &Rules{NoRepeat: 2, End: []int32{0}, MinLength: 4}
	s, err := NewSampler(p, 3, []int32{2})
	if err != nil {
		t.Fatal(err)
	}
	logits := []float32{3, 2, 1}
	next := func(s *Sampler) int32 {
		r, err := s.Next(logits, 0, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Accept(r.ID)
		return r.ID
	}
	// 2 | 1 (0 ends too early), 1, 2 (not 1 1 again), 0 (2 1 was said; the end is open)
	var got []int32
	for range 3 {
		got = append(got, next(s))
	}
	f := s.Fork()
	if got = append(got, next(s)); !slices.Equal(got, []int32{1, 1, 2, 0}) {
		t.Errorf("%v", got)
	}
	if id := next(f); id != 0 {
		t.Errorf("the fork says %d", id)
	}
	if logits[0] != 3 {
		t.Error("the model's logits were changed")
	}
}

// TestRulesOfValues: what raises and lowers logits, before the penalties and after.
func TestRulesOfValues(t *testing.T) {
	inf := float32(math.Inf(-1))
	for _, c := range []struct {
		name  string
		r     Rules
		said  []int32
		first bool // before the penalties
		want  []float32
	}{
		{"bias", Rules{Bias: []SequenceBias{{[]int32{1}, 2}, {[]int32{7, 2}, -1}, {[]int32{6, 3}, 9}, {[]int32{99}, 1}}}, []int32{7}, true, []float32{-1, 4, 1, -4}},
		{"lifted", Rules{Lifted: []int32{0, 1, 99}, Lift: 2}, nil, true, []float32{-0.5, 4, 2, -4}},
		{"no decay yet", Rules{Decay: 2, DecayFrom: 1, End: []int32{0, 1}}, []int32{7}, false, []float32{-1, 2, 2, -4}},
		{"decay", Rules{Decay: 2, DecayFrom: 1, End: []int32{0, 1, 0, 99}}, []int32{7, 7, 7}, false, []float32{2, 8, 2, -4}},
		{"no decay of what is forbidden", Rules{Decay: 2, End: []int32{0, 3}, MinLength: 3}, []int32{7, 7}, false, []float32{inf, 2, 2, inf}},
		{"the last are alike", Rules{MaxLength: 2, Last: []int32{1, 3}}, []int32{7}, false, []float32{inf, 0, inf, 0}},
	} {
		logits := []float32{-1, 2, 2, -4}
		if c.first {
			c.r.before(logits, c.said)
		} else {
			c.r.apply(logits, c.said)
		}
		if !slices.Equal(logits, c.want) {
			t.Errorf("%s: %v, want %v", c.name, logits, c.want)
		}
	}
	if !(&Rules{End: []int32{1}, Last: []int32{2}, MaxLength: 0, FirstAt: 3, Lift: 1, Decay: 1}).Empty() {
		t.Error("nothing is restricted, and that is not seen")
	}
}
