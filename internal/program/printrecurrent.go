package program

import "fmt"

// view writes a part of a buffer's row as x0[96]{32…47}.
func (q *printer) view(v View) string {
	s := q.buf(v.Buf)
	if v.At != 0 || v.Width != q.p.Buffers[v.Buf].Width {
		s += fmt.Sprintf("{%d…%d}", v.At, v.At+v.Width-1)
	}
	return s
}

func (q *printer) conv(x *Conv1D) string {
	if x.Attr.W == nil && x.Attr.Taps == 0 {
		s := fmt.Sprintf("%s of %d tokens before", q.view(x.In), x.Attr.Shift)
		if x.Attr.Shift < 0 {
			s = fmt.Sprintf("%s of %d tokens ahead", q.view(x.In), -x.Attr.Shift)
		}
		if x.Act != nil {
			s = function(x.Act) + "(" + s + ")"
		}
		return q.buf(x.Out) + " = " + s
	}
	kernel := q.buf(x.Kernel)
	if x.Attr.W != nil {
		kernel = q.weight(x.Attr.W)
	}
	s := fmt.Sprintf("convolution of %s with %s over %d tokens", q.view(x.In), kernel, x.Attr.Past()+1)
	if x.Attr.B != nil {
		s += " + " + q.weight(x.Attr.B)
	}
	if x.Act != nil {
		s = function(x.Act) + "(" + s + ")"
	}
	return q.buf(x.Out) + " = " + s
}

func (q *printer) recurrent(x *Recurrent) string {
	var s string
	switch {
	case x.Scan != nil:
		s = fmt.Sprintf("scan of %d×%d with x %s, B %s, C %s (%d×%d), dt %s; A %s", x.Heads, x.Width,
			q.view(x.In[0]), q.view(x.In[1]), q.view(x.In[2]), x.Groups, x.Size, q.view(x.In[3]), q.view(x.In[4]))
	case x.Delta != nil:
		s = q.delta(x)
	default:
		s = q.linearAttention(x)
	}
	if x.PerChannel {
		s += ", a decay of each channel"
	}
	return q.buf(x.Out) + " = " + s
}

func (q *printer) delta(x *Recurrent) string {
	s, names := fmt.Sprintf("delta rule of %d×%d", x.Heads, x.Width), []string{"q", "k", "v", "g", "beta"}
	if x.Delta.General {
		s, names = "general "+s, []string{"q", "k", "v", "g", "a", "b"}
	}
	if x.Delta.Steps > 0 {
		s += fmt.Sprintf(", %d steps", x.Delta.Steps)
	}
	for i, name := range names {
		s += fmt.Sprintf(", %s %s", name, q.view(x.In[i]))
		if i < 2 {
			s += x.Unit[i].String()
		}
		if i == 1 {
			s += fmt.Sprintf(" (%d×%d)", x.Groups, x.Size)
		}
	}
	return s + inTurn(x.Delta.Tile)
}

func (q *printer) linearAttention(x *Recurrent) string {
	a := x.Linear
	s := fmt.Sprintf("linear attention of %d×%d, v %s, decay %s", x.Heads, x.Width, q.view(x.In[0]), q.view(x.In[1]))
	_, _, qi, ki, gate, bonus := a.Inputs()
	if a.Keys {
		s += fmt.Sprintf(", q %s, k %s (%d×%d)", q.view(x.In[qi]), q.view(x.In[ki]), x.Groups, x.Size)
	}
	if a.Gate {
		s += ", gate " + q.view(x.In[gate])
	}
	if a.Bonus {
		s += ", bonus " + q.view(x.In[bonus])
	}
	if a.Norm != "" {
		s += fmt.Sprintf(", norm %s, eps %s", a.Norm, number(a.Eps))
	}
	return s + inTurn(a.Tile)
}

func inTurn(tile bool) string {
	if tile {
		return ", key heads in turn"
	}
	return ""
}

// String says what is done to a head.
func (u Unit) String() string {
	s := ""
	if u.Norm {
		s = fmt.Sprintf(" of length 1, eps %s", number(u.Eps))
	}
	return s + times(u.Scale)
}
