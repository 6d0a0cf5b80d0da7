package bench

import (
	"math"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/gemm"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// Source finds stored tensors by name.
type Source interface {
	Tensor(name string) (tensor.View, bool)
}

// reads says what each step of a program reads from memory: weights once a
// batch, experts as they are chosen, keys and values of every position seen.
type reads struct {
	steps       []stepReads
	keys, value int // bytes of one number in the cache
	caches      []graph.Cache
}

type stepReads struct {
	once    int64 // bytes of weights read once a batch
	row     int64 // bytes read for each row: of an embedding table
	outOnly bool  // runs for the wanted rows alone
	expert  int64 // bytes of one expert
	experts int
	topK    int
	att     *graph.AttentionAttr
}

// readsOf looks up the stored types of a program's weights.
func readsOf(p *program.Program, src Source, keyBytes, valueBytes int) *reads {
	r := &reads{keys: keyBytes, value: valueBytes, caches: p.Graph.Caches}
	for i := range p.Steps {
		r.steps = append(r.steps, stepOf(p, &p.Steps[i], src))
	}
	return r
}

func stepOf(p *program.Program, s *program.Step, src Source) (r stepReads) {
	if s.Rows == graph.RowsConst {
		return r // computed once, at load
	}
	s.Visit(func(b *program.Buf, write bool) {
		if write {
			r.outOnly = p.Buffers[*b].Out
		}
	})
	switch x := s.Body.(type) {
	case *program.Embed:
		r.row = rowBytes(src, x.Table)
		return r
	case *program.OpStep:
		if e, ok := p.Graph.Nodes[x.Node].Attr.(*graph.EmbedAttr); ok {
			r.row = rowBytes(src, e.Table)
			return r
		}
	case *program.Attention:
		r.att = x.Attr
	case *program.MoE:
		r.experts, r.topK = x.Experts.Experts, x.Route.TopK
	}
	for _, w := range s.Weights(p.Graph) {
		n := packedBytes(src, w)
		if r.experts > 0 && len(w.Shape) > 1 && w.Shape[0] == r.experts && perExpert(s, w) {
			r.expert += n / int64(r.experts)
			continue
		}
		r.once += n
	}
	return r
}

// rowBytes is the stored size of a table's row.
func rowBytes(src Source, w *graph.Weight) int64 {
	t, _ := storedType(src, w)
	n, _ := t.RowBytes(w.Cols())
	return int64(n)
}

// perExpert says that a weight is one of the experts' own.
func perExpert(s *program.Step, w *graph.Weight) bool {
	e := s.Body.(*program.MoE).Experts
	for _, x := range []*graph.Weight{e.Gate, e.Up, e.Down, e.GateBias, e.UpBias, e.DownBias} {
		if x == w {
			return true
		}
	}
	return false
}

// storedType is the type in which an expression is stored once it is
// evaluated: that of its tensors where only rows move, else float32.
func storedType(src Source, w *graph.Weight) (quant.Type, bool) {
	switch w.Op {
	case graph.WTensor:
		v, ok := src.Tensor(w.Name)
		return v.Type, ok
	case graph.WMXFP4:
		return quant.MXFP4, true
	case graph.WAffine, graph.WMap, graph.WConst, graph.WScale:
		return quant.F32, true
	}
	var first quant.Type
	for i, name := range w.Names {
		v, ok := src.Tensor(name)
		if !ok {
			return 0, false
		}
		if i > 0 && v.Type != first {
			return quant.F32, true
		}
		first = v.Type
	}
	for i, a := range w.Args {
		t, ok := storedType(src, a)
		if !ok {
			return 0, false
		}
		if i > 0 && t != first {
			return quant.F32, true
		}
		first = t
	}
	return first, len(w.Args)+len(w.Names) > 0
}

// packedBytes is what a pass over a weight reads. Vectors are float32; a
// matrix whose type has no panels is packed as float32.
func packedBytes(src Source, w *graph.Weight) int64 {
	t, ok := storedType(src, w)
	if !ok {
		return 0
	}
	if len(w.Shape) < 2 {
		return 4 * int64(graph.Product(w.Shape))
	}
	if !gemm.Supported(t) {
		t = quant.F32
	}
	stack, n := 1, w.Rows()
	if len(w.Shape) > 2 {
		stack, n = w.Shape[0], n/w.Shape[0]
	}
	b, err := gemm.PackedBytes(t, n, w.Cols())
	if err != nil {
		return 4 * int64(w.Rows()) * int64(w.Cols())
	}
	return int64(stack) * int64(b)
}

// weights is what the steps read of weights for a batch of rows, outs of them wanted.
func (r *reads) weights(rows, outs int) (n int64) {
	for i := range r.steps {
		n += r.steps[i].weights(rows, outs)
	}
	return n
}

func (s *stepReads) weights(rows, outs int) int64 {
	if s.outOnly {
		rows = outs
	}
	if rows == 0 {
		return 0
	}
	n := s.once + s.row*int64(rows)
	if s.experts > 0 {
		// Rows that choose independently leave an expert out with (1 − k/E)^rows.
		used := float64(s.experts) * (1 - math.Pow(1-float64(s.topK)/float64(s.experts), float64(rows)))
		n += int64(used * float64(s.expert))
	}
	return n
}

// all is the size of a step's packed weights, all experts of them.
func (s *stepReads) all() int64 { return s.once + s.expert*int64(s.experts) }

// cached is what attention reads of keys and values for rows of one sequence
// at positions from … from+rows−1: each key and value once.
func (r *reads) cached(from, rows int) (n int64) {
	for i := range r.steps {
		a := r.steps[i].att
		if a == nil || a.Cache >= len(r.caches) {
			continue
		}
		c := r.caches[a.Cache]
		seen := from + rows
		if a.Window > 0 {
			seen = min(seen, a.Window+a.First+rows-1)
		}
		n += int64(seen) * cacheBytes(c, r.keys, r.value)
	}
	return n
}

// test is what one run of a test reads.
func (r *reads) test(t Test, rows int) (n int64) {
	if t.Kind == kindDecode {
		for i := range t.N {
			n += r.weights(t.Sequences, t.Sequences) + int64(t.Sequences)*r.cached(t.Depth+i, 1)
		}
		return n
	}
	for at := 0; at < t.N; at += rows {
		k, outs := min(rows, t.N-at), 0
		if at+k == t.N {
			outs = 1
		}
		n += r.weights(k, outs) + r.cached(at, k)
	}
	return n
}

// CacheBytes is what one token adds to the caches of keys and values.
func CacheBytes(caches []graph.Cache, keyBytes, valueBytes int) (n int64) {
	for _, c := range caches {
		if !c.Memory {
			n += cacheBytes(c, keyBytes, valueBytes)
		}
	}
	return n
}

// cacheBytes is what a cache holds of one token.
func cacheBytes(c graph.Cache, keyBytes, valueBytes int) int64 {
	switch c.Kind {
	case graph.CacheKV:
		return int64(c.Heads) * int64(c.KeyDim*keyBytes+c.ValueDim*valueBytes)
	case graph.CacheLatent:
		return int64(c.Heads) * int64(c.KeyDim*keyBytes)
	case graph.CacheRows:
		return 4 * int64(c.KeyDim)
	}
	return 0
}
