package ref

import (
	"fmt"
	"math"
	"sync"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/weight"
)

// embed reads rows of a table; of is the node whose numbers choose them.
func (m *Machine) embed(a *graph.EmbedAttr, of *graph.Node, ids, out *Value) error {
	t, err := m.weight(a.Table)
	if err != nil {
		return err
	}
	lead := t
	if a.Lead != nil {
		if lead, err = m.weight(a.Lead); err != nil {
			return err
		}
	}
	perID := 1
	if n := t.Shape.Cols(); n > 0 {
		perID = out.Width / n
	}
	for i := 0; i < out.Rows; i++ {
		x := float64(ids.Row(i)[0])
		if x != math.Trunc(x) {
			return fmt.Errorf("%s %v is no whole number: floor(x) makes one", indexed(of), x)
		}
		if math.Abs(x) > math.MaxInt32 {
			return fmt.Errorf("%s %v is outside the table of %d rows", indexed(of), x, t.Shape[0])
		}
		id := int(x)
		if a.Guard > 0 && id >= a.Guard {
			id = 0
		}
		from := t
		if a.Lead != nil && id >= t.Shape[0] {
			from, id = lead, id-t.Shape[0]
		}
		if id < 0 || id >= from.Shape[0] {
			return fmt.Errorf("%s %d is outside the table of %d rows", indexed(of), id, t.Shape[0])
		}
		c := t.Shape.Cols()
		for k := 0; k < perID; k++ {
			if err := from.Floats(out.Row(i)[k*c:(k+1)*c], id*perID+k); err != nil {
				return err
			}
		}
	}
	return nil
}

// indexed says what numbers choose the rows of a table.
func indexed(of *graph.Node) string {
	switch of.Op {
	case graph.OpTokens:
		return "token id"
	case graph.OpPositions:
		return "position"
	case graph.OpTypes:
		return "token type"
	}
	return "index"
}

func (m *Machine) linear(a *graph.LinearAttr, x, out *Value) error {
	w, err := m.matrix(a.W)
	if err != nil {
		return err
	}
	b, err := m.vector(a.B)
	if err != nil {
		return err
	}
	in, n := w.Shape.Cols(), w.Shape.Rows()
	parts := x.Width / in // the product is over the last axis of x
	return m.parallel(n, func(from, to int) error {
		buf := make([]float32, in)
		for o := from; o < to; o++ {
			if err := w.Floats(buf, o); err != nil {
				return err
			}
			for t := 0; t < out.Rows; t++ {
				xr, yr := x.Row(t), out.Row(t)
				for p := 0; p < parts; p++ {
					s := dot(xr[p*in:(p+1)*in], buf)
					if b != nil {
						s += float64(b[o])
					}
					yr[p*n+o] = float32(s)
				}
			}
		}
		return nil
	})
}

func dot(x, y []float32) float64 {
	s := 0.0
	for i, v := range x {
		s += float64(v) * float64(y[i])
	}
	return s
}

// parallel splits [0, n) over the machine's threads.
func (m *Machine) parallel(n int, f func(from, to int) error) error {
	k := max(1, min(m.Threads, n))
	errs := make([]error, k)
	var wg sync.WaitGroup
	for i := 0; i < k; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = f(i*n/k, (i+1)*n/k)
		}()
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// matvec is y = W_e·x (+ b) for expert e of a stacked weight [E, out, in].
func matvec(w *weight.Rows, e int, x, buf []float32, bias []float32, y []float32) error {
	n := w.Shape[1]
	for o := 0; o < n; o++ {
		if err := w.Floats(buf[:len(x)], e*n+o); err != nil {
			return err
		}
		s := dot(x, buf[:len(x)])
		if bias != nil {
			s += float64(bias[e*n+o])
		}
		y[o] = float32(s)
	}
	return nil
}
