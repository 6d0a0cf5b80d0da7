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
	s := fmt.Sprintf("convolution of %s with %s over %d tokens", q.view(x.In), q.weight(x.Attr.W), x.Attr.W.Cols())
	if x.Attr.B != nil {
		s += " + " + q.weight(x.Attr.B)
	}
	if x.Act != nil {
		s = function(x.Act) + "(" + s + ")"
	}
	return q.buf(x.Out) + " = " + s
}

func (q *printer) recurrent(x *Recurrent) string {
	if x.Scan != nil {
		return fmt.Sprintf("%s = scan of %d×%d with x %s, B %s, C %s (%d×%d), dt %s; A %s", q.buf(x.Out), x.Heads, x.Width,
			q.view(x.In[0]), q.view(x.In[1]), q.view(x.In[2]), x.Groups, x.Size, q.view(x.In[3]), q.weight(x.Scan.A))
	}
	s := fmt.Sprintf("%s = delta rule of %d×%d", q.buf(x.Out), x.Heads, x.Width)
	for i, name := range []string{"q", "k", "v", "g", "beta"} {
		s += fmt.Sprintf(", %s %s", name, q.view(x.In[i]))
		if i < 2 {
			s += x.Unit[i].String()
		}
		if i == 1 {
			s += fmt.Sprintf(" (%d×%d)", x.Groups, x.Size)
		}
	}
	if x.Delta.Tile {
		s += ", key heads in turn"
	}
	if x.PerChannel {
		s += ", a decay of each channel"
	}
	return s
}

// String says what is done to a head.
func (u Unit) String() string {
	s := ""
	if u.Norm {
		s = fmt.Sprintf(" of length 1, eps %s", number(u.Eps))
	}
	return s + times(u.Scale)
}
