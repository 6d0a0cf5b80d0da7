package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRelay(t *testing.T) {
	frames := "\x01\x05\x00\x00\x00hello\x02\x03\x00\x00\x00err\x03\x2a\x00\x00\x00"
	tests := []struct {
		name, in, out, errOut, early string
		status                       int
		err                          error
	}{
		{"all", "banner\n" + magic + frames, "hello", "err", "banner\n", 42, nil},
		{"no frames", "banner\n" + magic, "", "", "banner\n", 0, errNoStatus},
		{"only the banner", "banner\n", "", "", "banner\n", 0, errNoStatus},
		{"cut in a head", magic + "\x01\x05", "", "", "", 0, errNoStatus},
	}
	for _, tt := range tests {
		var out, errOut bytes.Buffer
		status, early, err := relay(strings.NewReader(tt.in), &out, &errOut)
		if status != tt.status || early != tt.early || !errors.Is(err, tt.err) ||
			out.String() != tt.out || errOut.String() != tt.errOut {
			t.Errorf("%s: %d %q %v %q %q", tt.name, status, early, err, out.String(), errOut.String())
		}
	}
	if _, _, err := relay(strings.NewReader(magic+"\x09\x00\x00\x00\x00"), nil, nil); err == nil {
		t.Error("a frame of unknown kind passed")
	}
}

// legacy wraps one block as kernels do.
func legacy(block string) []byte {
	b := []byte{0x02, 0x21, 0x4c, 0x18}
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(block))), block...)
}

func TestUnlz4(t *testing.T) {
	long := strings.Repeat("x", 300)
	tests := []struct{ name, block, want string }{
		{"literals", "\x30abc", "abc"},
		{"match that overlaps itself", "\x14a\x01\x00\x10b", "a" + strings.Repeat("a", 8) + "b"},
		{"long literals", "\xf0\xff\x1e" + long, long},
		{"long match", "\x1fx\x01\x00\xff\x19\x10y", strings.Repeat("x", 1+4+15+255+25) + "y"},
		{"literals cut", "\x50abc", ""},
		{"match before the start", "\x10a\x05\x00\x10b", ""},
		{"no distance", "\x10a\x00\x00\x10b", ""},
		{"length without end", "\xf0\xff\xff", ""},
	}
	for _, tt := range tests {
		got, err := unlz4(legacy(tt.block))
		if string(got) != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q %v", tt.name, got, err)
		}
	}
	if _, err := unlz4([]byte("\x1f\x8b\x08\x00gzip")); err == nil {
		t.Error("gzip passed")
	}
	if _, err := unlz4([]byte("\x02\x21\x4c\x18\xff\xff\xff\x7f")); err == nil {
		t.Error("a block longer than the payload passed")
	}
}

func FuzzKernel(f *testing.F) {
	f.Add(legacy("\x14a\x01\x00\x10b"))
	f.Add([]byte("\x04\x00\x00\x00\x04\x00\x00\x00\x12\x00\x00\x00Xen\x00\x10\x03\x00\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		unlz4(b)
		pvhEntry(b)
		payload(b)
		flatten(b)
	})
}

func TestPVHEntry(t *testing.T) {
	note := "\x04\x00\x00\x00\x04\x00\x00\x00\x12\x00\x00\x00Xen\x00\x10\x03\x00\x01"
	other := "\x04\x00\x00\x00\x03\x00\x00\x00\x06\x00\x00\x00Xen\x00abc\x00"
	for in, want := range map[string]uint32{note: 0x1000310, other + note: 0x1000310, other: 0, note[:18]: 0, "": 0} {
		if got := pvhEntry([]byte(in)); got != want {
			t.Errorf("%q: %#x, want %#x", in, got, want)
		}
	}
}

func TestInitramfs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"guest": "g", "prog": "prog", "data/a": "aa", "data/sub/b": "bbb"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := options{guest: dir + "/guest", program: dir + "/prog", with: []string{dir + "/data", dir + "/data/a"}}
	out := filepath.Join(dir, "initrd")
	size, err := writeInitramfs(out, o, dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil || int64(len(text)) != size || size%4 != 0 {
		t.Fatal(len(text), size, err)
	}
	inside := strings.TrimPrefix(dir, "/")
	for _, name := range []string{"init", inside, inside + "/prog", inside + "/data/a", inside + "/data/sub", inside + "/data/sub/b"} {
		if n := bytes.Count(text, []byte("\x00"+name+"\x00")) + bytes.Count(text, []byte("0"+name+"\x00")); n != 1 {
			t.Errorf("%s is there %d times", name, n)
		}
	}
	if _, err := writeInitramfs(out, options{guest: dir + "/guest", program: dir + "/none"}, dir); err == nil {
		t.Error("a missing program passed")
	}
}

func TestParse(t *testing.T) {
	t.Chdir(t.TempDir())
	env := map[string]string{"AVX512_CACHE": "/c", "AVX512_WITH": "/a:/b", "AVX512_MEM": "512", "AVX512_CPU": "tigerlake"}
	getenv := func(k string) string { return env[k] }
	t.Setenv("INFERFLOW_CPU", "avx512")
	o, err := parse([]string{"-with", "/d", "-env", "A=b", "/bin/x", "-test.v", "-test.testlogfile=/x", "-mem"}, getenv)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.with, []string{"/a", "/b", "/d"}) || !slices.Equal(o.args, []string{"-test.v", "-mem"}) ||
		o.megs != 512 || o.model != "tigerlake" || o.program != "/bin/x" || o.bochs != "/c/bochs" {
		t.Errorf("%+v", o)
	}
	if !slices.Contains(o.env, "INFERFLOW_CPU=avx512") || !slices.Contains(o.env, "A=b") {
		t.Error(o.env)
	}
	for _, args := range [][]string{{}, {"-mem", "64", "/bin/x"}, {"-mem", "9999", "/bin/x"}, {"-what", "/bin/x"}} {
		if _, err := parse(args, getenv); err == nil {
			t.Errorf("%q passed", args)
		}
	}
	env["AVX512_TIMEOUT"] = "soon"
	if _, err := parse([]string{"/bin/x"}, getenv); err == nil {
		t.Error("a bad AVX512_TIMEOUT passed")
	}
}
