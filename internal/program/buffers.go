package program

// mayAlias says that a step may write its output over this input, because
// value i of the output reads only value i of the input, once it is final.
func mayAlias(s *Step, b Buf) bool {
	switch x := s.Body.(type) {
	case *Linear:
		return x.Epi.Residual == b && x.In != b
	case *Norm:
		return x.Residual == b && x.In != b
	case *MoE:
		return x.Epi.Residual == b && x.In != b && x.RouterIn != b
	}
	return false
}

// Assign lets values that are not needed at the same time share a buffer. It
// changes p; values that enter or leave the stage keep buffers of their own.
func Assign(p *Program) {
	last := lastReads(p)
	var phys []Buffer
	var free []Buf
	at := make([]Buf, len(p.Buffers))
	for i := range at {
		at[i] = None
	}
	take := func(v Buf) Buf {
		want := p.Buffers[v]
		for i, b := range free {
			if phys[b] == want {
				free = append(free[:i], free[i+1:]...)
				return b
			}
		}
		phys = append(phys, want)
		return Buf(len(phys) - 1)
	}
	for _, b := range p.In {
		at[b] = take(b)
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		var dead []Buf // values whose last read is this step
		s.Visit(func(b *Buf, write bool) {
			if !write && last[*b] == i {
				dead = appendOnce(dead, *b)
			}
		})
		s.Visit(func(b *Buf, write bool) {
			if write && at[*b] == None {
				for _, d := range dead {
					if mayAlias(s, d) && p.Buffers[d] == p.Buffers[*b] && !p.Buffers[d].Const {
						at[*b] = at[d]
						dead = without(dead, d)
						break
					}
				}
				if at[*b] == None {
					at[*b] = take(*b)
				}
			}
		})
		for _, d := range dead {
			if !p.Buffers[d].Const {
				free = append(free, at[d])
			}
		}
		s.Visit(func(b *Buf, write bool) { *b = at[*b] })
	}
	rename := func(b *Buf) {
		if *b != None {
			*b = at[*b]
		}
	}
	for i := range p.In {
		rename(&p.In[i])
	}
	for i := range p.Out {
		rename(&p.Out[i])
	}
	rename(&p.Logits)
	p.Buffers = phys
}

func lastReads(p *Program) []int {
	last := make([]int, len(p.Buffers))
	for i := range last {
		last[i] = -1
	}
	for i := range p.Steps {
		p.Steps[i].Visit(func(b *Buf, write bool) {
			if !write {
				last[*b] = i
			}
		})
	}
	for _, b := range append(append([]Buf{}, p.Out...), p.Logits) {
		if b != None {
			last[b] = len(p.Steps)
		}
	}
	return last
}

func appendOnce(bs []Buf, b Buf) []Buf {
	for _, x := range bs {
		if x == b {
			return bs
		}
	}
	return append(bs, b)
}

func without(bs []Buf, b Buf) []Buf {
	var out []Buf
	for _, x := range bs {
		if x != b {
			out = append(out, x)
		}
	}
	return out
}
