// Package device says what a device is: it loads one stage of a program and
// runs it for each batch. It must never import requests, schedulers or specs.
// Read Stage first; ref and cpu below it are the devices of this build.
package device

import (
	"errors"

	"github.com/inferflow/inferflow/internal/batch"
)

// ErrNonFinite marks a result that holds NaN or infinity.
var ErrNonFinite = errors.New("value is not finite")

// Limits bounds what a stage must be ready for.
type Limits struct {
	Rows   int // rows of a batch at most
	Seqs   int // sequences of a batch at most
	Blocks int // key/value blocks of batch.BlockTokens positions
	Tokens int // positions of one sequence at most
	States int // slots of recurrent states; 0 where the program keeps none
	Source int // tokens of a source at most, which an encoder takes whole; 0: there is no encoder
}

// Capacity is the number of rows of any batch at most.
func (l Limits) Capacity() int { return max(l.Rows, l.Source) }

// Stage is a loaded part of a program on one device. Run is called by one
// goroutine at a time and allocates nothing in the steady state.
type Stage interface {
	// Run computes one batch. in holds the live values received from the stage
	// before, one slice a value: [rows · width]; nil for the first stage. The
	// result holds the values that the next stage receives, in memory of the
	// stage, valid until the next Run. The copies of states in b come before all
	// steps; a batch of copies without rows is done too. A sequence may go on from
	// where it stood before the last Run that held it, too: a batch that was
	// refused, was stopped, or is to be diagnosed, may be run again.
	Run(b *batch.Batch, in [][]float32) (out [][]float32, err error)
	// Logits returns row i of the last Run's wanted rows, in memory of the
	// stage, valid until the next Run. Only the last stage has logits.
	Logits(i int) []float32
	// Diagnose runs the batch again and returns a description of the first
	// step whose result is not finite; "" if all are.
	Diagnose(b *batch.Batch, in [][]float32) string
	// Profile returns the time of each step since the last call, if it was switched on.
	Profile() []StepTime
	Close() error
}

// StepTime is the measured time of one step of a stage.
type StepTime struct {
	Step    int
	Seconds float64
	Bytes   int64 // weight bytes read
}
