package pull

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPipConfig(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the places differ")
	}
	home := t.TempDir()
	write := func(path, text string) string {
		path = filepath.Join(home, path)
		os.MkdirAll(filepath.Dir(path), 0o755)
		os.WriteFile(path, []byte(text), 0o644)
		return path
	}
	env := map[string]string{"HOME": home, "XDG_CONFIG_DIRS": filepath.Join(home, "xdg")}
	read := func() pipConfig { return readPipConfig(func(k string) string { return env[k] }) }
	check := func(what string, want ...string) {
		t.Helper()
		if got := read().indexes; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	write("xdg/pip/pip.conf", "[global]\nindex-url = http://global/\n")
	check("global", "http://global/")
	write(".pip/pip.conf", "[global]\n# comment\nindex_url: http://legacy/\n")
	check("legacy user", "http://legacy/")
	write(".config/pip/pip.conf", "[global]\nindex-url = http://user/simple\nextra-index-url =\n  http://one/\n  http://two/\ncert = /c.pem\n[install]\nindex-url = http://no/\n")
	check("user", "http://user/simple", "http://one/", "http://two/")
	if c := read(); c.cert != "/c.pem" {
		t.Errorf("cert %q", c.cert)
	}
	write("venv/pip.conf", "[download]\nindex-url = http://site/\n[global]\nindex-url = http://less/\nextra-index-url =\n")
	env["VIRTUAL_ENV"] = filepath.Join(home, "venv")
	check("site, and the command's section", "http://site/")
	env["PIP_CONFIG_FILE"] = write("own.conf", "[download]\nindex-url = http://own/\n")
	check("PIP_CONFIG_FILE", "http://own/")
	env["PIP_INDEX_URL"] = "http://env/"
	check("the variable", "http://env/")
	env["PIP_NO_INDEX"] = "true"
	check("no index")
	env = map[string]string{"HOME": home, "PIP_CONFIG_FILE": os.DevNull}
	check("all files switched off")
}

func TestParseIndexHTML(t *testing.T) {
	page := `<html><head><base href="https://files.example/root/"></head><body>
<A HREF='a-1.0-py3-none-any.whl#sha256=` + strings.Repeat("AB", 32) + `' data-requires-python=">=3.9" data-yanked>a-1.0-py3-none-any.whl</A>
<a href="https://cdn.example/x%2By/b-1.0-py3-none-any.whl?sig=1&amp;k=2"> b-1.0-py3-none-any.whl </a>
<a href="javascript:x">c</a><a>d</a><!-- <a href="no">no</a> --><a href="/e.whl"><b>e</b></a>`
	got := parseIndexHTML(page, "https://index.example/simple/a/")
	want := []indexFile{
		{"a-1.0-py3-none-any.whl", "https://files.example/root/a-1.0-py3-none-any.whl", strings.Repeat("ab", 32), 0, true},
		{"b-1.0-py3-none-any.whl", "https://cdn.example/x%2By/b-1.0-py3-none-any.whl?sig=1&k=2", "", 0, false},
		{"e.whl", "https://files.example/e.whl", "", 0, false},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestChoose(t *testing.T) {
	files := func(names ...string) (fs []indexFile) {
		for _, n := range names {
			fs = append(fs, indexFile{name: strings.TrimSuffix(n, "!"), yanked: strings.HasSuffix(n, "!")})
		}
		return fs
	}
	for _, c := range []struct {
		files   []indexFile
		version string
		want    string
	}{
		{files("p-1.9-py3-none-any.whl", "p-1.10-py3-none-any.whl", "p-1.2.tar.gz"), "", "p-1.10-py3-none-any.whl"},
		{files("p-1.0-py3-none-any.whl", "p-2.0rc1-py3-none-any.whl", "p-3.0-py3-none-any.whl!"), "", "p-1.0-py3-none-any.whl"},
		{files("p-2.0rc1-py3-none-any.whl", "p-2.0.dev1-py3-none-any.whl"), "", "p-2.0rc1-py3-none-any.whl"},
		{files("p-3.0-py3-none-any.whl!"), "3.0", "p-3.0-py3-none-any.whl"},
		{files("p-1.0-cp311-cp311-win32.whl", "p-1.0-py3-none-any.whl", "q-9-py3-none-any.whl"), "", "p-1.0-py3-none-any.whl"},
		{files("p-1!0.1-py3-none-any.whl", "p-9.0-py3-none-any.whl", "p-9.0.post1-py3-none-any.whl"), "", "p-1!0.1-py3-none-any.whl"},
		{files("p-1.0.tar.gz", "../p-1.0-py3-none-any.whl"), "", ""},
	} {
		got, err := choose(c.files, "P", c.version)
		if got.name != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v: %q, %v; want %q", c.files, got.name, err, c.want)
		}
	}
}

func FuzzIndexHTML(f *testing.F) {
	f.Add(`<a href="x.whl#sha256=0">x</a>`)
	f.Add("<a href=x data-y='>'>b")
	f.Add("<base href=http://a/><a href=//b/c>")
	f.Add("<!-- <a")
	f.Add("<a ='\"")
	f.Fuzz(func(t *testing.T, page string) {
		for _, x := range parseIndexHTML(page, "https://index.example/simple/a/") {
			if !strings.HasPrefix(x.url, "http") || (x.sha256 != "" && !isSHA256(x.sha256)) {
				t.Fatalf("%+v", x)
			}
		}
	})
}

func FuzzIndexJSON(f *testing.F) {
	f.Add([]byte(`{"files":[{"filename":"p-1-py3-none-any.whl","url":"x","hashes":{},"yanked":"why","size":-1}]}`))
	f.Fuzz(func(t *testing.T, page []byte) {
		files, err := parseIndexJSON(page, "https://index.example/simple/p/")
		if err != nil {
			return
		}
		if x, err := choose(files, "p", ""); err == nil && (!cleanPath(x.name) || x.size < 0) {
			t.Fatalf("%+v", x)
		}
	})
}

func FuzzINI(f *testing.F) {
	f.Add("[global]\nindex-url = x\n  y\n")
	f.Add("a\n b\n[x\n]=\n")
	f.Fuzz(func(t *testing.T, text string) { parseINI(text, map[string]string{}) })
}

// FuzzReference checks that no reference leads out of the cache.
func FuzzReference(f *testing.F) {
	for _, s := range []string{"hf:a/b/c@d", "hf:a/b/../../../x", "pypi:a==1/b", "https://h/..%2f..", `hf:a/b/c\..\..\x`, "pypi:a/C:x", "https://h/%00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		tg, ok, err := parse(ref)
		if !ok || err != nil {
			return
		}
		if h := tg.repo; h != nil && cleanPath(h.owner+"/"+h.repo) && cleanPath(h.rev) {
			return
		}
		if !cleanPath(tg.dest) || len(tg.sources) != 1 || tg.label == "" {
			t.Fatalf("%q: %+v", ref, tg)
		}
	})
}

func TestRenderer(t *testing.T) {
	clock := time.Unix(0, 0)
	var out bytes.Buffer
	r := &renderer{w: &out, now: func() time.Time { return clock }}
	show := func(p Progress) { p.Name = "m"; r.show(p) }
	show(Progress{Stage: "fetching", Total: 1e8})
	clock = clock.Add(time.Second)
	show(Progress{Stage: "fetching", Done: 1e7, Total: 1e8})
	clock = clock.Add(5 * time.Second)
	show(Progress{Stage: "fetching", Done: 5e7, Total: 1e8, Rate: 1e7, ETA: 5 * time.Second})
	show(Progress{Stage: "fetching", Done: 1e8, Total: 1e8, Rate: 1e7, End: true})
	show(Progress{Stage: "unpacking", Done: 1e8, Total: 1e8, End: true})
	want := "m: fetching 0% of 95.4 MiB\nm: fetching 50% of 95.4 MiB, 9.5 MiB/s, 5s left\nm: fetching 100% of 95.4 MiB, 9.5 MiB/s\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	out.Reset()
	r = &renderer{w: &out, now: func() time.Time { return clock }}
	for _, p := range []struct {
		after time.Duration
		done  int64
		end   bool
	}{{0, 0, false}, {6, 1e5, false}, {60, 2e5, false}, {6, 3e6, false}, {6, 1e8, false}, {6, 1e8, true}} {
		clock = clock.Add(p.after * time.Second)
		show(Progress{Stage: "fetching", Done: p.done, Total: 1e8, End: p.end})
	}
	show(Progress{Stage: "fetching"})                      // nothing is known: nothing is said
	show(Progress{Stage: "fetching", Done: 5, End: false}) // no length: every line tells more
	clock = clock.Add(5 * time.Second)
	show(Progress{Stage: "fetching", Done: 7, End: false})
	want = "0% of 95.4 MiB\n0% of 95.4 MiB\n3% of 95.4 MiB\n100% of 95.4 MiB\n5 bytes\n7 bytes\n"
	if got := strings.ReplaceAll(out.String(), "m: fetching ", ""); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out.Reset()
	r = &renderer{w: &out, tty: true, now: time.Now}
	show(Progress{Stage: "fetching", Done: 5e8, Total: 1e9, Rate: 1e6, ETA: time.Minute})
	show(Progress{Stage: "fetching", Done: 1e9, Total: 1e9, End: true})
	want = "\rm: fetching [============            ]  50% of 953.7 MiB, 976.6 KiB/s, 1m0s left" +
		"\rm: fetching [========================] 100% of 953.7 MiB                        \n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestMeter(t *testing.T) {
	clock := time.Unix(0, 0)
	var got []Progress
	m := newMeter(func(p Progress) { got = append(got, p) }, "m", "fetching", 100, 1000)
	m.now = func() time.Time { return clock }
	m.marks = []mark{{clock, 100}}
	for range 10 {
		clock = clock.Add(time.Second)
		m.set(m.p.Done + 50)
		m.set(m.p.Done) // within the same instant: no report
	}
	last := got[len(got)-1]
	if len(got) != 10 || last.Rate != 50 || last.ETA != 8*time.Second || last.Done != 600 {
		t.Errorf("%d reports, the last %+v", len(got), last)
	}
	m.set(0) // started anew
	m.end()
	if p := got[len(got)-1]; p.Rate < 0 || !p.End {
		t.Errorf("%+v", p)
	}
}
