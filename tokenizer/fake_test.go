package tokenizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// fakeMeta is GGUF metadata in memory.
type fakeMeta map[string]any

var errFake = errors.New("no such key, or of another type")

func (m fakeMeta) Has(key string) bool                  { _, ok := m[key]; return ok }
func (m fakeMeta) String(key string) (string, error)    { return fakeGet[string](m, key) }
func (m fakeMeta) Strings(key string) ([]string, error) { return fakeGet[[]string](m, key) }
func (m fakeMeta) Ints(key string) ([]int64, error)     { return fakeGet[[]int64](m, key) }
func (m fakeMeta) Floats(key string) ([]float64, error) { return fakeGet[[]float64](m, key) }
func (m fakeMeta) Bool(key string) (bool, error)        { return fakeGet[bool](m, key) }
func (m fakeMeta) Uint(key string) (uint64, error)      { return fakeGet[uint64](m, key) }

func fakeGet[T any](m fakeMeta, key string) (T, error) {
	v, ok := m[key].(T)
	if !ok {
		return v, fmt.Errorf("%s: %w", key, errFake)
	}
	return v, nil
}

// testdata returns a path below the directory of large files, or skips the test.
func testdata(t testing.TB, path ...string) string {
	t.Helper()
	dir := os.Getenv("INFERFLOW_TESTDATA")
	if dir == "" {
		t.Skip("INFERFLOW_TESTDATA is not set: testdata/fetch.sh downloads the files of this test and says how")
	}
	name := filepath.Join(append([]string{dir}, path...)...)
	if _, err := os.Stat(name); err != nil {
		t.Skipf("%v: run testdata/fetch.sh", err)
	}
	return name
}

// readGGUF reads the metadata of a GGUF file; it trusts the file.
func readGGUF(t testing.TB, name string) fakeMeta {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r := &fakeReader{data: data, at: 8}
	r.u64() // tensors
	m := fakeMeta{}
	for range r.u64() {
		key := r.str()
		m[key] = r.value(r.u32())
	}
	return m
}

type fakeReader struct {
	data []byte
	at   int
}

func (r *fakeReader) take(n int) []byte { r.at += n; return r.data[r.at-n : r.at] }
func (r *fakeReader) u32() uint32       { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *fakeReader) u64() uint64       { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *fakeReader) str() string       { return string(r.take(int(r.u64()))) }

func (r *fakeReader) value(kind uint32) any {
	switch kind {
	case 0, 1:
		return uint64(r.take(1)[0])
	case 2, 3:
		return uint64(binary.LittleEndian.Uint16(r.take(2)))
	case 4, 5:
		return uint64(r.u32())
	case 6:
		return float64(math.Float32frombits(r.u32()))
	case 7:
		return r.take(1)[0] != 0
	case 8:
		return r.str()
	case 9:
		return r.array()
	case 12:
		return math.Float64frombits(r.u64())
	}
	return r.u64()
}

func (r *fakeReader) array() any {
	kind, n := r.u32(), r.u64()
	var texts []string
	var ints []int64
	var floats []float64
	for range n {
		switch v := r.value(kind).(type) {
		case string:
			texts = append(texts, v)
		case uint64:
			ints = append(ints, int64(int32(v)))
		case float64:
			floats = append(floats, v)
		}
	}
	switch kind {
	case 8:
		return texts
	case 6, 12:
		return floats
	}
	return ints
}
