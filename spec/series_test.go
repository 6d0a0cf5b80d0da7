package spec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSeries: a series is whole or nothing, and marks its own numbers and no
// other name.
func TestSeries(t *testing.T) {
	names := []string{"x.1.e.11.w", "x.1.e.011.w", "x.2.e.0.w", "x.1.e.0.b", "a.7.w", "x.1.e..w", "", "x.1.e.99999999999999999999.w", "x.1.e.12.w", "x.1.e.1048576.w", "x.1.e.9w.w"}
	for _, d := range "9876543210" {
		names = append(names, "x.1.e."+string(d)+".w")
	}
	names = append(names, "x.1.e.10.w", "x.1.e.3.w")
	var s seriesTable
	ids := s.take(names, "x.1.e.", ".w", 12)
	if len(ids) != 12 {
		t.Fatalf("%d of 12 tensors found", len(ids))
	}
	for e, id := range ids {
		if want := slices.Index(names, "x.1.e."+[]string{"0", "1", "2", "", "4", "5", "6", "7", "8", "9", "10", "11"}[e]+".w"); e != 3 && int(id) != want {
			t.Errorf("tensor %d is %q", e, names[id])
		}
	}
	if int(ids[3]) != len(names)-1 {
		t.Errorf("of two tensors of one name the last counts, got %d", ids[3])
	}
	s.mark(names, "x.1.e.", ".w", 12)
	for i, name := range names {
		want := slices.ContainsFunc(ids, func(id int32) bool { return names[id] == name })
		if s.used(i) != want {
			t.Errorf("%q: %v, want %v", name, s.used(i), want)
		}
	}
	for _, x := range []struct {
		before, after string
		n             int
	}{{"x.1.e.", ".w", 14}, {"x.1.e.1", ".w", 1}, {"x.1.e.", "9w.w", 1}, {"y.1.e.", ".w", 1}, {"1.2.3.4.5.6.7.", "", 1}, {"x.2.e.", ".w", 2}, {"x.", ".e.0.b", 2}, {"", "", 1}} {
		if ids := s.take(names, x.before, x.after, x.n); ids != nil {
			t.Errorf("%v: found %v", x, ids)
		}
	}
}

// TestSeriesReader: what it remembers of the names before changes nothing.
func TestSeriesReader(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		return []string{"a", "b", "experts", "e1", "7", "07", "12", "3", "1048576", "w_scale_inv", ""}[r.IntN(11)]
	}
	var names []string
	for range 3000 {
		names = append(names, fmt.Sprintf("%s.%d.%s%s.%d.%s", word(), r.IntN(3), word(), word(), r.IntN(12), word()))
	}
	for _, sorted := range []bool{false, true} {
		if sorted {
			slices.Sort(names)
		}
		for k := range 4 {
			reader := seriesReader{k: k, series: map[string]int32{}}
			for _, name := range names {
				from, to, number := numberAt(name, k)
				s, n := reader.read(name)
				if from == to {
					if s >= 0 {
						t.Fatalf("%q: number %d is %d, there is none", name, k, n)
					}
					continue
				}
				if want, ok := reader.series[name[:from]+"#"+name[to:]]; !ok || s != want || n != number {
					t.Fatalf("%q: series %d number %d, want %d and %d", name, s, n, want, number)
				}
			}
		}
	}
}
