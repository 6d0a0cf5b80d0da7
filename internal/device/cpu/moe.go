package cpu

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/kernel/gemm"
	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/program"
)

// moeSize is the largest of all MoE steps of a stage.
type moeSize struct{ experts, scores, topK, hidden, width, k int }

// moeBuffers is what MoE steps share: the choice and the rows sorted by expert.
type moeBuffers struct {
	scores []float32 // [rows][scores]
	ids    []int32   // [rows][topK] ascending
	weight []float32 // [rows][topK]
	row    []int32   // of each pair, pairs sorted by expert then row
	pair   []int32   // [rows][topK] → pair
	start  []int32   // first pair of each expert; one more
	active []int32   // experts with pairs
	hidden []float32 // [pairs][hidden]
	out    []float32 // [pairs][width]
	in     [2]*gemm.Acts
	mid    [2]*gemm.Acts
	tmp    []float64
	order  []int
	fill   []int32
}

func newMoEBuffers(z moeSize, rows int) *moeBuffers {
	pairs := rows * z.topK
	m := &moeBuffers{scores: make([]float32, rows*z.scores), ids: make([]int32, pairs), weight: make([]float32, pairs),
		row: make([]int32, pairs), pair: make([]int32, pairs), start: make([]int32, z.scores+1), fill: make([]int32, z.scores+1),
		active: make([]int32, 0, z.scores), hidden: make([]float32, pairs*z.hidden), out: make([]float32, pairs*z.width),
		tmp: make([]float64, 2*z.scores), order: make([]int, z.scores)}
	for i := range m.in {
		m.in[i], m.mid[i] = gemm.NewActs(pairs, z.k), gemm.NewActs(pairs, z.hidden)
	}
	return m
}

// moe runs a program.MoE.
type moe struct {
	prep
	step              *program.MoE
	router            *gemm.Matrix
	routerPrep        prep
	bRouter           []float32
	bias, per         []float32
	gate, up, down    []*gemm.Matrix
	bGate, bUp, bDown []float32
	hidden            int
	epi               epilogue
	act               func(gate, up []float32)
	downKind          gemm.Kind
}

func (l *loader) lowerMoE(x *program.MoE) (executor, error) {
	a := x.Experts
	e := &moe{step: x, hidden: a.Up.Shape[1]}
	var err error
	expertInputs := []*graph.Weight{a.Gate, a.Up}
	if x.RouterIn == program.None {
		expertInputs = append(expertInputs, x.Router.W)
	} else if e.routerPrep, err = l.prep(nil, x.Router.W); err != nil {
		return nil, err
	}
	if e.prep, err = l.prep(x.PreNorm, expertInputs...); err != nil {
		return nil, err
	}
	if err = l.matrix(x.Router.W, &e.router); err != nil {
		return nil, err
	}
	for _, v := range []struct {
		w   *graph.Weight
		out *[]float32
	}{{x.Router.B, &e.bRouter}, {x.Route.Bias, &e.bias}, {x.Route.PerExpert, &e.per}, {a.GateBias, &e.bGate}, {a.UpBias, &e.bUp}, {a.DownBias, &e.bDown}} {
		if *v.out, err = l.vector(v.w); err != nil {
			return nil, err
		}
	}
	for _, v := range []struct {
		w   *graph.Weight
		out *[]*gemm.Matrix
	}{{a.Gate, &e.gate}, {a.Up, &e.up}, {a.Down, &e.down}} {
		if err = l.experts(v.w, v.out); err != nil {
			return nil, err
		}
	}
	if e.downKind, err = l.kindOf(a.Down); err != nil {
		return nil, err
	}
	if e.epi, err = makeEpilogue(x.Epi); err != nil {
		return nil, err
	}
	if e.act, err = expertAct(a); err != nil {
		return nil, err
	}
	l.maxK = max(l.maxK, a.Down.Shape[1])
	l.moe.grow(e, x, a.Up.Cols(), a.Down.Shape[1])
	l.counters += 6
	return e, nil
}

func (z *moeSize) grow(e *moe, x *program.MoE, k, width int) {
	z.experts, z.scores = max(z.experts, x.Experts.Experts), max(z.scores, x.Router.W.Shape[0])
	z.topK, z.hidden = max(z.topK, x.Route.TopK), max(z.hidden, e.hidden)
	z.width, z.k = max(z.width, width, k), max(z.k, k) // out also holds weighted inputs
}

// experts packs each expert of a stacked weight [E, out, in] as a matrix.
func (l *loader) experts(w *graph.Weight, out *[]*gemm.Matrix) error {
	if w == nil {
		return nil
	}
	r, err := l.resolve(w)
	if err != nil {
		return err
	}
	*out = make([]*gemm.Matrix, w.Shape[0])
	for i := range *out {
		if err := l.rows(w, r, i*w.Shape[1], w.Shape[1], &(*out)[i]); err != nil {
			return err
		}
	}
	return nil
}

// expertAct is up = act(gate, up).
func expertAct(a *graph.ExpertsAttr) (func(gate, up []float32), error) {
	alpha, limit := float32(a.Alpha), float32(a.Limit)
	if a.Act == "swiglu_clamp" {
		return func(gate, up []float32) { vec.ClampedSwiGLU(up, gate, up, alpha, limit) }, nil
	}
	u := &graph.UnaryAttr{F: a.Act}
	if a.Gate == nil {
		f, err := activation(u)
		return func(_, up []float32) { f(up) }, err
	}
	g, err := gating(u)
	return func(gate, up []float32) {
		if limit > 0 {
			for i := range up {
				gate[i], up[i] = min(gate[i], limit), min(max(up[i], -limit), limit)
			}
		}
		g(up, gate, up)
	}, err
}

func (e *moe) run(s *Stage, w *worker) {
	x, width := s.buf(e.step.In)
	rows := s.rowsOf(e.step.Out)
	rx, racts := x, (*[2]*gemm.Acts)(nil)
	if e.step.RouterIn != program.None {
		var rw int
		rx, rw = s.buf(e.step.RouterIn)
		racts = e.routerPrep.run(s, w, rx, rw, rows)
		e.scores(s, w, racts, rows)
		s.team.Barrier(w.id)
		e.prep.run(s, w, x, width, rows)
	} else {
		racts = e.prep.run(s, w, x, width, rows)
		e.scores(s, w, racts, rows)
	}
	s.team.Barrier(w.id)
	if w.id == 0 {
		e.sortPairs(s, rows)
		e.gather(s, w, rows)
	}
	s.team.Barrier(w.id)
	e.first(s, w)
	s.team.Barrier(w.id)
	e.prepareHidden(s, w)
	s.team.Barrier(w.id)
	e.second(s, w)
	s.team.Barrier(w.id)
	s.byRows(w, rows, e)
}

func (e *moe) scores(s *Stage, w *worker, acts *[2]*gemm.Acts, rows int) {
	c := s.counter(w)
	n := e.router.N()
	for from, to, ok := claim(c, e.router.Panels(), 1); ok; from, to, ok = claim(c, e.router.Panels(), 1) {
		product(e.router, acts, w.tile, 0, rows, from, to, w)
		col, cols := from*16, min(to*16, n)-from*16
		for r := 0; r < rows; r++ {
			dst := s.moe.scores[r*n+col : r*n+col+cols]
			copy(dst, w.tile[r*16:])
			if e.bRouter != nil {
				vec.Add(dst, dst, e.bRouter[col:col+cols])
			}
		}
	}
}

// sortPairs chooses the experts of every row and sorts the pairs by expert.
func (e *moe) sortPairs(s *Stage, rows int) {
	m, n, k := s.moe, e.router.N(), e.step.Route.TopK
	start := m.start[:n+1]
	for i := range start {
		start[i] = 0
	}
	for r := 0; r < rows; r++ {
		ids, w := m.ids[r*k:(r+1)*k], m.weight[r*k:(r+1)*k]
		m.choose(e.step.Route, m.scores[r*n:(r+1)*n], e.bias, e.per, ids, w)
		for _, id := range ids {
			start[id+1]++
		}
	}
	m.active = m.active[:0]
	for i := 0; i < n; i++ {
		if start[i+1] > 0 && i < len(e.up) {
			m.active = append(m.active, int32(i))
		}
		start[i+1] += start[i]
	}
	fill := m.fill[:n]
	copy(fill, start)
	for i, id := range m.ids[:rows*k] {
		m.row[fill[id]], m.pair[i] = int32(i/k), fill[id]
		fill[id]++
	}
}

// gather copies the prepared rows in the order of pairs, scaled where the
// route weighs the expert's input.
func (e *moe) gather(s *Stage, w *worker, rows int) {
	m, k := s.moe, e.step.Route.TopK
	if e.step.Experts.WeightInput {
		e.gatherWeighted(s, w, rows)
		return
	}
	src := &s.shared
	if rows <= privateRows {
		src = &w.acts
	}
	for kind, on := range e.prep.kinds {
		if on {
			m.in[kind].Gather(src[kind], m.row[:rows*k])
		}
	}
}

func (e *moe) gatherWeighted(s *Stage, w *worker, rows int) {
	m, k := s.moe, e.step.Route.TopK
	x, width := s.buf(e.step.In)
	tmp := m.out[:rows*k*e.prep.k]
	for i := 0; i < rows*k; i++ {
		p := int(m.pair[i])
		y := tmp[p*e.prep.k : (p+1)*e.prep.k]
		row := x[i/k*width : i/k*width+e.prep.k]
		if e.prep.norm != nil {
			e.prep.norm.row(y, row)
			row = y
		}
		vec.Scale(y, row, m.weight[i])
	}
	for kind, on := range e.prep.kinds {
		if on {
			m.in[kind].Prepare(gemm.Kind(kind), tmp, e.prep.k, rows*k, e.prep.k, 0, rows*k)
		}
	}
}

// first computes act(gate) ⊙ up for the pairs of each active expert.
func (e *moe) first(s *Stage, w *worker) {
	m := s.moe
	panels := e.up[0].Panels()
	chunk := chunkOf(panels*len(m.active), s.team.Size(), fewRows+1)
	per := (panels + chunk - 1) / chunk
	c := s.counter(w)
	for i, _, ok := claim(c, per*len(m.active), 1); ok; i, _, ok = claim(c, per*len(m.active), 1) {
		id := int(m.active[i/per])
		from := i % per * chunk
		e.firstTile(s, w, id, from, min(panels, from+chunk))
	}
}

func (e *moe) firstTile(s *Stage, w *worker, id, from, to int) {
	m := s.moe
	col, cols := from*16, min(to*16, e.hidden)-from*16
	for p := int(m.start[id]); p < int(m.start[id+1]); p += s.o.Limits.Rows {
		end := min(int(m.start[id+1]), p+s.o.Limits.Rows)
		up, gate := w.tile[:(end-p)*tileCols], w.tile[len(w.tile)/2:]
		e.up[id].MulTile(up, tileCols, m.in[gemm.KindOf(e.up[id].Type())], p, end, from, to, w.mul)
		if e.gate != nil {
			e.gate[id].MulTile(gate, tileCols, m.in[gemm.KindOf(e.gate[id].Type())], p, end, from, to, w.mul)
		}
		for r := p; r < end; r++ {
			u, g := up[(r-p)*tileCols:][:cols], gate[(r-p)*tileCols:][:cols]
			addPart(u, e.bUp, id*e.hidden+col)
			addPart(g, e.bGate, id*e.hidden+col)
			e.act(g, u)
			copy(m.hidden[r*e.hidden+col:], u)
		}
	}
}

func addPart(x, bias []float32, at int) {
	if bias != nil {
		vec.Add(x, x, bias[at:at+len(x)])
	}
}

func (e *moe) prepareHidden(s *Stage, w *worker) {
	pairs := int(s.moe.start[e.router.N()])
	c := s.counter(w)
	chunk := max(1, pairs/(4*s.team.Size()))
	for from, to, ok := claim(c, pairs, chunk); ok; from, to, ok = claim(c, pairs, chunk) {
		s.moe.mid[e.downKind].Prepare(e.downKind, s.moe.hidden, e.hidden, pairs, e.hidden, from, to)
	}
}

// second computes the experts' outputs, unweighted.
func (e *moe) second(s *Stage, w *worker) {
	m, n := s.moe, e.down[0].N()
	panels := e.down[0].Panels()
	chunk := chunkOf(panels*len(m.active), s.team.Size(), fewRows+1)
	per := (panels + chunk - 1) / chunk
	c := s.counter(w)
	for i, _, ok := claim(c, per*len(m.active), 1); ok; i, _, ok = claim(c, per*len(m.active), 1) {
		id := int(m.active[i/per])
		from := i % per * chunk
		e.down[id].Mul(m.out, n, m.mid[e.downKind], int(m.start[id]), int(m.start[id+1]), from, min(panels, from+chunk), w.mul)
	}
}

// row adds the outputs of one row's experts in ascending id and finishes it.
func (e *moe) row(s *Stage, w *worker, r int) {
	m, k, n := s.moe, e.step.Route.TopK, e.down[0].N()
	y := w.norm[:n]
	for i := range y {
		y[i] = 0
	}
	for j := r * k; j < (r+1)*k; j++ {
		id, weight := int(m.ids[j]), m.weight[j]
		if id >= len(e.up) {
			e.identity(s, w, y, r, weight)
			continue
		}
		out := m.out[int(m.pair[j])*n:][:n]
		addPart(out, e.bDown, id*n)
		if e.step.Experts.WeightInput {
			weight = 1
		}
		vec.AXPY(y, weight, out)
	}
	out, _ := s.buf(e.step.Out)
	e.epi.finish(s, out, y, r*n)
}

// identity adds an expert that returns its input.
func (e *moe) identity(s *Stage, w *worker, y []float32, r int, weight float32) {
	x, width := s.buf(e.step.In)
	row := x[r*width : (r+1)*width]
	if e.prep.norm != nil {
		e.prep.norm.row(w.regs[:0:len(w.regs)][:width], row)
		row = w.regs[:width]
	}
	vec.AXPY(y, weight, row)
}
