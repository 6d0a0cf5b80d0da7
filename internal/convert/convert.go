// Package convert writes a model in another format: a Hugging Face folder as
// GGUF and back, and any format with other types of numbers. The model's
// specification says what each tensor is called and how its values are laid
// out there, so no family is known here. It must never import engine, server
// or chat. Read Options first.
package convert

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/model"
	"github.com/inferflow/inferflow/internal/weight"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/spec"
	"github.com/inferflow/inferflow/tensor"
)

// ErrConvert says that a conversion was asked for that is not possible.
var ErrConvert = errors.New("cannot be converted")

// Options chooses how a model is written.
type Options struct {
	// Type of matrices: F32, F16 or BF16. Nil keeps the type that each tensor
	// is stored in, where the format has it.
	Type     *quant.Type
	Spec     spec.Options
	Advice   map[string]float64      // temperature, top_p, top_k, min_p that the model's card advises, where its files hold none
	Force    bool                    // what is written to may be there, or hold another model, which is replaced
	Notice   func(string)            // told, once each, what a user should know
	Progress func(done, total int64) // bytes written, of all
	Done     func(Written)           // told at the end what was written
	Context  context.Context         // whose end stops the writing, and removes what is written until then; nil has none
}

// Run converts the model at in. out is a .gguf file, a .safetensors file, or a
// folder, which is then written as Hugging Face lays it out. Unless Force is
// set the file must not be there and the folder hold no other model. Files are
// replaced whole or not at all.
func Run(in, out string, o Options) error {
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Done == nil {
		o.Done = func(Written) {}
	}
	if o.Context == nil {
		o.Context = context.Background()
	}
	files, err := model.OpenStored(in)
	if err != nil {
		return err
	}
	defer files.Close()
	c := &job{files: files, o: o}
	if len(o.Spec.Set) > 0 && (files.Binding() != spec.GGUF || strings.EqualFold(filepath.Ext(out), ".gguf")) {
		return fmt.Errorf("convert: %w: settings (--set) can be given only where a GGUF file becomes a folder; elsewhere config.json says them", ErrConvert)
	}
	for _, key := range []string{"model_type", "architectures"} {
		if _, ok := o.Spec.Set[key]; ok {
			return fmt.Errorf("convert: %w: %s cannot be given by --set: it names the classes that read the folder, and follows from what the file holds", ErrConvert, key)
		}
	}
	if strings.EqualFold(filepath.Ext(out), ".gguf") {
		for _, part := range append(files.Files(), in) {
			if same(part, out) {
				return fmt.Errorf("convert: %s: %w: it is its own target", part, ErrConvert)
			}
		}
		if err := c.target(out); err != nil {
			return err
		}
		release, err := c.hold(out+".lock", out)
		if err != nil {
			return err
		}
		defer release()
		return c.toGGUF(out)
	}
	return c.toFolder(out)
}

// same says whether two paths name one file.
func same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// job is one conversion.
type job struct {
	files       *model.Stored
	o           Options
	total, done int64
	written     tally
}

// ended is an error once the conversion is to stop.
func (c *job) ended() error {
	if c.o.Context.Err() == nil {
		return nil
	}
	return fmt.Errorf("convert: ended before all was written, nothing is left of it: %w", context.Cause(c.o.Context))
}

// sink is where tensors are announced: a writer of a format.
type sink interface {
	Add(name string, t quant.Type, shape tensor.Shape, data func(io.Writer) error) error
}

// stored is a tensor that is written as the files hold it.
func stored(v tensor.View) spec.ReboundTensor {
	return spec.ReboundTensor{Name: v.Name, Value: graph.Tensor(v.Name, v.Shape)}
}

// add announces a tensor of the target in the type that typeOf picks for it.
func (c *job) add(w sink, t spec.ReboundTensor, typeOf func(name string, have quant.Type, shape tensor.Shape) (quant.Type, error)) error {
	r, err := weight.Resolve(c.files, t.Value)
	if err != nil {
		return fmt.Errorf("convert: %s: %w", t.Name, err)
	}
	typ, err := typeOf(t.Name, r.Type, r.Shape)
	if err != nil {
		return fmt.Errorf("convert: %s: %w", t.Name, err)
	}
	row, ok := typ.RowBytes(r.Shape.Cols())
	if !ok {
		return fmt.Errorf("convert: %s: rows of %d values do not fit type %s: %w", t.Name, r.Shape.Cols(), typ, ErrConvert)
	}
	c.total += int64(row) * int64(r.Shape.Rows())
	c.written.add(r, typ)
	return w.Add(t.Name, typ, r.Shape, func(out io.Writer) error {
		b := bufio.NewWriterSize(out, 1<<18)
		if err := c.rows(b, t, typ, row); err != nil {
			return err
		}
		return b.Flush()
	})
}

// rows writes all rows of a tensor. It is evaluated anew, so that what was
// copied for one tensor is given back before the next.
func (c *job) rows(out io.Writer, t spec.ReboundTensor, typ quant.Type, size int) error {
	r, err := weight.Resolve(c.files, t.Value)
	if err != nil {
		return err
	}
	values, buf := make([]float32, r.Shape.Cols()), make([]byte, size)
	for i := range r.Shape.Rows() {
		if err := c.ended(); err != nil {
			return err
		}
		b := buf
		if r.Type == typ {
			b = r.Row(i)
		} else if err := recode(r, i, values, typ, buf); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
		if c.done += int64(size); c.o.Progress != nil {
			c.o.Progress(c.done, c.total)
		}
	}
	for _, name := range t.Value.Tensors(nil) {
		c.files.Release(name)
	}
	return nil
}

// recode writes row i in another type. What F16 cannot hold is an error.
func recode(r *weight.Rows, i int, values []float32, typ quant.Type, buf []byte) error {
	if err := r.Floats(values, i); err != nil {
		return err
	}
	if typ == quant.F16 {
		for k, v := range values {
			if math.Abs(float64(v)) > 65504 && !math.IsInf(float64(v), 0) {
				return fmt.Errorf("column %d is %g, above the largest F16; choose bf16 or f32: %w", k, v, ErrConvert)
			}
		}
	}
	return typ.Encode(buf, values)
}
