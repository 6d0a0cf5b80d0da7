package cpu

import (
	"fmt"
	"math"
	"sort"
	"unsafe"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/device"
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/gemm"
	"github.com/inferflow/inferflow/internal/program"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/internal/weight"
	"github.com/inferflow/inferflow/quant"
)

// loader lowers a program: one executor a step, weights packed into an arena.
type loader struct {
	s    *Stage
	src  weight.Source
	jobs []*job
	seen map[*graph.Weight]*weight.Rows // evaluated once, however many steps and questions
	maxK int
	// counters needed by one run, private rows of scratch tiles
	counters int
	unrolled map[unrolled]*ref.Distances
	qkv      int
	bandY    int // columns of the second product of bands at most
	headK    int // inputs of a matrix a head at most
	index16  int // heads of an index at most
	indexDim int // values of a key of an index at most
	moe      moeSize
	// values of one head of the largest recurrence
	recurrence int
	// values of the largest state of a source's rows, which nothing keeps
	passing int
}

// job packs one matrix: n rows of a resolved weight from row first on.
type job struct {
	w     *graph.Weight
	rows  *weight.Rows
	typ   quant.Type
	n, k  int
	first int
	bytes int
	out   **gemm.Matrix
}

func (l *loader) load() error {
	s := l.s
	if err := program.CheckConstants(s.p); err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	for i := range s.p.Steps {
		e, err := l.lower(&s.p.Steps[i])
		if err != nil {
			return fmt.Errorf("cpu: step %d (%s, layer %d): %w", i, s.p.Steps[i].Kind, s.p.Steps[i].Layer, err)
		}
		s.exec = append(s.exec, e)
	}
	s.times = make([]device.StepTime, len(s.exec))
	for i := range s.times {
		s.times[i].Step = i
	}
	if err := l.pack(); err != nil {
		return err
	}
	l.joinBands()
	if err := l.ropes(); err != nil {
		return err
	}
	if err := l.allocate(); err != nil {
		return err
	}
	return s.constants()
}

func (l *loader) lower(st *program.Step) (executor, error) {
	switch x := st.Body.(type) {
	case *program.Embed:
		return l.embed(x)
	case *program.Norm:
		return l.norm(x)
	case *program.Linear:
		return l.linear(x)
	case *program.QKV:
		return l.lowerQKV(x)
	case *program.Attention:
		return l.attention(x)
	case *program.Put:
		l.counters++
		return &put{x}, nil
	case *program.Join:
		return l.join(x)
	case *program.Stored:
		return l.stored(x)
	case *program.MoE:
		return l.lowerMoE(x)
	case *program.Heads:
		return l.heads(x)
	case *program.Index:
		return l.index(x)
	case *program.Rows:
		l.counters++
		return &rowsExec{x}, nil
	case *program.Pool:
		return l.pool(x)
	case *program.Reverse:
		l.counters++
		return &reverse{x}, nil
	case *program.Elementwise:
		return l.elementwise(x)
	case *program.Conv1D:
		return l.conv(x)
	case *program.Recurrent:
		return l.recurrent(x)
	case *program.OpStep:
		return l.op(x)
	}
	return nil, fmt.Errorf("unknown step %q", st.Kind)
}

// resolve evaluates a weight, once: one that is transposed or otherwise made
// anew costs a copy.
func (l *loader) resolve(w *graph.Weight) (*weight.Rows, error) {
	if r, ok := l.seen[w]; ok {
		return r, nil
	}
	r, err := weight.Resolve(l.src, w)
	if err == nil {
		l.seen[w] = r
	}
	return r, err
}

// matrix asks for a weight of two dimensions, packed; *out is set by pack.
func (l *loader) matrix(w *graph.Weight, out **gemm.Matrix) error {
	return l.submatrix(w, 0, w.Rows(), out)
}

func (l *loader) submatrix(w *graph.Weight, first, n int, out **gemm.Matrix) error {
	r, err := l.resolve(w)
	if err != nil {
		return err
	}
	return l.rows(w, r, first, n, out)
}

func (l *loader) rows(w *graph.Weight, r *weight.Rows, first, n int, out **gemm.Matrix) error {
	j := &job{w: w, rows: r, typ: r.Type, n: n, k: r.Shape.Cols(), first: first, out: out}
	if !gemm.Supported(j.typ) {
		j.typ = quant.F32
	}
	b, err := gemm.PackedBytes(j.typ, j.n, j.k)
	if err != nil {
		return fmt.Errorf("%s: %w", w, err)
	}
	j.bytes = (b + 63) &^ 63
	l.jobs = append(l.jobs, j)
	l.maxK = max(l.maxK, j.k)
	return nil
}

// kindOf is the form of activations that a weight wants.
func (l *loader) kindOf(w *graph.Weight) (gemm.Kind, error) {
	r, err := l.resolve(w)
	if err != nil {
		return 0, err
	}
	if !gemm.Supported(r.Type) {
		return gemm.Float, nil
	}
	return gemm.KindOf(r.Type), nil
}

// pack fills the arena, the largest matrices first, by the whole team.
func (l *loader) pack() error {
	total := 0
	for _, j := range l.jobs {
		total += j.bytes
	}
	arena, err := sys.NewArena(max(64, total))
	if err != nil {
		return err
	}
	l.s.weights = arena
	dst := make([][]byte, len(l.jobs))
	sort.SliceStable(l.jobs, func(a, b int) bool { return l.jobs[a].bytes > l.jobs[b].bytes })
	for i, j := range l.jobs {
		if dst[i], err = arena.Bytes(j.bytes); err != nil {
			return err
		}
	}
	var next sys.Counter
	l.s.team.Run(func(int) {
		for i := next.Next(1); i < len(l.jobs); i = next.Next(1) {
			if err := l.jobs[i].pack(dst[i], l.s.o.RefuseNaN); err != nil {
				l.s.fail(err)
				return
			}
			if l.s.o.Release != nil {
				for _, name := range l.jobs[i].w.Tensors(nil) {
					l.s.o.Release(name)
				}
			}
		}
	})
	if e := l.s.failed.Swap(nil); e != nil {
		return *e
	}
	return nil
}

func (j *job) pack(dst []byte, finite bool) error {
	row := func(i int) []byte { return j.rows.Row(j.first + i) }
	var bad error
	if finite {
		row = func(i int) []byte {
			b := j.rows.Row(j.first + i)
			if c := weight.FindNaN(j.rows.Type, b); c >= 0 && bad == nil {
				bad = fmt.Errorf("row %d, column %d: %w", j.first+i, c, weight.ErrNaN)
			}
			return b
		}
	}
	if j.typ != j.rows.Type {
		buf := make([]float32, j.k)
		row = func(i int) []byte {
			if err := j.rows.Floats(buf, j.first+i); err != nil {
				bad = err
			}
			return unsafe.Slice((*byte)(unsafe.Pointer(&buf[0])), 4*len(buf))
		}
	}
	b, err := gemm.PackedBytes(j.typ, j.n, j.k)
	if err != nil {
		return err
	}
	m, err := gemm.Pack(dst[:b], j.typ, j.n, j.k, row)
	if err == nil {
		err = bad
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.w, err)
	}
	*j.out = m
	return nil
}

func (l *loader) vector(w *graph.Weight) ([]float32, error) {
	v, err := weight.Vector(l.src, w)
	if err != nil || !l.s.o.RefuseNaN {
		return v, err
	}
	for i, x := range v {
		if x != x {
			return nil, fmt.Errorf("%s: value %d: %w", w, i, weight.ErrNaN)
		}
	}
	return v, nil
}

// ropes decodes the divisors of the rotary tables.
func (l *loader) ropes() error {
	for _, t := range l.s.p.Graph.Ropes {
		r := &rope{table: t}
		var err error
		if r.div, err = l.vector(t.Divisors); err != nil {
			return err
		}
		if r.long, err = l.vector(t.LongDiv); err != nil {
			return err
		}
		r.freq = ref.Frequencies(t, 0, r.div, r.long)
		l.s.ropes = append(l.s.ropes, r)
	}
	return nil
}

// allocate reserves all buffers of a run. Memory that no batch touches costs nothing.
func (l *loader) allocate() error {
	s, rows := l.s, l.s.o.Limits.Capacity()
	total := 64
	for _, b := range s.p.Buffers {
		total += s.room(b)*4 + 64
	}
	total += rows*(l.maxK+l.qkv)*4 + 256
	for _, r := range s.ropes {
		total += rows*r.table.Dim*4 + 256
	}
	var err error
	if s.scratch, err = sys.NewArena(total); err != nil {
		return err
	}
	take := func(n int) []float32 {
		f, e := s.scratch.Float32s(n)
		if e != nil && err == nil {
			err = e
		}
		return f
	}
	for _, b := range s.p.Buffers {
		s.bufs = append(s.bufs, take(s.room(b)))
	}
	s.normed, s.qkv = take(rows*l.maxK), take(rows*l.qkv)
	for _, r := range s.ropes {
		r.cos, r.sin = take(rows*r.table.Dim/2), take(rows*r.table.Dim/2)
	}
	if err != nil {
		return err
	}
	s.shared[gemm.Float], s.shared[gemm.Int8] = gemm.NewActs(rows, l.maxK), gemm.NewActs(rows, l.maxK)
	s.counters = make([]sys.Counter, l.counters+len(s.exec)+4)
	s.out = make([][]float32, len(s.p.Out))
	if l.moe.experts > 0 {
		s.moe = newMoEBuffers(l.moe, rows)
	}
	if err := s.layOut(); err != nil {
		return err
	}
	l.workers()
	l.indexRoom()
	return nil
}

// room is the number of values that a buffer holds at most. Only rows of a
// source may be more than a batch's of tokens: the logits of so many would be
// gigabytes. What is the same for all tokens has one.
func (s *Stage) room(b program.Buffer) int {
	rows := s.o.Limits.Rows
	if b.Const {
		return b.Width + 16
	}
	if b.Memory {
		rows = s.o.Limits.Capacity()
	}
	return (rows + gemm.SpareRows) * b.Width
}

func (l *loader) workers() {
	s := l.s
	for i := 0; i < s.team.Size(); i++ {
		w := &worker{id: i, mul: gemm.NewScratch(l.maxK), norm: make([]float32, max(privateRows, 1)*l.maxK)}
		w.view, w.band = [2]*gemm.Acts{{}, {}}, [2]*gemm.Acts{{}, {}}
		if l.bandY > 0 {
			w.between, w.sums = make([]float32, (bandRows+gemm.SpareRows)*gemm.Segment), make([]float32, bandRows*l.bandY)
		}
		w.acts[gemm.Float], w.acts[gemm.Int8] = gemm.NewActs(privateRows, l.maxK), gemm.NewActs(privateRows, l.maxK)
		w.tile = make([]float32, 2*max(s.o.Limits.Capacity()*tileCols, fewRows*maxPanels*16))
		w.regs = make([]float32, max(maxRegs*tileFloats, l.maxK)) // also a whole row, of experts that return their input
		w.rec, w.passing = make([]float32, l.recurrence), make([]float32, l.passing)
		w.att = newAttention(s)
		if l.headK > 0 {
			w.heads[gemm.Float], w.heads[gemm.Int8] = gemm.NewActs(headRows, l.headK), gemm.NewActs(headRows, l.headK)
		}
		s.workers = append(s.workers, w)
	}
}

// notFinite describes the output of step i if it holds NaN or infinity.
func (s *Stage) notFinite(i int) string {
	found := ""
	s.p.Steps[i].Visit(func(b *program.Buf, write bool) {
		if !write || found != "" {
			return
		}
		data, width := s.buf(*b)
		for k, v := range data[:s.rowsOf(*b)*width] {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				found = s.describe(i, k/width, v)
				return
			}
		}
	})
	return found
}

func (s *Stage) describe(i, row int, v float32) string {
	st := s.p.Steps[i]
	line := graph.Line{}
	for _, n := range st.Nodes {
		line = s.p.Graph.Nodes[n].Line
		break
	}
	where := fmt.Sprintf("layer %d", st.Layer)
	if st.Layer < 0 {
		where = "what comes before the layers"
	} else if st.Layer >= s.p.Graph.Layers {
		where = "what comes after the layers"
	}
	return fmt.Sprintf("%s, step %s (%s), row %d: %v", where, st.Kind, line, row, v)
}

// Diagnose implements device.Stage.
func (s *Stage) Diagnose(b *batch.Batch, in [][]float32) string {
	s.checking, s.found = true, ""
	_, err := s.Run(b, in)
	s.checking = false
	if err != nil {
		return err.Error()
	}
	return s.found
}
