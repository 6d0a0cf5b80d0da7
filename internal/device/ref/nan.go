package ref

import (
	"fmt"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/weight"
)

// matrix is a weight of which every row counts: where NaN is refused, it is
// looked through once. A table's rows may never be read, so tables are not.
func (m *Machine) matrix(w *graph.Weight) (*weight.Rows, error) {
	r, err := m.weight(w)
	if err != nil || !m.RefuseNaN {
		return r, err
	}
	m.mu.Lock()
	seen := m.sound[w]
	m.mu.Unlock()
	if seen {
		return r, nil
	}
	for i := range r.Shape.Rows() {
		if c := weight.FindNaN(r.Type, r.Row(i)); c >= 0 {
			return nil, fmt.Errorf("%s: row %d, column %d: %w", w, i, c, weight.ErrNaN)
		}
	}
	m.mu.Lock()
	m.sound[w] = true
	m.mu.Unlock()
	return r, nil
}

// refused is an error where values of a vector are NaN and that is refused.
func (m *Machine) refused(w *graph.Weight, v []float32) error {
	for i, x := range v {
		if m.RefuseNaN && x != x {
			return fmt.Errorf("%s: value %d: %w", w, i, weight.ErrNaN)
		}
	}
	return nil
}
