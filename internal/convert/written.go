package convert

import (
	"os"

	"github.com/inferflow/inferflow/internal/weight"
	"github.com/inferflow/inferflow/quant"
)

// Written is what a conversion wrote.
type Written struct {
	Path  string     // the file of weights
	Bytes int64      // its size
	Type  quant.Type // that most values have
	// Where blocks were decoded: the type that most of them had, and the bytes
	// that all stored tensors took.
	Decoded bool
	From    quant.Type
	Before  int64
}

// tally counts values by type while tensors are announced.
type tally struct {
	types, blocks map[quant.Type]int // as written; of blocks that are decoded, as stored
	before        int64              // bytes as stored
}

func (t *tally) add(r *weight.Rows, typ quant.Type) {
	if t.types == nil {
		t.types, t.blocks = map[quant.Type]int{}, map[quant.Type]int{}
	}
	n := r.Shape.Elements()
	t.types[typ] += n
	have, _ := r.Type.Layout()
	if to, _ := typ.Layout(); have.Block > 1 && to.Block == 1 {
		t.blocks[r.Type] += n
	}
	if row, ok := r.Type.RowBytes(r.Shape.Cols()); ok {
		t.before += int64(row) * int64(r.Shape.Rows())
	}
}

// tell reports the file of weights.
func (c *job) tell(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	c.o.Done(Written{Path: file, Bytes: info.Size(), Type: most(c.written.types), Decoded: len(c.written.blocks) > 0, From: most(c.written.blocks), Before: c.written.before})
	return nil
}
