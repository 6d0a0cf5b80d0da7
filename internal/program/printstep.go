package program

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/internal/graph"
)

// printer writes the steps of one layer.
type printer struct {
	p     *Program
	layer int
	made  map[Buf]string
}

func newPrinter(p *Program, layer int) *printer {
	return &printer{p: p, layer: layer, made: map[Buf]string{}}
}

func (q *printer) steps(from, to int) []string {
	made, taken := 0, 0
	var out []string
	for i := from; i < to; i++ {
		s := &q.p.Steps[i]
		s.Visit(func(b *Buf, write bool) {
			if _, ok := q.made[*b]; ok {
				return
			}
			if write {
				q.made[*b] = fmt.Sprintf("t%d%s", made, q.kind(*b))
				made++
				return
			}
			q.made[*b] = fmt.Sprintf("x%d%s", taken, q.kind(*b))
			taken++
		})
		out = append(out, q.step(s))
	}
	return out
}

// kind is a value's width and which rows it has.
func (q *printer) kind(b Buf) string {
	f := q.p.Buffers[b]
	s := fmt.Sprintf("[%d]", f.Width)
	if f.Ids > 0 {
		s = fmt.Sprintf("[%d ids]", f.Ids)
	}
	if f.Out {
		s += "out"
	}
	if f.Const {
		s += "const"
	}
	if f.Memory {
		s += "memory"
	}
	return s
}

func (q *printer) buf(b Buf) string {
	if b == None {
		return "–"
	}
	return q.made[b]
}

func (q *printer) step(s *Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-11s ", s.Kind)
	switch x := s.Body.(type) {
	case *Embed:
		by := "token"
		switch {
		case x.Types:
			by = "type"
		case x.At != nil && x.At.Count:
			by = fmt.Sprintf("count of tokens but %d, + %d", x.At.Pad, x.At.Offset)
		case x.At != nil:
			by = fmt.Sprintf("position + %d", x.At.Offset)
		}
		fmt.Fprintf(&b, "%s = %s by %s%s", q.buf(x.Out), q.weight(x.Table), by, times(x.Scale))
		if x.Guard > 0 {
			fmt.Fprintf(&b, ", ids from %d on read row 0", x.Guard)
		}
		if x.Lead != nil {
			fmt.Fprintf(&b, ", ids behind it by %s", q.weight(x.Lead))
		}
	case *Norm:
		in := q.buf(x.In)
		if x.Part > 0 {
			in += fmt.Sprintf(" by %d", x.Part)
		}
		fmt.Fprintf(&b, "%s = %s%s%s", q.buf(x.Out), q.norm(x.Norm, in), times(x.Scale), q.plus(x.Residual))
	case *Linear:
		b.WriteString(q.linear(x))
	case *QKV:
		b.WriteString(q.qkv(x))
	case *Attention:
		b.WriteString(q.attention(x))
	case *Join:
		b.WriteString(q.join(x))
	case *Stored:
		fmt.Fprintf(&b, "%s = attention of %s to %d stored keys %s, values %s%s", q.buf(x.Out), q.buf(x.Q), x.Keys, q.buf(x.K), q.buf(x.V), q.attr(x.Attr))
	case *Put:
		fmt.Fprintf(&b, "%s = %s", q.cache(x.Cache), q.buf(x.K))
		if x.V != None {
			b.WriteString(", " + q.buf(x.V))
		}
	case *Index:
		fmt.Fprintf(&b, "%s = positions by %s, weights %s, to keys %s%s", q.buf(x.Out), q.buf(x.Q), q.buf(x.W), q.buf(x.K), q.attr(x.Attr))
	case *Heads:
		b.WriteString(q.heads(x))
	case *MoE:
		b.WriteString(q.moe(x))
	case *Pool:
		fmt.Fprintf(&b, "%s = %s over the sequence of %s", q.buf(x.Out), x.How, q.buf(x.In))
	case *Reverse:
		fmt.Fprintf(&b, "%s = rows of %s, the last first", q.buf(x.Out), q.buf(x.In))
	case *Rows:
		fmt.Fprintf(&b, "%s = wanted rows of %s", q.buf(x.Out), q.buf(x.In))
	case *Elementwise:
		fmt.Fprintf(&b, "%s = %s", q.buf(x.Out), q.code(x.Code))
	case *Conv1D:
		b.WriteString(q.conv(x))
	case *Recurrent:
		b.WriteString(q.recurrent(x))
	case *OpStep:
		n := q.p.Graph.Nodes[x.Node]
		fmt.Fprintf(&b, "%s = %s", q.buf(x.Out), n.Op)
		for _, in := range x.In {
			b.WriteString(" " + q.buf(in))
		}
		b.WriteString(q.attr(n.Attr))
	}
	return b.String()
}

func (q *printer) linear(x *Linear) string {
	in := q.buf(x.In)
	if x.PreNorm != nil {
		in = q.norm(x.PreNorm, in)
	}
	y := q.product(x.W, x.B, in)
	act := ""
	if x.Epi.Act != nil {
		act = function(x.Epi.Act)
	}
	switch {
	case x.Up != nil:
		y = fmt.Sprintf("%s(%s) ⊙ %s", act, q.matrix(x.W, x.B), q.matrix(x.Up, x.UpB)) + " of " + in
	case act != "":
		y = act + "(" + y + ")"
	}
	return q.buf(x.Out) + " = " + y + q.epilogue(&x.Epi)
}

func (q *printer) epilogue(e *Epilogue) string {
	s := times(e.Scale)
	if e.Softcap != 0 {
		s += ", softcap " + number(e.Softcap)
	}
	return s + q.plus(e.Residual)
}

func (q *printer) matrix(w, b *graph.Weight) string {
	s := q.weight(w)
	if b != nil {
		s += " + " + q.weight(b)
	}
	return s
}

func (q *printer) product(w, b *graph.Weight, in string) string {
	s := q.weight(w) + "·" + in
	if b != nil {
		s += " + " + q.weight(b)
	}
	return s
}

func (q *printer) plus(b Buf) string {
	if b == None {
		return ""
	}
	return " + " + q.buf(b)
}

func (q *printer) qkv(x *QKV) string {
	in := q.buf(x.In)
	if x.PreNorm != nil {
		in = q.norm(x.PreNorm, in)
	}
	s := fmt.Sprintf("%s, %s = q of %s", q.buf(x.OutQ), q.cache(x.Cache), in)
	for i, h := range []*Head{&x.Q, &x.K, &x.V} {
		s += fmt.Sprintf("; %c: %s", "qkv"[i], q.head(h))
	}
	return s
}

func (q *printer) head(h *Head) string {
	s := fmt.Sprintf("%s %d×%d", q.matrix(h.W, h.B), h.Heads, h.Dim)
	if h.Clamp > 0 {
		s += ", clamp ±" + number(h.Clamp)
	}
	norm, rope := "", ""
	if h.Norm != nil {
		norm = ", " + q.norm(h.Norm, "a head")
		if h.WholeN {
			norm = ", " + q.norm(h.Norm, "all heads")
		}
	}
	if h.Rope != nil {
		rope = ", rope" + q.attr(h.Rope)
	}
	if h.NormLast {
		return s + rope + norm
	}
	return s + norm + rope
}

// cache names a cache by the distance to the layer that fills it.
func (q *printer) cache(i int) string {
	c := q.p.Graph.Caches[i]
	s := fmt.Sprintf("cache[%d×%d/%d", c.Heads, c.KeyDim, c.ValueDim)
	if c.Window > 0 {
		s += fmt.Sprintf(", window %d", c.Window)
	}
	if c.First > 0 {
		s += fmt.Sprintf(" and the first %d", c.First)
	}
	if c.Layer != q.layer {
		s += fmt.Sprintf(", of layer %+d", c.Layer-q.layer)
	}
	return s + "]"
}

func (q *printer) attention(x *Attention) string {
	s := fmt.Sprintf("%s = attention of %s to %s", q.buf(x.Out), q.buf(x.Q), q.cache(x.Attr.Cache))
	if x.K != None {
		s += " after adding " + q.buf(x.K)
		if x.V != None {
			s += ", " + q.buf(x.V)
		}
	}
	if x.Allow != None {
		s += " at " + q.buf(x.Allow)
	}
	if x.ByQuery != None {
		s += ", by distance of the query " + q.buf(x.ByQuery)
	}
	if x.ByKey != None {
		s += ", by distance of the key " + q.buf(x.ByKey)
	}
	if x.Sinks != None {
		s += ", sinks " + q.buf(x.Sinks)
	}
	return s + q.attr(x.Attr)
}

func (q *printer) heads(x *Heads) string {
	s := q.buf(x.Out) + " = "
	if x.Heads > 1 {
		s += fmt.Sprintf("%d heads of ", x.Heads)
	}
	for i := range x.Parts {
		if i > 0 {
			s += " | "
		}
		s += q.part(&x.Parts[i])
	}
	return s
}

func (q *printer) part(p *HeadPart) string {
	s := q.buf(p.In)
	if p.From != 0 || p.Stride != p.Width || p.Width != q.p.Buffers[p.In].Width {
		s += fmt.Sprintf("{%d +%d}", p.From, p.Width)
	}
	if p.W != nil {
		s = q.weight(p.W) + "·" + s
	}
	if p.Norm != nil {
		s = q.norm(p.Norm, s)
	}
	s += times(p.Scale)
	if p.Rope != nil {
		s += " rope" + q.attr(p.Rope)
	}
	return s
}

func (q *printer) moe(x *MoE) string {
	in := q.buf(x.In)
	if x.PreNorm != nil {
		in = q.norm(x.PreNorm, in)
	}
	router := in
	if x.RouterIn != None {
		router = q.buf(x.RouterIn)
	}
	return fmt.Sprintf("%s = experts of %s%s; router %s%s%s", q.buf(x.Out), in, q.attr(x.Experts),
		q.product(x.Router.W, x.Router.B, router), q.attr(x.Route), q.epilogue(&x.Epi))
}

// code writes a chain of simple operations as one expression.
func (q *printer) code(code []Instr) string {
	regs := map[int]string{}
	for i := range code {
		in := &code[i]
		a, b, c := regs[in.A], regs[in.B], regs[in.C]
		switch {
		case in.Op == "load":
			regs[in.Dst] = q.view(View{in.Buf, in.At, in.Mod})
			if in.Div != 1 || in.At == 0 && in.Mod != q.p.Buffers[in.Buf].Width {
				regs[in.Dst] = fmt.Sprintf("%s{÷%d mod %d}", q.buf(in.Buf), in.Div, in.Mod)
			}
		case in.Op == "const":
			regs[in.Dst] = number(in.P)
		case in.Op == "where":
			regs[in.Dst] = fmt.Sprintf("where(%s, %s, %s)", a, b, c)
		case in.Args == 1:
			regs[in.Dst] = function(&graph.UnaryAttr{F: in.Op, A: in.P, B: in.Q}) + "(" + a + ")"
		default:
			regs[in.Dst] = fmt.Sprintf("%s(%s, %s)", in.Op, a, b)
		}
	}
	if len(code) == 0 {
		return "nothing"
	}
	return regs[code[len(code)-1].Dst]
}

func function(a *graph.UnaryAttr) string {
	switch {
	case a.B != 0:
		return fmt.Sprintf("%s[%s, %s]", a.F, number(a.A), number(a.B))
	case a.A != 0:
		return fmt.Sprintf("%s[%s]", a.F, number(a.A))
	}
	return a.F
}

func (q *printer) norm(n *graph.NormAttr, of string) string {
	s := fmt.Sprintf("%s(%s", n.Kind, of)
	if n.W != nil {
		s += "; " + q.weight(n.W)
	}
	if n.Offset != 0 {
		s += " + " + number(n.Offset)
	}
	if n.B != nil {
		s += ", " + q.weight(n.B)
	}
	if n.Groups > 1 {
		s += fmt.Sprintf(", %d groups", n.Groups)
	}
	return s + fmt.Sprintf(", eps %s)", number(n.Eps))
}

// names matches the names in the text of an expression.
var names = regexp.MustCompile(`[^\s(),;\[\]]+`)

// weight writes an expression; the layer's number in names becomes #.
func (q *printer) weight(w *graph.Weight) string {
	s := graph.WeightText(w)
	if q.layer >= 0 && q.layer < q.p.Layers {
		fold := fmt.Sprintf(".%d.", q.layer)
		s = names.ReplaceAllStringFunc(s, func(name string) string { return strings.Replace(name, fold, ".#.", 1) })
	}
	return s
}

// attr writes the attributes that are not zero; caches are named elsewhere.
func (q *printer) attr(a any) string {
	v := reflect.ValueOf(a)
	if a == nil || v.Kind() != reflect.Pointer || v.IsNil() {
		return ""
	}
	v = v.Elem()
	var b strings.Builder
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if f.IsZero() && name != "Table" || name == "Cache" {
			continue
		}
		switch x := f.Interface().(type) {
		case *graph.Weight:
			fmt.Fprintf(&b, " %s=%s", name, q.weight(x))
		case float64:
			fmt.Fprintf(&b, " %s=%s", name, number(x))
		case []float64:
			fmt.Fprintf(&b, " %s=%d numbers", name, len(x))
		case []int32:
			fmt.Fprintf(&b, " %s=%d numbers", name, len(x))
		case []graph.LoopStep:
			fmt.Fprintf(&b, " %s=%d operations", name, len(x))
		case bool:
			b.WriteString(" " + name)
		default:
			fmt.Fprintf(&b, " %s=%v", name, x)
		}
	}
	return b.String()
}

func times(x float64) string {
	if x == 0 || x == 1 {
		return ""
	}
	return " × " + number(x)
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
