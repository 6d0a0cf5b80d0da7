package spec

import (
	"slices"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// Lister is what Files may have beside its methods: all stored tensors at
// once. A trace then looks up none of the thousands of experts by its name.
type Lister interface {
	// Views lists all stored tensors; bytes are not read, the list is not changed.
	Views() []tensor.View
}

// list takes stock of the stored tensors.
func (t *tracer) list() {
	files := t.files
	if part, ok := files.(*textFiles); ok {
		files = part.Files
	}
	t.series = seriesTable{}
	if l, ok := files.(Lister); ok {
		t.views = l.Views()
		t.stored = make([]string, len(t.views))
		for i := range t.views {
			t.stored[i] = t.views[i].Name
		}
		return
	}
	t.stored, t.views = files.TensorNames(), nil
}

// view is stored tensor i.
func (t *tracer) view(i int32) tensor.View {
	if t.views != nil {
		return t.views[i]
	}
	v, _ := t.files.Tensor(t.stored[i])
	return v
}

// usedNames are all stored tensors that something reads.
func (t *tracer) usedNames() map[string]bool {
	names := make(map[string]bool, len(t.used))
	for i, name := range t.stored {
		if t.series.used(i) {
			names[name] = true
		}
	}
	for name := range t.used {
		names[name] = true
	}
	return names
}

// seriesTable sorts the stored tensors into series: those whose names differ in
// one number. It is made by one pass over the names for each place of the
// number that is asked for.
type seriesTable struct {
	places [maxNumbers]*seriesPlace
	read   []bool // by stored tensor
}

// seriesPlace holds the series whose number is the k-th of the name.
type seriesPlace struct {
	series map[string]int32 // by the name with # for the number
	starts []int32          // of each series in items, and their end
	items  []seriesItem
}

// seriesItem is a tensor of a series.
type seriesItem struct{ number, stored int32 }

func (s *seriesTable) used(i int) bool { return s.read != nil && s.read[i] }

// take gives the stored tensors before0after to before(n−1)after, in order,
// and marks them as read; nil where one is missing.
func (s *seriesTable) take(stored []string, before, after string, n int) []int32 {
	k, open := numbersIn(before)
	if open || after != "" && digit(after[0]) || k >= maxNumbers {
		return nil
	}
	p := s.places[k]
	if p == nil {
		p = newSeriesPlace(stored, k)
		s.places[k] = p
	}
	i, ok := p.series[before+"#"+after]
	if !ok {
		return nil
	}
	items := p.items[p.starts[i]:p.starts[i+1]]
	if len(items) < n {
		return nil
	}
	ids, have := make([]int32, n), 0
	for _, x := range items {
		if int(x.number) >= n {
			continue
		}
		if ids[x.number] == 0 {
			have++
		}
		ids[x.number] = x.stored + 1 // the last of two of one name is the one that counts
	}
	if have < n {
		return nil
	}
	for i := range ids {
		ids[i]--
	}
	return ids
}

// mark says that the series' tensors are read, those among them that have the
// name of another too.
func (s *seriesTable) mark(stored []string, before, after string, n int) {
	if s.read == nil {
		s.read = make([]bool, len(stored))
	}
	k, _ := numbersIn(before)
	p := s.places[k]
	i := p.series[before+"#"+after]
	for _, x := range p.items[p.starts[i]:p.starts[i+1]] {
		if int(x.number) < n {
			s.read[x.stored] = true
		}
	}
}

// newSeriesPlace reads all names once.
func newSeriesPlace(stored []string, k int) *seriesPlace {
	r := seriesReader{k: k, series: map[string]int32{}}
	p := &seriesPlace{series: r.series}
	of, numbers := make([]int32, len(stored)), make([]int32, len(stored))
	var counts []int32
	for i, name := range stored {
		of[i], numbers[i] = r.read(name)
		if of[i] < 0 {
			continue
		}
		if int(of[i]) == len(counts) {
			counts = append(counts, 0)
		}
		counts[of[i]]++
	}
	p.starts = make([]int32, len(counts)+1)
	for i, n := range counts {
		p.starts[i+1] = p.starts[i] + n
	}
	p.items = make([]seriesItem, p.starts[len(counts)])
	at := slices.Clone(p.starts)
	for i, s := range of {
		if s >= 0 {
			p.items[at[s]] = seriesItem{numbers[i], int32(i)}
			at[s]++
		}
	}
	return p
}

// seriesReader finds the series of one name after another. Names mostly come in
// order, so that one begins like the name before it and goes on like one of the
// few names before: it is then neither searched for its number nor hashed.
type seriesReader struct {
	k      int
	series map[string]int32
	key    []byte
	open   bool         // before and near are those of the name before
	before string       // what stands before the number
	near   []seriesTail // what followed the number in the names with that beginning
	next   int          // of near, probably
}

// seriesTail is what stands behind the number of a series.
type seriesTail struct {
	after  string
	series int32
}

// read gives the series of a name, −1 where it has no k-th number.
func (r *seriesReader) read(name string) (series, number int32) {
	from := len(r.before)
	to := from
	if r.open && len(name) > from && digit(name[from]) && name[:from] == r.before {
		to, number = numberFrom(name, from)
	} else {
		from, to, number = numberAt(name, r.k)
		r.open, r.before, r.near, r.next = from < to, name[:from], r.near[:0], 0
	}
	if from == to {
		return -1, 0
	}
	after := name[to:]
	for j := range r.near {
		if j += r.next; j >= len(r.near) {
			j -= len(r.near)
		}
		if r.near[j].after == after {
			r.next = j + 1
			return r.near[j].series, number
		}
	}
	r.key = append(append(append(r.key[:0], name[:from]...), '#'), after...)
	s, ok := r.series[string(r.key)]
	if !ok {
		s = int32(len(r.series))
		r.series[string(r.key)] = s
	}
	if len(r.near) < 16 {
		r.near = append(r.near, seriesTail{after, s})
	}
	return s, number
}

// numbersIn counts the runs of digits; open says that the last stands at the end.
func numbersIn(s string) (n int, open bool) {
	for i := 0; i < len(s); i++ {
		is := digit(s[i])
		if is && !open {
			n++
		}
		open = is
	}
	return n, open
}

// numberAt finds the k-th run of digits of a name; from == to where there is
// none, or none as a number is written.
func numberAt(name string, k int) (from, to int, number int32) {
	for i := 0; i < len(name); i++ {
		if !digit(name[i]) {
			continue
		}
		if k == 0 {
			if to, number = numberFrom(name, i); to == i {
				return 0, 0, 0
			}
			return i, to, number
		}
		k--
		for i < len(name) && digit(name[i]) {
			i++
		}
	}
	return 0, 0, 0
}

// numberFrom reads the run of digits that begins at from; to == from where it is
// none as a number is written.
func numberFrom(name string, from int) (to int, number int32) {
	for to = from; to < len(name) && digit(name[to]); to++ {
		if number < maxNodes {
			number = 10*number + int32(name[to]-'0')
		}
	}
	if name[from] == '0' && to > from+1 || number >= maxNodes {
		return from, 0
	}
	return to, number
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// stackSeries stacks the stored tensors before0after to before(n−1)after; nil
// where they are not all there, or not alike.
func (t *tracer) stackSeries(before, after string, n int) (*weightValue, error) {
	w, typ := t.seriesOf(before, after, n)
	if w == nil {
		return nil, nil
	}
	if t.scaledType(typ) {
		return t.scaledSeries(w, typ, before, after, n), nil
	}
	t.series.mark(t.stored, before, after, n)
	return &weightValue{t: t, w: w, name: w.Names[0], typ: typ}, nil
}

// seriesOf is the stack of a series, not yet marked as read; nil where the
// tensors are not all there, of one type and shape.
func (t *tracer) seriesOf(before, after string, n int) (*graph.Weight, quant.Type) {
	ids := t.series.take(t.stored, before, after, n)
	if ids == nil {
		return nil, 0
	}
	first, names := t.view(ids[0]), make([]string, n)
	if first.Shape == nil || !t.alike(ids, first) {
		return nil, 0
	}
	for e, id := range ids {
		names[e] = t.stored[id]
	}
	w, err := graph.StackTensors(names, first.Shape)
	if err != nil {
		return nil, 0
	}
	w.Line = t.line()
	return w, first.Type
}

// alike says that stored tensors have the type and shape of the first.
func (t *tracer) alike(ids []int32, first tensor.View) bool {
	for _, id := range ids {
		v := &first
		if t.views != nil {
			v = &t.views[id] // not copied: there are thousands
		} else {
			other := t.view(id)
			v = &other
		}
		if v.Type != first.Type || !slices.Equal(v.Shape, first.Shape) {
			return false
		}
	}
	return true
}

// scaledSeries joins a series of 8-bit matrices with the series of factors that
// stands beside it, as scale does for one tensor; nil where anything is unusual,
// which scale then tells tensor by tensor.
func (t *tracer) scaledSeries(w *graph.Weight, typ quant.Type, before, after string, n int) *weightValue {
	base, _ := strings.CutSuffix(after, ".weight")
	q := t.quantized()
	for _, beside := range []string{after + "_scale_inv", after + "_scale", base + ".scale"} {
		if !t.stores(before + "0" + beside) {
			continue
		}
		s, factorType := t.seriesOf(before, beside, n)
		if s == nil || len(s.Shape) < 2 || len(w.Shape) != 3 || q.method == "fp8" && typ == quant.I8 || t.series.take(t.stored, before, after+"_zero_point", 1) != nil {
			return nil
		}
		one, rows, cols, err := scaleShape(w.Shape[1:], graph.Tensor(s.Names[0], s.Shape[1:]), q.block)
		if err != nil {
			return nil
		}
		if grid := append([]int{n}, one.Shape...); !slices.Equal(grid, s.Shape) {
			s, err = graph.ReshapeWeight(s, grid)
		}
		if err == nil {
			s, err = scaleValues(s, factorType)
		}
		if err == nil {
			s, err = graph.ScaleWeight(w, s, rows, cols)
		}
		if err != nil {
			return nil
		}
		s.Line = w.Line
		t.series.mark(t.stored, before, after, n)
		t.series.mark(t.stored, before, beside, n)
		return &weightValue{t: t, w: s, name: w.Names[0], typ: quant.F32}
	}
	return nil
}
