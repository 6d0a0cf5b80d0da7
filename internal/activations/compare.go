package activations

import (
	"fmt"
	"math"
	"slices"

	"github.com/inferflow/inferflow/internal/batch"
	"github.com/inferflow/inferflow/internal/device/ref"
	"github.com/inferflow/inferflow/internal/graph"
)

// Match is a value of the graph held against one of the reference.
type Match struct {
	Name        string     // of the reference's value
	Line        graph.Line // that made the graph's value
	Layer       int
	Shape       []int   // of a row
	Error       float64 // largest difference, as a part of the largest value of the reference
	Row, Column int     // where it is
	Got, Want   float32
	// Of values that differ: the first row that does, and what the reference's
	// numbers are of these where that is the same everywhere, else 0.
	FirstRow int
	Factor   float64
	Unknown  int // numbers that are NaN on both sides, which nothing can tell apart
	// Namesake says that what is computed from the value agrees although it does
	// not: the reference's module of that name gives something else, such as a
	// norm that gates as well.
	Namesake    bool
	Rows        int // of the reference's value where it has another number of rows than the graph's; of a match its last are compared
	node, asked int
}

// Difference is the first value that differs.
type Difference struct {
	Match
	// Between says that the value itself agrees as the output of Agrees[0], but
	// not as the input of Name: the reference does something in between that
	// the specification does not.
	Between bool
	Agrees  []string     // values that it is computed from and that agree
	Lines   []graph.Line // from those to it, itself last
}

// Report is the outcome of a comparison.
type Report struct {
	Matches  []Match  // in the order of the graph
	Apart    []Match  // names that both have but whose shapes differ
	Absent   []string // modules of the reference that no name of the graph fits
	First    *Difference
	Worst    float64
	Compared int
}

// Undecided is the first value with numbers that are NaN on both sides, nil
// where there is none: such a value neither agrees nor differs.
func (r *Report) Undecided() *Match {
	for i := range r.Matches {
		if m := &r.Matches[i]; m.Unknown > 0 && !m.Namesake {
			return m
		}
	}
	return nil
}

// Compare runs the graph exactly over batches of the reference's ids (of an
// encoder-decoder: the source, then the decoder's) and holds every named value
// against the reference's. tol is the error from which on values differ.
func Compare(m *ref.Machine, r *Reference, tol float64, batches ...*batch.Batch) (*Report, error) {
	c := &comparison{r: r, rep: &Report{}, points: map[int][]point{}, tol: tol, pooled: m.Graph.Pooled()}
	c.lead, _ = graph.Lead(m.Graph)
	for _, p := range points(m.Graph) {
		c.points[p.node] = append(c.points[p.node], p)
	}
	var failed error
	for _, b := range batches {
		_, err := m.Trace(b, func(n *graph.Node, v *ref.Value) {
			if failed == nil {
				failed = c.visit(n, v)
			}
		})
		if err == nil {
			err = failed
		}
		if err != nil {
			return nil, err
		}
	}
	c.finish(m.Graph)
	return c.rep, nil
}

type comparison struct {
	r      *Reference
	rep    *Report
	points map[int][]point
	tol    float64
	pooled []bool // nodes with one row for all tokens
	lead   int    // rows that the graph puts before the text
}

// visit compares a node's value with all that the reference has of it.
func (c *comparison) visit(n *graph.Node, v *ref.Value) error {
	for _, p := range c.points[n.ID] {
		t, ok := c.r.find(p.name, p.call)
		if !ok {
			continue
		}
		want, shape, err := floats(t)
		if err != nil {
			return err
		}
		m := Match{Name: t.Name, Line: n.Line, Layer: n.Layer, Shape: n.Shape, node: n.ID, asked: p.asked}
		held := v
		if c.pooled[n.ID] && len(want) == v.Width && v.Rows > 0 {
			held = &ref.Value{Rows: 1, Width: v.Width, Data: v.Row(0)}
			shape = append([]int{1}, shape...)
		}
		if text := v.Rows - c.lead; c.lead > 0 && text > 0 && len(want) == text*v.Width { // the reference has cut them off
			held = &ref.Value{Rows: text, Width: v.Width, Data: v.Data[c.lead*v.Width:]}
		}
		if !c.measure(&m, held, want, shape, p.pick) {
			if m.Shape = shape; rowsOf(shape, v.Width) != held.Rows {
				m.Rows = rowsOf(shape, v.Width)
			}
			c.rep.Apart = append(c.rep.Apart, m)
			continue
		}
		c.rep.Matches = append(c.rep.Matches, m)
	}
	delete(c.points, n.ID) // what is the same for all rows is computed again for the decoder
	return nil
}

// measure fills in the error; false where the shapes do not fit.
func (c *comparison) measure(m *Match, v *ref.Value, want []float32, shape []int, pick []int) bool {
	rows := v.Rows
	if pick == nil && (c.ahead(m, v, want, shape) || c.behindOthers(m, v, want, shape)) {
		return true
	}
	*m = Match{Name: m.Name, Line: m.Line, Layer: m.Layer, Shape: m.Shape, node: m.node, asked: m.asked}
	if rows == 0 || len(want)%rows != 0 {
		return false
	}
	width := len(want) / rows
	if pick != nil {
		if len(pick) != v.Width || slices.Max(pick) >= width {
			return false
		}
		c.hold(m, v, want, func(i, j int) int { return i*width + pick[j] })
		return true
	}
	if width != v.Width {
		return false
	}
	if last := shape[len(shape)-1]; len(shape) > 1 && last == rows && shape[0] != rows {
		c.hold(m, v, want, func(i, j int) int { return j*rows + i }) // [channels, rows], as convolutions take it
	} else {
		c.hold(m, v, want, func(i, j int) int { return i*width + j })
	}
	c.tryLayouts(m, v, want, shape)
	return true
}

// tryLayouts holds the value against other usual layouts of a reference of the
// same size, while it differs: [heads, rows, d], [channels, rows] and [rows, channels].
func (c *comparison) tryLayouts(m *Match, v *ref.Value, want []float32, shape []int) {
	rows, width := v.Rows, v.Width
	try := func(at func(i, j int) int) {
		if m.Error <= c.tol {
			return
		}
		other := *m
		if c.hold(&other, v, want, at); other.Error <= c.tol || len(shape) == 3 && shape[1] == rows && other.Error < m.Error {
			*m = other
		}
	}
	if len(shape) == 3 && shape[1] == rows {
		h, d := shape[0], shape[2]
		try(func(i, j int) int { return (j/d%h)*rows*d + i*d + j%d })
	}
	if len(shape) > 1 && shape[len(shape)-1] == rows {
		try(func(i, j int) int { return j*rows + i })
		try(func(i, j int) int { return i*width + j })
	}
}

// ahead holds a value against a convolution that is padded on both sides: of
// its [channels, positions] the first positions are the rows. Only agreement tells.
func (c *comparison) ahead(m *Match, v *ref.Value, want []float32, shape []int) bool {
	n := len(shape)
	if n < 2 || shape[n-1] <= v.Rows || v.Rows == 0 || len(want) != shape[n-1]*v.Width {
		return false
	}
	c.hold(m, v, want, func(i, j int) int { return j*shape[n-1] + i })
	return m.Error <= c.tol
}

// behindOthers holds a value against a reference that puts rows of its own before
// the text's: its last rows are the tokens'. Only agreement tells.
func (c *comparison) behindOthers(m *Match, v *ref.Value, want []float32, shape []int) bool {
	if len(shape) < 2 || v.Rows == 0 {
		return false
	}
	n, at := rowsOf(shape, v.Width), func(i, j int) int { return (len(want)/v.Width-v.Rows+i)*v.Width + j }
	if k := shape[len(shape)-1]; n == 0 && len(want) == k*v.Width { // [channels, rows], as convolutions take it
		n, at = k, func(i, j int) int { return j*k + k - v.Rows + i }
	}
	if n <= v.Rows || len(want) != n*v.Width {
		return false
	}
	c.hold(m, v, want, at)
	m.Rows = n
	return m.Error <= c.tol
}

// rowsOf is the number of rows of a value [rows, …] of a width; 0: it is none.
func rowsOf(shape []int, width int) int {
	if len(shape) < 2 {
		return 0
	}
	n := 1
	for _, d := range shape[1:] {
		n *= d
	}
	if n != width {
		return 0
	}
	return shape[0]
}

// hold compares all numbers and, where they differ, tells how.
func (c *comparison) hold(m *Match, v *ref.Value, want []float32, at func(i, j int) int) {
	m.largest(v, want, at)
	if m.Error > c.tol {
		m.character(v, want, at, c.tol)
	}
}

// character finds the first row that differs and a factor common to all numbers.
func (m *Match) character(v *ref.Value, want []float32, at func(i, j int) int, tol float64) {
	var gw, gg, top float64
	m.FirstRow = -1
	for i := range v.Rows {
		for j, x := range v.Row(i) {
			g, w := float64(x), float64(want[at(i, j)])
			if gw, gg = gw+g*w, gg+g*g; math.Abs(w) > top && !math.IsInf(w, 0) {
				top = math.Abs(w)
			}
		}
	}
	factor, same := gw/gg, gg > 0
	for i := range v.Rows {
		for j, x := range v.Row(i) {
			g, w := float64(x), float64(want[at(i, j)])
			if m.FirstRow < 0 && !(g == w || g != g && w != w || math.Abs(g-w) <= tol*top) {
				m.FirstRow = i
			}
			same = same && math.Abs(factor*g-w) <= tol*top
		}
	}
	if m.Factor = 0; same {
		m.Factor = factor
	}
}

// largest finds the largest difference; at gives the place in want of column j
// of row i.
func (m *Match) largest(v *ref.Value, want []float32, at func(i, j int) int) {
	m.Error, m.Unknown = 0, 0
	var top, worst float64 // of what is a finite number there
	for i := range v.Rows {
		for j, x := range v.Row(i) {
			w := want[at(i, j)]
			if size := math.Abs(float64(w)); size > top && !math.IsInf(size, 0) {
				top = size
			}
			if w != w && x != x {
				m.Unknown++
			}
			d := math.Abs(float64(x) - float64(w))
			if x == w || w != w && x != x {
				d = 0 // infinities, and what neither knows
			} else if d != d || math.IsInf(d, 0) {
				d = math.MaxFloat64
			}
			if d > worst || i == 0 && j == 0 {
				worst, m.Row, m.Column, m.Got, m.Want = math.Max(worst, d), i, j, x, w
			}
		}
	}
	switch {
	case worst == 0:
	case top == 0 || worst == math.MaxFloat64:
		m.Error = math.Inf(1)
	default:
		m.Error = worst / top
	}
}

// finish finds the first difference and what the graph does not name.
func (c *comparison) finish(g *graph.Graph) {
	r := c.rep
	r.Compared = len(r.Matches)
	agrees := map[int]string{}
	seen := map[string]bool{}
	for _, m := range r.Matches {
		seen[m.Name] = true
		if m.Error <= c.tol && m.Unknown == 0 && agrees[m.node] == "" {
			agrees[m.node] = m.Name
		}
	}
	for _, m := range r.Apart {
		seen[m.Name] = true
	}
	for _, name := range c.r.Names() {
		if !seen[name] && module(name) == name {
			r.Absent = append(r.Absent, name)
		}
	}
	c.namesakes(g, agrees)
	for _, m := range r.Matches {
		if m.Namesake {
			continue
		}
		r.Worst = math.Max(r.Worst, m.Error)
		if m.Error > c.tol && (r.First == nil || place(m, agrees) < place(r.First.Match, agrees)) {
			r.First = &Difference{Match: m}
		}
	}
	if d := r.First; d != nil {
		if name := agrees[d.node]; name != "" {
			d.Between, d.Agrees, d.Lines = true, []string{name}, []graph.Line{g.Nodes[d.node].Line, g.Nodes[d.asked].Line}
			d.Line = g.Nodes[d.asked].Line
			return
		}
		d.behind(g, agrees)
	}
}

// clearly is how many times the tolerance an error must be to count as one that
// would show in what is computed from the value.
const clearly = 100

// namesakes marks values that differ clearly while what is computed from them agrees.
func (c *comparison) namesakes(g *graph.Graph, agrees map[int]string) {
	users := make([][]int, len(g.Nodes))
	for _, n := range g.Nodes {
		for _, in := range n.In {
			users[in] = append(users[in], n.ID)
		}
	}
	differs := map[int]bool{}
	for i := len(c.rep.Matches) - 1; i >= 0; i-- {
		m := &c.rep.Matches[i]
		if m.Error <= c.tol {
			continue
		}
		start := m.node
		if agrees[start] != "" {
			start = m.asked
		}
		m.Namesake = m.Error > clearly*c.tol && leadsToAgreement(start, users, agrees, differs)
		differs[start] = differs[start] || !m.Namesake
	}
}

// leadsToAgreement walks to what is computed from a node, as far as it was
// compared: some of it agrees, and none differs.
func leadsToAgreement(start int, users [][]int, agrees map[int]string, differs map[int]bool) bool {
	seen, todo, found := map[int]bool{start: true}, []int{start}, false
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, u := range users[id] {
			switch {
			case differs[u]:
				return false
			case agrees[u] != "":
				found = true
			case !seen[u]:
				seen[u] = true
				todo = append(todo, u)
			}
		}
	}
	return found
}

// place orders differences: a value that agrees as an output counts where it
// is read.
func place(m Match, agrees map[int]string) int {
	if agrees[m.node] != "" {
		return m.asked
	}
	return m.node
}

// behind walks from the value back to values that agree.
func (d *Difference) behind(g *graph.Graph, agrees map[int]string) {
	seen := map[int]bool{}
	lines := map[graph.Line]int{}
	var walk func(id int)
	walk = func(id int) {
		id = source(g, id)
		if seen[id] {
			return
		}
		seen[id] = true
		n := g.Nodes[id]
		if n.Line.Line > 0 {
			lines[n.Line] = max(lines[n.Line], id)
		}
		if name := agrees[id]; name != "" && id != d.node {
			d.Agrees = append(d.Agrees, name)
			return
		}
		for _, in := range n.In {
			walk(in)
		}
	}
	walk(d.node)
	for l := range lines {
		d.Lines = append(d.Lines, l)
	}
	slices.SortFunc(d.Lines, func(a, b graph.Line) int { return lines[a] - lines[b] })
	slices.Sort(d.Agrees)
}

// String says in one line where the value differs.
func (m Match) String() string {
	return fmt.Sprintf("%s: error %.1e at row %d, column %d: %g, reference %g", m.Name, m.Error, m.Row, m.Column, m.Got, m.Want)
}
