package program

import "slices"

// Body is what a step does: *Embed, *Norm, … of this package. What every pass
// over steps must know of each is a method, so that a new body cannot be forgotten.
type Body interface {
	// visit calls f for each buffer that is read, then for each that is written.
	visit(f func(b *Buf, write bool))
	// clone is a copy whose buffers can be renamed; weights and attributes are shared.
	clone() Body
}

// Visit calls f for each buffer that the step reads or writes, reads first.
func (s *Step) Visit(f func(b *Buf, write bool)) { s.Body.visit(f) }

// reads calls f for the buffers that are there.
func reads(f func(b *Buf, write bool), bs ...*Buf) {
	for _, b := range bs {
		if *b != None {
			f(b, false)
		}
	}
}

func (b *Embed) visit(f func(b *Buf, write bool)) {
	f(&b.Out, true)
}

func (b *Norm) visit(f func(b *Buf, write bool)) {
	reads(f, &b.In, &b.Residual)
	f(&b.Out, true)
}

func (b *Linear) visit(f func(b *Buf, write bool)) {
	reads(f, &b.In, &b.Epi.Residual)
	f(&b.Out, true)
}

func (b *QKV) visit(f func(b *Buf, write bool)) {
	reads(f, &b.In)
	f(&b.OutQ, true)
}

func (b *Attention) visit(f func(b *Buf, write bool)) {
	reads(f, &b.Q, &b.K, &b.V, &b.Allow, &b.ByQuery, &b.ByKey, &b.Sinks)
	f(&b.Out, true)
}

func (b *Join) visit(f func(b *Buf, write bool)) {
	for i := range b.In {
		f(&b.In[i], false)
	}
	f(&b.Out, true)
}

func (b *Stored) visit(f func(b *Buf, write bool)) {
	reads(f, &b.Q, &b.K, &b.V)
	f(&b.Out, true)
}

func (b *Put) visit(f func(b *Buf, write bool)) {
	reads(f, &b.K, &b.V)
}

func (b *MoE) visit(f func(b *Buf, write bool)) {
	reads(f, &b.In, &b.RouterIn, &b.Epi.Residual)
	f(&b.Out, true)
}

func (b *Index) visit(f func(b *Buf, write bool)) {
	reads(f, &b.Q, &b.K, &b.W)
	f(&b.Out, true)
}

func (b *Heads) visit(f func(b *Buf, write bool)) {
	for i := range b.Parts {
		reads(f, &b.Parts[i].In, &b.Parts[i].M)
	}
	f(&b.Out, true)
}

func (b *Rows) visit(f func(b *Buf, write bool)) {
	reads(f, &b.In)
	f(&b.Out, true)
}

func (b *Pool) visit(f func(b *Buf, write bool)) {
	reads(f, &b.In)
	f(&b.Out, true)
}

func (b *Reverse) visit(f func(b *Buf, write bool)) {
	reads(f, &b.In)
	f(&b.Out, true)
}

func (b *Elementwise) visit(f func(b *Buf, write bool)) {
	for i := range b.Code {
		if b.Code[i].Op == "load" {
			f(&b.Code[i].Buf, false)
		}
	}
	f(&b.Out, true)
}

func (b *Conv1D) visit(f func(b *Buf, write bool)) {
	reads(f, &b.In.Buf, &b.Kernel)
	f(&b.Out, true)
}

func (b *Recurrent) visit(f func(b *Buf, write bool)) {
	for i := range b.In {
		f(&b.In[i].Buf, false)
	}
	f(&b.Out, true)
}

func (b *OpStep) visit(f func(b *Buf, write bool)) {
	for i := range b.In {
		f(&b.In[i], false)
	}
	f(&b.Out, true)
}

func (b *Embed) clone() Body     { c := *b; return &c }
func (b *Norm) clone() Body      { c := *b; return &c }
func (b *Linear) clone() Body    { c := *b; return &c }
func (b *QKV) clone() Body       { c := *b; return &c }
func (b *Attention) clone() Body { c := *b; return &c }
func (b *Stored) clone() Body    { c := *b; return &c }
func (b *Put) clone() Body       { c := *b; return &c }
func (b *MoE) clone() Body       { c := *b; return &c }
func (b *Index) clone() Body     { c := *b; return &c }
func (b *Rows) clone() Body      { c := *b; return &c }
func (b *Pool) clone() Body      { c := *b; return &c }
func (b *Reverse) clone() Body   { c := *b; return &c }
func (b *Conv1D) clone() Body    { c := *b; return &c }

func (b *Join) clone() Body {
	c := *b
	c.In = slices.Clone(b.In)
	return &c
}

func (b *Heads) clone() Body {
	c := *b
	c.Parts = slices.Clone(b.Parts)
	return &c
}

func (b *Elementwise) clone() Body {
	c := *b
	c.Code = slices.Clone(b.Code)
	return &c
}

func (b *Recurrent) clone() Body {
	c := *b
	c.In = slices.Clone(b.In)
	return &c
}

func (b *OpStep) clone() Body {
	c := *b
	c.In = slices.Clone(b.In)
	return &c
}
