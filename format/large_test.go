package format

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inferflow/inferflow/format/gguf"
	"github.com/inferflow/inferflow/format/safetensors"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// hollow leaves out blocks of zeros, so that large files take no room.
type hollow struct{ *os.File }

func (h hollow) Write(p []byte) (int, error) {
	if len(bytes.Trim(p, "\x00")) > 0 {
		return h.File.Write(p)
	}
	_, err := h.Seek(int64(len(p)), io.SeekCurrent)
	return len(p), err
}

const (
	largeTensors = 256
	largeBytes   = 4 << 20 // of each
)

func zeros(w io.Writer) error {
	chunk := make([]byte, 1<<20)
	for range largeBytes / len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// large writes files of 1 GiB in three formats.
var large = map[string]func(h hollow) error{
	"safetensors": func(h hollow) error {
		w := &safetensors.Writer{}
		return fillLarge(w.Add, func() error { _, err := w.WriteTo(h); return err })
	},
	"gguf": func(h hollow) error {
		w := &gguf.Writer{}
		return fillLarge(w.Add, func() error { _, err := w.WriteTo(h); return err })
	},
	"pickle": func(h hollow) error {
		z := zip.NewWriter(h)
		var p strings.Builder
		p.WriteString("\x80\x02}(")
		str := func(s string) string { return fmt.Sprintf("X%c\x00\x00\x00%s", len(s), s) }
		num := "J\x00\x00\x20\x00" // 2^21 values of two bytes
		for i := range largeTensors {
			p.WriteString(str(fmt.Sprintf("model.layers.%d.weight", i)) + "ctorch._utils\n_rebuild_tensor_v2\n((" + str("storage") + "ctorch\nHalfStorage\n" +
				str(fmt.Sprint(i)) + str("cpu") + num + "tQK\x00M\x00\x04M\x00\x08\x86M\x00\x08K\x01\x86\x89ccollections\nOrderedDict\n)RtR")
		}
		p.WriteString("u.")
		put := func(name string, data func(io.Writer) error) error {
			w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
			if err == nil {
				err = data(w)
			}
			return err
		}
		err := put("m/data.pkl", func(w io.Writer) error { _, err := io.WriteString(w, p.String()); return err })
		for i := range largeTensors {
			err = errors.Join(err, put(fmt.Sprintf("m/data/%d", i), zeros))
		}
		return errors.Join(err, z.Close())
	},
}

func fillLarge(add func(string, quant.Type, tensor.Shape, func(io.Writer) error) error, write func() error) error {
	for i := range largeTensors {
		if err := add(fmt.Sprintf("model.layers.%d.weight", i), quant.F16, tensor.Shape{1024, 2048}, zeros); err != nil {
			return err
		}
	}
	return write()
}

// BenchmarkOpenLarge opens files of 1 GiB; no weight is touched.
func BenchmarkOpenLarge(b *testing.B) {
	for kind, write := range large {
		path := filepath.Join(b.TempDir(), "m")
		f, err := os.Create(path)
		if err == nil {
			err = write(hollow{f})
			end, seekErr := f.Seek(0, io.SeekCurrent)
			err = errors.Join(err, seekErr, f.Truncate(end), f.Close())
		}
		if err != nil {
			b.Fatal(err)
		}
		b.Run(kind, func(b *testing.B) {
			for range b.N {
				f, err := Open(path)
				if err != nil {
					b.Fatal(err)
				}
				if f.Kind() != kind || len(f.Tensors()) != largeTensors {
					b.Fatalf("%s with %d tensors", f.Kind(), len(f.Tensors()))
				}
				f.Close()
			}
		})
	}
}
