package pattern

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

type golden struct {
	Patterns []string
	Texts    []string
	Cuts     [][][]int
}

func readGolden(t testing.TB) *golden {
	t.Helper()
	f, err := os.Open("testdata/golden.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{}
	if err := json.NewDecoder(z).Decode(g); err != nil {
		t.Fatal(err)
	}
	return g
}

// cuts returns the ends, in runes, of matches and of what lies between them.
func cuts(p *Pattern, text string) (ends []int) {
	done := 0
	add := func(end int) {
		if end > done {
			ends = append(ends, utf8.RuneCountInString(text[:end]))
			done = end
		}
	}
	p.Each(text, func(start, end int) {
		add(start)
		add(end)
	})
	add(len(text))
	return ends
}

func TestOniguruma(t *testing.T) {
	g := readGolden(t)
	for i, src := range g.Patterns {
		p, err := Compile(src)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		bad := 0
		for j, text := range g.Texts {
			if got := cuts(p, text); !slices.Equal(got, g.Cuts[i][j]) {
				t.Errorf("%s\n%q:\n got %v\nwant %v", src, text, got, g.Cuts[i][j])
				if bad++; bad > 2 {
					break
				}
			}
		}
	}
}

// TestMemo holds the remembering matcher against the plain one.
func TestMemo(t *testing.T) {
	g := readGolden(t)
	for _, src := range g.Patterns {
		p, err := Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range g.Texts {
			s := searcher{p: p, text: text}
			m := searcher{p: p, text: text, failed: map[state]struct{}{}}
			for pos := 0; pos <= len(text); pos += s.width(pos) {
				end, ok, long := s.run(pos, 1<<16)
				m.trail = m.trail[:0]
				mEnd, mOK, _ := m.run(pos, -1)
				if mOK {
					for _, st := range m.trail {
						delete(m.failed, st)
					}
				}
				if !long && (end != mEnd || ok != mOK) {
					t.Fatalf("%s on %q at %d: plain %d %t, remembering %d %t", src, text, pos, end, ok, mEnd, mOK)
				}
			}
		}
	}
}

// checkScanner holds a hand-written matcher against the general one.
func checkScanner(t *testing.T, p *Pattern, text string) {
	t.Helper()
	s := searcher{p: p, text: text}
	for pos := 0; pos < len(text); pos += s.width(pos) {
		want, ok := s.at(pos)
		if !ok && !p.covers {
			want, ok = pos, true
		}
		if got := p.fast(text, pos); !ok || got != want {
			t.Fatalf("%s\non %q at %d: scanner %d, general %d (%t)", p.src, text, pos, got, want, ok)
		}
	}
}

// scanned are the patterns with a scanner.
func scanned(t testing.TB, g *golden) (list []*Pattern) {
	for _, src := range append(g.Patterns, srcWords+`\p{N}+`+srcOther, srcParts, `\p{N}{1,3}`, `\p{N}{2,3}`, `\d`, `[\p{Han}a-z]+`) {
		p, err := Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		if p.fast != nil {
			list = append(list, p)
		}
	}
	if len(list) < 12 {
		t.Fatalf("%d of the golden patterns have a scanner", len(list))
	}
	return list
}

func TestScanners(t *testing.T) {
	g := readGolden(t)
	for _, p := range scanned(t, g) {
		for _, text := range g.Texts {
			checkScanner(t, p, text)
		}
	}
}

func FuzzScanners(f *testing.F) {
	g := readGolden(f)
	for _, text := range g.Texts {
		f.Add(text)
	}
	list := scanned(f, g)
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range list {
			checkScanner(t, p, text)
		}
	})
}

// TestLinear runs patterns that take quadratic or exponential time in a matcher that only backtracks.
func TestLinear(t *testing.T) {
	const n = 30_000
	for _, c := range []struct{ pattern, text string }{
		{`(a*)*b`, strings.Repeat("a", n)},
		{`(a|a)*b`, strings.Repeat("a", n)},
		{`a+b`, strings.Repeat("a", n)},
		{`a*a*a*a*b`, strings.Repeat("a", n)},
		{`(?:\p{L}+\s*)+[.!?]`, strings.Repeat("word ", n/5)},
		{`\d{1,3}(?=(?:\d{3})*\b)`, strings.Repeat("7", n)},
		{`(?=(\d{3})+(?!\d))`, strings.Repeat("7", n)},
		{`\s+(?!\S)|\s*[\r\n]+`, strings.Repeat(" ", n) + "x"},
		{`\s*[\r\n]+|\S`, strings.Repeat(" ", n)},
		{`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lo}]*[\p{Ll}\p{Lo}]+|x`, strings.Repeat("A", n)},
		{`(?:a{0,50}){0,50}c`, strings.Repeat("a", 500)},
		{`.*?b`, strings.Repeat("a", n)},
	} {
		p, err := Compile(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		matches, start := 0, time.Now()
		p.Each(c.text, func(int, int) { matches++ })
		t.Logf("%s: %d matches, %v", c.pattern, matches, time.Since(start))
	}
}

func TestRefused(t *testing.T) {
	for _, src := range []string{
		`(`, `)`, `[`, `[a`, `a**b(`, `*a`, `a{5,2}`, `a{9999}`, `\p{Nonsense}`, `\p{L`, `(?<name>a)`, `(?>ab)`, `(?:ab)++`, `\1`, `(a)\k<1>`, `\`, `[z-a]`, `(?<=ab)c`, `\x{110000}`, `[[:nope:]]`,
		`(?=a)*`, strings.Repeat("(", 100) + strings.Repeat(")", 100), strings.Repeat("[", 100), "\xff", strings.Repeat("a", maxPattern+1), `(((a{0,4000}b){0,4000}c){0,4000}d){0,4000}`,
	} {
		if _, err := Compile(src); err == nil {
			t.Errorf("%.40q compiles", src)
		} else if len(err.Error()) > 500 {
			t.Errorf("%.40q: the error has %d bytes", src, len(err.Error()))
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, src := range readGolden(f).Patterns {
		f.Add(src, "Hello, world! 123  \n\t déjà 你好 \xff")
	}
	f.Fuzz(func(t *testing.T, src, text string) {
		p, err := Compile(src)
		if err != nil || len(text) > 1000 || len(p.prog) > 500 {
			return
		}
		last := 0
		p.Each(text, func(start, end int) {
			if start < last || end < start || end > len(text) {
				t.Fatalf("match %d to %d behind %d of %d", start, end, last, len(text))
			}
			last = end
		})
	})
}
