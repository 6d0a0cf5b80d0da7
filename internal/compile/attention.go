package compile

import (
	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// attention takes an attention node, and the projections that feed it where
// they have the usual form; otherwise queries, keys and values come as buffers.
func (c *cover) attention(n *graph.Node) bool {
	a, ok := n.Attr.(*graph.AttentionAttr)
	if n.Op != graph.OpAttention || !ok {
		return false
	}
	s := &program.Attention{Attr: a, Out: c.bufs[n.ID], K: program.None, V: program.None, Allow: program.None, ByQuery: program.None, ByKey: program.None, Sinks: program.None}
	c.push(n, program.KindAttention, []int{n.ID}, s)
	latent := c.g.Caches[a.Cache].Kind == graph.CacheLatent
	if a.Allowed {
		s.Allow = c.input(n, n.In[len(n.In)-1])
	}
	at := 3
	switch {
	case a.Shared:
		at = 1
	case latent:
		at = 2
	}
	if a.ByQuery {
		s.ByQuery = c.input(n, n.In[at])
		at++
	}
	if a.ByKey {
		s.ByKey = c.input(n, n.In[at])
		at++
	}
	if a.SinkOf {
		s.Sinks = c.input(n, n.In[at])
	}
	if a.Shared {
		c.fillOnly(a.Cache)
	}
	switch {
	case a.Cross:
		s.Q = c.input(n, n.In[0])
		if !a.Shared {
			c.put(n)
		}
	case a.Shared || latent || c.o.NoFusion || !c.qkv(n, s):
		s.Q = c.input(n, n.In[0])
		if !a.Shared {
			s.K = c.input(n, n.In[1])
		}
		if !a.Shared && !latent {
			s.V = c.input(n, n.In[2])
		}
	}
	return true
}

// fillOnly keeps the keys and values of a node that nothing else is wanted of.
func (c *cover) fillOnly(cache int) {
	for _, n := range c.g.Nodes {
		if a, ok := n.Attr.(*graph.AttentionAttr); !ok || a.Shared || a.Cache != cache || len(c.uses[n.ID]) > 0 || c.need[n.ID] {
			continue
		}
		c.later[n.ID] = func() {
			c.put(n)
			if !c.g.Caches[cache].Memory {
				c.steps[len(c.steps)-1].Rows = graph.RowsToken
			}
		}
	}
}

// put fills a cache, that of a cross attention while the encoder runs.
func (c *cover) put(n *graph.Node) {
	a := n.Attr.(*graph.AttentionAttr)
	p := &program.Put{K: c.want(n.In[1]), V: program.None, Cache: a.Cache}
	if c.g.Caches[a.Cache].Kind == graph.CacheKV {
		p.V = c.want(n.In[2])
	}
	c.push(n, program.KindPut, nil, p)
	c.steps[len(c.steps)-1].Rows = graph.RowsMemory
}

// projection is one of q, k, v traced back to its matrix.
type projection struct {
	head  program.Head
	x     int // what the matrix reads
	nodes []int
}

// qkv takes the three projections of one value. Queries may be changed once
// more, as by a temperature of their position: that runs between.
func (c *cover) qkv(n *graph.Node, s *program.Attention) bool {
	a := s.Attr
	heads := []int{a.Heads, a.KVHeads, a.KVHeads}
	query := c.strip(n.In[0])
	inner, changed := c.changedQuery(n, query)
	several := !changed && c.severalAsk(n, query)
	var p [3]projection
	for i, id := range []int{inner, n.In[1], n.In[2]} {
		q, ok := c.projection(n, id, heads[i], several && i == 0)
		if !ok || (i > 0 && q.x != p[0].x) || (i == 2 && q.head.Rope != nil) {
			return false
		}
		p[i] = q
	}
	if several {
		c.sharedQuery(n, s, p, query)
		return true
	}
	out := c.buffer(program.Buffer{Width: p[0].head.Heads * p[0].head.Dim, Memory: n.Rows == graph.RowsMemory})
	if !changed {
		s.Q = out
		c.pushQKV(n, p, out)
		return true
	}
	c.bufs[inner] = out
	s.Q = c.want(query)
	c.later[inner] = func() { c.pushQKV(n, p, out) }
	return true
}

// severalAsk says that queries are read by several attentions, one softmax over
// several sources, and by nothing else, and that no other one makes them.
func (c *cover) severalAsk(n *graph.Node, query int) bool {
	for _, u := range c.uses[query] {
		switch m := c.g.Nodes[u]; {
		case m.Op != graph.OpAttention && m.Op != graph.OpStored:
			return false
		case c.strip(m.In[0]) != query:
			return false
		}
	}
	return len(c.uses[query]) > 1 && c.later[query] == nil && c.domain[query] == c.domain[n.ID]
}

// sharedQuery makes the queries of several attentions together with the keys and
// values of one of them, before the first of their readers.
func (c *cover) sharedQuery(n *graph.Node, s *program.Attention, p [3]projection, query int) {
	s.Q = c.want(query)
	c.need[query] = false
	c.later[query] = func() {
		if k, ok := c.rows[query]; ok {
			c.push(n, program.KindRows, nil, &program.Rows{In: s.Q, Out: k.buf})
			c.steps[len(c.steps)-1].Layer = k.layer
		}
		c.pushQKV(n, p, s.Q)
	}
}

func (c *cover) pushQKV(n *graph.Node, p [3]projection, out program.Buf) {
	in, norm, nodes := c.preNorm(n, p[0].x)
	for i := range p {
		nodes = append(nodes, p[i].nodes...)
	}
	c.push(n, program.KindQKV, nodes, &program.QKV{In: c.input(n, in), PreNorm: norm, Q: p[0].head, K: p[1].head, V: p[2].head,
		Cache: n.Attr.(*graph.AttentionAttr).Cache, OutQ: out})
}

// changedQuery looks through a product of the queries with a value that is one
// for a token; inner is what it changes.
func (c *cover) changedQuery(n *graph.Node, query int) (inner int, changed bool) {
	m := c.g.Nodes[query]
	a, ok := m.Attr.(*graph.BinaryAttr)
	if m.Op != graph.OpBinary || !ok || a.F != "mul" || !c.single(n, query) {
		return query, false
	}
	for i, id := range m.In {
		if c.g.Nodes[m.In[1-i]].Width() == 1 && c.single(n, c.strip(id)) && same(c.g.Nodes[id].Shape, m.Shape) {
			return c.strip(id), true
		}
	}
	return query, false
}

// projection walks down from an attention input: rope, norm a head, norm over
// the whole, clamp, product. Each must have a single user, but the first where
// several may read it.
func (c *cover) projection(root *graph.Node, id, heads int, several bool) (p projection, ok bool) {
	n := c.node(id)
	p.head.Heads, p.head.Dim = heads, n.Width()/heads
	for {
		if !c.single(root, n.ID) && (!several || len(p.nodes) > 0) {
			return p, false
		}
		p.nodes = append(p.nodes, n.ID)
		switch n.Op {
		case graph.OpLinear:
			a := n.Attr.(*graph.LinearAttr)
			p.head.W, p.head.B, p.x = a.W, a.B, c.strip(n.In[0])
			return p, plainLinear(n, c.g)
		case graph.OpRope:
			wide := n.Shape[len(n.Shape)-1] != p.head.Dim // heads turned together
			if p.head.Rope != nil || p.head.Clamp > 0 || p.head.WholeN || wide {
				return p, false
			}
			p.head.Rope = n.Attr.(*graph.RopeAttr)
			p.head.NormLast = p.head.Norm != nil
		case graph.OpNorm:
			a := n.Attr.(*graph.NormAttr)
			last := n.Shape[len(n.Shape)-1]
			if p.head.Norm != nil || p.head.Clamp > 0 || a.Groups > 1 || a.Kind == graph.L2 || (last != p.head.Dim && last != heads*p.head.Dim) {
				return p, false
			}
			p.head.Norm, p.head.WholeN = a, last != p.head.Dim
		case graph.OpUnary:
			a := n.Attr.(*graph.UnaryAttr)
			if a.F != "clamp" || a.A != -a.B || p.head.Clamp > 0 {
				return p, false
			}
			p.head.Clamp = a.B
		default:
			return p, false
		}
		n = c.node(n.In[0])
	}
}

// join takes what makes one softmax of several attentions, and attention to
// stored keys.
func (c *cover) join(n *graph.Node) bool {
	switch a := n.Attr.(type) {
	case *graph.JoinAttr:
		s := &program.Join{Heads: n.Shape[0], Out: c.bufs[n.ID]}
		for _, in := range n.In {
			s.In = append(s.In, c.input(n, in))
		}
		c.push(n, program.KindJoin, []int{n.ID}, s)
		return true
	case *graph.StoredAttr:
		k := c.g.Nodes[n.In[1]].Shape
		c.push(n, program.KindStored, []int{n.ID}, &program.Stored{Q: c.input(n, n.In[0]), K: c.want(n.In[1]), V: c.want(n.In[2]), Out: c.bufs[n.ID],
			Keys: k[0], KVHeads: k[1], Heads: n.Shape[0], Attr: a})
		return true
	}
	return false
}
