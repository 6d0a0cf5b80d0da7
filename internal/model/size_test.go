package model

import (
	"errors"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/model/modeltest"
	"github.com/inferflow/inferflow/internal/program"
)

// TestFits: values that are the same for all tokens are held against the memory
// that is left, before any of them is allocated.
func TestFits(t *testing.T) {
	m, err := Open(modeltest.Write(t, t.TempDir(), modeltest.Options{}), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	free := int64(1 << 30)
	m.memory = func() (int64, string) { return free, "a test" }
	if err := m.Fits(); err != nil {
		t.Fatal(err)
	}
	m.Program.Buffers = append(m.Program.Buffers, program.Buffer{Width: 1 << 40, Const: true}, program.Buffer{Width: 1 << 40})
	err = m.Load()
	if !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "takes 4096.0 GiB; 1.0 GiB are left (a test)") {
		t.Errorf("%v", err)
	}
	free = 0 // unknown
	if err := m.Fits(); err != nil {
		t.Errorf("no limit is known: %v", err)
	}
}
