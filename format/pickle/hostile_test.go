package pickle

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// entry is a file of an archive made for a test.
type entry struct {
	name   string
	data   string
	method uint16
}

func archiveOf(entries ...entry) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, err := w.CreateHeader(&zip.FileHeader{Name: e.name, Method: e.method})
		if err != nil {
			panic(err)
		}
		if _, err := f.Write([]byte(e.data)); err != nil {
			panic(err)
		}
	}
	w.Close()
	return b.Bytes()
}

// checkpoint is an archive with one storage of eight bytes under the key 0.
func checkpoint(pkl string) []byte {
	return archiveOf(entry{name: "x/data.pkl", data: pkl}, entry{name: "x/data/0", data: "\x00\x00\x80\x3f\x00\x00\x00\x40"})
}

func short(s string) string { return "\x8c" + string([]byte{byte(len(s))}) + s }

func long(n int64) string {
	b := binary.LittleEndian.AppendUint64([]byte{0x8a, 8}, uint64(n))
	return string(b)
}

// storageID pushes the storage of n values under a key.
func storageID(class, key string, n int64) string {
	return "(" + short("storage") + "ctorch\n" + class + "\n" + short(key) + short("cpu") + long(n) + "tQ"
}

func longs(ns ...int64) string {
	s := "("
	for _, n := range ns {
		s += long(n)
	}
	return s + "t"
}

// tensorOf pushes a tensor on the storage.
func tensorOf(storage string, offset int64, size, stride string) string {
	return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + long(offset) + size + stride + "\x89ccollections\nOrderedDict\n)RtR"
}

// named is a dict with one object under the name w.
func one(v string) string { return "\x80\x04}" + short("w") + v + "s." }

var f32 = storageID("FloatStorage", "0", 2)

var hostile = []struct {
	what string
	data []byte
	is   error
	say  string
}{
	{"os.system by reduce", checkpoint("\x80\x02cos\nsystem\n(" + short("touch /tmp/pickled") + "tR."), ErrForbidden, `"os.system"`},
	{"posix.system by stack", checkpoint("\x80\x04" + short("posix") + short("system") + "\x93" + short("id") + "\x85R."), ErrForbidden, `"posix.system"`},
	{"builtins.eval", checkpoint("\x80\x02cbuiltins\neval\n(" + short("1") + "tR."), ErrForbidden, `"builtins.eval"`},
	{"builtins.getattr", checkpoint("\x80\x02c__builtin__\ngetattr\n."), ErrForbidden, `"__builtin__.getattr"`},
	{"torch.load", checkpoint("\x80\x02ctorch\nload\n(" + short("x") + "tR."), ErrForbidden, `"torch.load"`},
	{"torch.hub", checkpoint("\x80\x02ctorch.hub\nload_state_dict_from_url\n."), ErrForbidden, `"torch.hub.load_state_dict_from_url"`},
	{"a sparse tensor", checkpoint("\x80\x02ctorch._utils\n_rebuild_sparse_tensor\n."), ErrForbidden, "_rebuild_sparse_tensor"},
	{"unused import", checkpoint("\x80\x02cos\nsystem\n0" + one(tensorOf(f32, 0, longs(2), longs(1)))[2:]), ErrForbidden, `"os.system"`},
	{"INST", checkpoint("\x80\x02(ios\nsystem\n."), ErrForbidden, `"os.system"`},
	{"OBJ", checkpoint("\x80\x02(o."), ErrForbidden, "OBJ"},
	{"NEWOBJ_EX", checkpoint("\x80\x04\x92."), ErrForbidden, "NEWOBJ_EX"},
	{"EXT1", checkpoint("\x80\x02\x82\x01."), ErrForbidden, "EXT1"},
	{"NEXT_BUFFER", checkpoint("\x80\x05\x97."), ErrForbidden, "NEXT_BUFFER"},
	{"BUILD on a dict", checkpoint("\x80\x02}}b."), ErrForbidden, "BUILD"},
	{"BUILD on a tensor", checkpoint("\x80\x02" + tensorOf(f32, 0, longs(2), longs(1)) + "}b."), ErrForbidden, "a tensor"},
	{"BUILD with a tuple", checkpoint("\x80\x02ccollections\nOrderedDict\n)R)b."), ErrForbidden, "BUILD"},
	{"call of a class of storages", checkpoint("\x80\x02ctorch\nFloatStorage\n)R."), ErrForbidden, "torch.FloatStorage"},
	{"call of a dict", checkpoint("\x80\x02})R."), ErrForbidden, "a call of a dict"},
	{"codec that is code", checkpoint("\x80\x02c_codecs\nencode\n(" + short("x") + short("rot13") + "tR."), ErrForbidden, "latin1"},
	{"endless self call", checkpoint("\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n_rebuild_from_type_v2\nN)}tR."), ErrForbidden, "by itself"},
	{"import path with a newline short", checkpoint("\x80\x02cos"), ErrCorrupt, "does not end"},

	{"storage that is not there", checkpoint(one(tensorOf(storageID("FloatStorage", "1", 2), 0, longs(2), longs(1)))), ErrCorrupt, `"1"`},
	{"storage key that leads out", checkpoint(one(tensorOf(storageID("FloatStorage", "../../etc/passwd", 2), 0, longs(2), longs(1)))), ErrCorrupt, "etc/passwd"},
	{"storage of 2^60 values", checkpoint(one(tensorOf(storageID("FloatStorage", "0", 1<<60), 0, longs(2), longs(1)))), ErrCorrupt, `"0"`},
	{"storage in two types", checkpoint("\x80\x02(" + tensorOf(f32, 0, longs(2), longs(1)) + tensorOf(storageID("HalfStorage", "0", 4), 0, longs(2), longs(1)) + "l."), ErrCorrupt, "two ways"},
	{"storage of a wrong size", checkpoint(one(tensorOf(storageID("FloatStorage", "0", 1), 0, longs(1), longs(1)))), ErrCorrupt, "8 bytes"},
	{"shape beyond the storage", checkpoint(one(tensorOf(f32, 0, longs(3), longs(1)))), ErrCorrupt, `"w"`},
	{"offset beyond the storage", checkpoint(one(tensorOf(f32, 2, longs(1), longs(1)))), ErrCorrupt, `"w"`},
	{"offset that wraps", checkpoint(one(tensorOf(f32, 1<<62, longs(2), longs(1<<62)))), ErrCorrupt, `"w"`},
	{"shape that wraps", checkpoint(one(tensorOf(f32, 0, longs(1<<32, 1<<32), longs(0, 0)))), ErrCorrupt, `"w"`},
	{"stride that wraps", checkpoint(one(tensorOf(f32, 0, longs(1<<40), longs(1<<40)))), ErrCorrupt, `"w"`},
	{"negative stride", checkpoint(one(tensorOf(f32, 1, longs(2), longs(-1)))), ErrCorrupt, "natural"},
	{"negative size", checkpoint(one(tensorOf(f32, 0, longs(-2), longs(1)))), ErrCorrupt, "natural"},
	{"expanded bomb", checkpoint(one(tensorOf(f32, 0, longs(1<<40), longs(0)))), ErrTooLarge, "copy"},
	{"17 dimensions", checkpoint(one(tensorOf(f32, 0, longs(make([]int64, 17)...), longs(make([]int64, 17)...)))), ErrCorrupt, "16 dimensions"},

	{"deep nesting", checkpoint("\x80\x02" + strings.Repeat("(", 100_000) + strings.Repeat("l", 100_000) + "."), ErrUnsupported, ""},
	{"deeply nested tensor", checkpoint("\x80\x02}" + strings.Repeat(short("a")+"}", 100) + short("w") + tensorOf(f32, 0, longs(2), longs(1)) + strings.Repeat("s", 101) + "."), ErrTooLarge, "nested"},
	{"a dict inside itself", checkpoint("\x80\x02}q\x00" + short("a") + "h\x00s" + short("w") + tensorOf(f32, 0, longs(2), longs(1)) + "s."), ErrTooLarge, "nested"},
	{"a wrapper inside itself", checkpoint("\x80\x02}q\x00" + short("model") + "h\x00s."), ErrTooLarge, "nested"},
	{"memo bomb", memoBomb(), ErrTooLarge, "ways"},
	{"names over a long step", checkpoint(nameBomb(maxName/2, 3000)), ErrTooLarge, "together"},
	{"a long name", checkpoint(nameBomb(maxName, 1)), ErrTooLarge, "the name of a tensor"},
	{"a long step over no tensors", checkpoint("\x80\x02}" + text(strings.Repeat("k", 1<<20)) + "(" + strings.Repeat("K\x01", 1<<18) + "ts."), ErrUnsupported, "no tensors"},
	{"entries of no name on many ways", checkpoint("\x80\x02}" + short("a") + "](}(" + strings.Repeat("NN", 3000) + "uq\x01" + strings.Repeat("h\x01", 3000) + "es."), ErrTooLarge, "ways"},
	{"encode bomb", checkpoint("\x80\x02](c_codecs\nencode\n" + text(strings.Repeat("k", 1<<20)) + short("latin1") + "\x86q\x02R" + strings.Repeat("0c_codecs\nencode\nh\x02R", 80) + "e."), ErrTooLarge, "calls make"},
	{"shape bomb", checkpoint("\x80\x02c_codecs\nencode\n0(" + f32 + long(0) + longs(make([]int64, 16)...) + longs(make([]int64, 16)...) + "tq\x02" + strings.Repeat("0ctorch._utils\n_rebuild_tensor\nh\x02R", 300_000) + "."), ErrTooLarge, "calls make"},
	{"storage under a long key", checkpoint(one(tensorOf("("+short("storage")+"ctorch\nFloatStorage\n"+text(strings.Repeat("0", 1<<20))+short("cpu")+long(2)+"tQ", 0, longs(2), longs(1)))), ErrTooLarge, "key"},
	{"stack bomb", checkpoint("\x80\x02N" + strings.Repeat("2", 2<<20)), ErrTooLarge, "stack"},
	{"object bomb", checkpoint("\x80\x02" + strings.Repeat("}0", 3<<20)), ErrTooLarge, "objects"},
	{"long integer", checkpoint("\x80\x02\x8b\xff\xff\xff\x7f"), ErrTooLarge, "integer"},
	{"long integer in text", checkpoint("L" + strings.Repeat("9", 4000) + "L\n."), ErrTooLarge, "digits"},
	{"long string", checkpoint("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f."), ErrCorrupt, "are left"},
	{"memo never set", checkpoint("\x80\x02h\x07."), ErrCorrupt, "memorised"},
	{"empty stack", checkpoint("\x80\x02."), ErrCorrupt, "stack"},
	{"mark as an object", checkpoint("\x80\x02(."), ErrCorrupt, "mark"},
	{"two objects", checkpoint("\x80\x02NN."), ErrCorrupt, "left on the stack"},
	{"no end", checkpoint("\x80\x02N"), ErrCorrupt, "0 are left"},
	{"unknown instruction", checkpoint("\x80\x02\xff."), ErrCorrupt, "0xff"},
	{"protocol 9", checkpoint("\x80\x09."), ErrUnsupported, "protocol 9"},
	{"a number", checkpoint("\x80\x02K\x01."), ErrUnsupported, "an integer"},
	{"no tensors", checkpoint("\x80\x02}."), ErrUnsupported, "no tensors"},

	{"compressed storage", archiveOf(entry{name: "x/data.pkl", data: one(tensorOf(storageID("FloatStorage", "0", 1<<18), 0, longs(2), longs(1)))},
		entry{"x/data/0", strings.Repeat("\x00", 1<<20), zip.Deflate}), ErrUnsupported, "compressed"},
	{"compressed description", archiveOf(entry{"x/data.pkl", strings.Repeat("}0", 1<<20), zip.Deflate}), ErrUnsupported, "compressed"},
	{"path upwards", archiveOf(entry{name: "x/data.pkl", data: "N."}, entry{name: "../../evil", data: "x"}), ErrCorrupt, "evil"},
	{"absolute path", archiveOf(entry{name: "/x/data.pkl", data: "N."}), ErrCorrupt, "/x/data.pkl"},
	{"entry twice", archiveOf(entry{name: "x/data.pkl", data: "N."}, entry{name: "x/data.pkl", data: "N."}), ErrCorrupt, "twice"},
	{"overlapping entries", overlapping(), ErrCorrupt, "overlap"},
	{"big-endian", archiveOf(entry{name: "x/data.pkl", data: "N."}, entry{name: "x/byteorder", data: "big"}), ErrUnsupported, `"big"`},
	{"TorchScript", archiveOf(entry{name: "x/data.pkl", data: "N."}, entry{name: "x/constants.pkl", data: "N."}), ErrUnsupported, "TorchScript"},
	{"another archive", archiveOf(entry{name: "word/document.xml", data: "<x/>"}), ErrFormat, "data.pkl"},
	{"cut short", checkpoint("N.")[:40], ErrCorrupt, "cut short"},
	{"tar", append(make([]byte, 257), "ustar\x0000"...), ErrUnsupported, "tar"},
	{"text", []byte("hello"), ErrFormat, "hello"},
	{"empty", nil, ErrFormat, ""},
	{"another pickle", []byte("\x80\x02K\x01."), ErrFormat, "an integer"},
	{"legacy with os.system", append(legacyHead(), "\x80\x02cos\nsystem\n."...), ErrForbidden, `"os.system"`},
	{"legacy without storages", append(legacyHead(), one(tensorOf(f32, 0, longs(2), longs(1)))+"\x80\x02]."...), ErrCorrupt, "not in the file"},
	{"legacy storage beyond the file", append(legacyHead(), one(tensorOf(f32, 0, longs(2), longs(1)))+"\x80\x02]"+short("0")+"a.\x02\x00\x00\x00\x00\x00\x00\x00abc"...), ErrCorrupt, "cut short"},
	{"legacy storage of another size", append(legacyHead(), one(tensorOf(f32, 0, longs(2), longs(1)))+"\x80\x02]"+short("0")+"a.\x03\x00\x00\x00\x00\x00\x00\x00abcdabcd"...), ErrCorrupt, "3 values"},
	{"legacy big-endian", []byte("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}" + short("little_endian") + "\x89s."), ErrUnsupported, "big-endian"},
}

func legacyHead() []byte {
	return []byte("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.")
}

// memoBomb doubles a list forty times by naming it twice.
func memoBomb() []byte {
	s := "\x80\x02}" + short("w") + tensorOf(f32, 0, longs(2), longs(1)) + "s" + short("a") + "]q\x00"
	for range 12 {
		s += "0(" + strings.Repeat("h\x00", 8) + "lq\x00"
	}
	return checkpoint(s + "s.")
}

// text is short for any length.
func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// nameBomb has a tensor n times under a step of size bytes.
func nameBomb(size, n int) string {
	return "\x80\x02" + tensorOf(f32, 0, longs(2), longs(1)) + "q\x010}" + text(strings.Repeat("k", size)) + "(" + strings.Repeat("h\x01", n) + "ts."
}

// overlapping lets the second entry of a directory point at the first one's bytes.
func overlapping() []byte {
	b := archiveOf(entry{name: "x/data.pkl", data: "N."}, entry{name: "x/data/0", data: "N."})
	at := bytes.LastIndex(b, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(b[at+42:], 0)
	return b
}

func TestHostile(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.what, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f, err := Parse("bad.bin", c.data)
			runtime.ReadMemStats(&after)
			if f != nil || !errors.Is(err, c.is) {
				t.Fatalf("got %v, want an error that wraps %q", err, c.is)
			}
			if !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), "bad.bin") {
				t.Errorf("%q does not say %q", err, c.say)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 {
				t.Errorf("%d bytes were allocated for a file of %d", n, len(c.data))
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range hostile {
		if len(c.data) < 1<<12 {
			f.Add(c.data)
		}
	}
	files, _ := filepath.Glob("testdata/*")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && len(b) < 1<<13 && !strings.HasSuffix(name, ".py") && !strings.HasSuffix(name, ".json") {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Parse("fuzz.bin", data)
		if err != nil {
			return
		}
		for _, v := range g.Tensors() {
			if n, ok := v.Type.RowBytes(v.Shape.Elements()); !ok || len(v.Data) != n {
				t.Fatalf("tensor %q: %d bytes for shape %s of %s", v.Name, len(v.Data), v.Shape, v.Type)
			}
		}
	})
}

// FuzzMachine runs descriptions alone, which reach deeper than archives do.
func FuzzMachine(f *testing.F) {
	for _, s := range []string{one(tensorOf(f32, 0, longs(2), longs(1))), "(lp0\nI1\naF1.5\naVx\na.", "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01\x88\x89e.",
		"\x80\x02ccollections\nOrderedDict\n)R}b.", "\x80\x02\x8a\x02\x00\xff.", "S'x'\n.", "(I1\nI2\nd."} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &machine{data: data, persistent: func(id any) (any, error) { return storageOf(id) }}
		if v, err := m.run(); err == nil {
			_, _ = flatten(v)
		}
	})
}
