// Package compile turns a traced graph into a program of fused steps, free of
// devices: one pass a file. It must never import devices or formats. Read Fuse first.
package compile

import (
	"fmt"
	"math"
	"slices"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/internal/program"
)

// Options chooses how a graph is compiled.
type Options struct {
	NoFusion bool   // every node becomes an Op step, to find a wrong pattern
	Output   string // the output to compute; "": the first
}

// Fuse covers the graph with fused steps. Every node that the first output
// depends on belongs to one step; norms that open several steps are computed
// by each of them. Every value has a buffer of its own until program.Assign.
func Fuse(g *graph.Graph, o Options) (*program.Program, error) {
	if len(g.Outputs) == 0 {
		return nil, fmt.Errorf("compile: the specification returns no output")
	}
	if o.Output != "" {
		s, ok := graph.Select(g, o.Output)
		if !ok {
			return nil, fmt.Errorf("compile: there is no output %q", o.Output)
		}
		g = s
	}
	c := newCover(g, o)
	c.p = &program.Program{Graph: c.g, Layers: g.Layers, Buffers: make([]program.Buffer, 0, len(c.g.Nodes)/3)}
	out := c.strip(c.g.Outputs[0].Node)
	if c.g.Nodes[out].Op == graph.OpRoute {
		return nil, fmt.Errorf("compile: line %s: the output is a route; return a value made with it", c.g.Nodes[out].Line)
	}
	c.p.Logits = c.want(out)
	if !c.domain[out] {
		// An output that is not local to its row: all rows are computed, the wanted ones kept.
		c.p.Logits = c.outRows(out, g.Layers)
	}
	for i := len(c.g.Nodes) - 1; i >= 0; i-- {
		if f := c.later[i]; f != nil {
			f()
		}
		if c.need[i] {
			if err := c.emit(c.g.Nodes[i]); err != nil {
				return nil, err
			}
		}
	}
	c.finish()
	program.Spread(c.p)
	return c.p, program.CheckConstants(c.p)
}

func newCover(g *graph.Graph, o Options) *cover {
	uses := users(g)
	for _, rewrite := range []func(*graph.Graph, [][]int) (*graph.Graph, bool){splitLinears, addBiases} {
		changed := false
		if g, changed = rewrite(g, uses); changed {
			uses = users(g)
		}
	}
	n := len(g.Nodes)
	c := &cover{g: g, o: o, uses: uses, domain: outDomain(g, uses), need: make([]bool, n), later: make([]func(), n), bufs: make([]program.Buf, n), rows: map[int]keptRows{}}
	for i := range c.bufs {
		c.bufs[i] = program.None
	}
	c.steps = make([]program.Step, 0, n/3)
	c.patterns = []func(*graph.Node) bool{c.embed, c.linear, c.moe, c.norm, c.attention, c.join, c.index, c.recurrent, c.elementwise, c.heads}
	return c
}

// cover is the state of covering a graph from its outputs backwards.
type cover struct {
	g        *graph.Graph
	o        Options
	p        *program.Program
	uses     [][]int                  // users of each node, reshapes looked through
	domain   []bool                   // node is computed for wanted rows only
	need     []bool                   // node's value is read by a step
	bufs     []program.Buf            // value of each needed node
	rows     map[int]keptRows         // the same value for wanted rows only
	steps    []program.Step           // in reverse order of running
	later    []func()                 // steps that wait until the cover comes down to a node
	patterns []func(*graph.Node) bool // fused steps, the first that takes a node covers it
	code     []program.Instr          // room for that of one elementwise step
}

// keptRows is a value of the wanted rows and the layer of its first reader.
type keptRows struct {
	buf   program.Buf
	layer int
}

// strip looks through reshapes: the value is the same.
func (c *cover) strip(id int) int { return strip(c.g, id) }

func strip(g *graph.Graph, id int) int {
	for g.Nodes[id].Op == graph.OpReshape {
		id = g.Nodes[id].In[0]
	}
	return id
}

// users lists for each node the nodes that read it, reshapes looked through,
// the last first.
func users(g *graph.Graph) [][]int {
	total := 0
	counts := make([]int, len(g.Nodes))
	eachUse(g, func(read, _ int) { counts[read]++; total++ })
	u, flat := make([][]int, len(g.Nodes)), make([]int, total)
	for id, n := range counts {
		if n > 0 {
			u[id], flat = flat[:0:n], flat[n:]
		}
	}
	eachUse(g, func(read, by int) { u[read] = append(u[read], by) })
	return u
}

// eachUse calls f for each node that the first output depends on and each that
// it reads, the last nodes first.
func eachUse(g *graph.Graph, f func(read, by int)) {
	live := make([]bool, len(g.Nodes))
	for _, o := range g.Outputs[:1] {
		live[o.Node] = true
	}
	shared := map[int]bool{} // caches that a live node reads
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		in := g.Nodes[i].In
		if a, ok := g.Nodes[i].Attr.(*graph.AttentionAttr); ok && !live[i] && !a.Shared && shared[a.Cache] {
			in = in[1:2] // nothing of it is wanted but the keys and values
			if g.Caches[a.Cache].Kind == graph.CacheKV {
				in = g.Nodes[i].In[1:3]
			}
		} else if !live[i] {
			continue
		} else if ok && a.Shared {
			shared[a.Cache] = true
		}
		for _, id := range in {
			live[id] = true
		}
		if g.Nodes[i].Op == graph.OpReshape {
			continue
		}
		for _, id := range in {
			f(strip(g, id), i)
		}
	}
}

// local says whether a node's row depends on the same row of its inputs alone.
func local(n *graph.Node) bool {
	_, keeps := graph.CacheOf(n)
	return !keeps && n.Op != graph.OpPool && n.Op != graph.OpReverse && n.Op != graph.OpBlockSum && n.Op != graph.OpBlockAttn
}

// outDomain marks the nodes that only the wanted rows need.
func outDomain(g *graph.Graph, uses [][]int) []bool {
	d := make([]bool, len(g.Nodes))
	out := strip(g, g.Outputs[0].Node)
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		if !local(n) && n.Op != graph.OpPool || n.Rows != graph.RowsToken || n.Op == graph.OpReshape {
			continue
		}
		ok := i == out || len(uses[i]) > 0
		for _, u := range uses[i] {
			ok = ok && d[u] && local(g.Nodes[u])
		}
		switch n.Op {
		case graph.OpTokens, graph.OpPositions, graph.OpTypes: // columns of the batch, there for every row
		case graph.OpEmbed, graph.OpRope:
		default:
			d[i] = ok
		}
	}
	return d
}

// want returns the buffer of a node's value and marks the node as needed.
func (c *cover) want(id int) program.Buf {
	id = c.strip(id)
	if b := c.bufs[id]; b != program.None {
		return b
	}
	n := c.g.Nodes[id]
	b := c.buffer(program.Buffer{Width: n.Width() + ids(n), Out: c.domain[id], Const: n.Rows == graph.RowsConst, Memory: n.Rows == graph.RowsMemory, Ids: ids(n)})
	c.need[id], c.bufs[id] = true, b
	return b
}

func ids(n *graph.Node) int {
	if n.Op == graph.OpRoute {
		return n.Width()
	}
	return 0
}

func (c *cover) buffer(b program.Buffer) program.Buf {
	c.p.Buffers = append(c.p.Buffers, b)
	return program.Buf(len(c.p.Buffers) - 1)
}

// outRows returns a buffer with the wanted rows of a value of all rows, for a
// reader in the given layer.
func (c *cover) outRows(id, layer int) program.Buf {
	id = c.strip(id)
	k, ok := c.rows[id]
	if !ok {
		c.want(id)
		n := c.g.Nodes[id]
		k = keptRows{c.buffer(program.Buffer{Width: n.Width() + ids(n), Out: true, Ids: ids(n)}), layer}
	}
	k.layer = min(k.layer, layer)
	c.rows[id] = k
	return k.buf
}

// input is the buffer that a step rooted at root reads for value id.
func (c *cover) input(root *graph.Node, id int) program.Buf {
	id = c.strip(id)
	if c.domain[root.ID] && !c.domain[id] && c.g.Nodes[id].Rows != graph.RowsConst {
		return c.outRows(id, root.Layer)
	}
	return c.want(id)
}

// push appends a step; steps are pushed in reverse order of running.
func (c *cover) push(root *graph.Node, kind program.Kind, nodes []int, body program.Body) {
	c.steps = append(c.steps, program.Step{Kind: kind, Layer: root.Layer, Nodes: nodes, Body: body, Rows: root.Rows})
}

// emit covers the needed node n and what fuses below it.
func (c *cover) emit(n *graph.Node) error {
	if k, ok := c.rows[n.ID]; ok {
		c.push(n, program.KindRows, nil, &program.Rows{In: c.bufs[n.ID], Out: k.buf})
		kept := &c.steps[len(c.steps)-1]
		if kept.Layer = k.layer; n.Rows == graph.RowsConst {
			kept.Rows = graph.RowsToken // the rows are those of the tokens that read it
		}
	}
	if n.Rows == graph.RowsConst {
		return c.op(n) // computed once: nothing gains by being fused
	}
	if !c.o.NoFusion {
		for _, try := range c.patterns {
			if try(n) {
				return nil
			}
		}
	} else if n.Op == graph.OpAttention && c.attention(n) {
		return nil
	}
	if n.Op == graph.OpReverse {
		c.push(n, program.KindReverse, []int{n.ID}, &program.Reverse{In: c.want(n.In[0]), Out: c.bufs[n.ID]})
		return nil
	}
	if n.Op == graph.OpPool {
		c.push(n, program.KindPool, []int{n.ID}, &program.Pool{In: c.want(n.In[0]), Out: c.bufs[n.ID], How: n.Attr.(*graph.PoolAttr).How})
		return nil
	}
	return c.op(n)
}

// op is the fallback: the node runs as it stands.
func (c *cover) op(n *graph.Node) error {
	if n.Op == graph.OpAttention {
		return fmt.Errorf("compile: line %s: this form of attention has no step yet", n.Line)
	}
	if c.domain[n.ID] && n.Op == graph.OpRope {
		return fmt.Errorf("compile: line %s: rope among the output rows", n.Line)
	}
	body := &program.OpStep{Node: n.ID, Out: c.bufs[n.ID]}
	for _, id := range n.In {
		body.In = append(body.In, c.input(n, id))
	}
	c.push(n, program.KindOp, []int{n.ID}, body)
	c.steps[len(c.steps)-1].Why = "no fused step takes " + string(n.Op) + " here"
	return nil
}

// finish turns the reversed list into running order. Layers ascend: a step
// that keeps rows for a later layer waits for it.
func (c *cover) finish() {
	var waiting []program.Step
	c.p.Steps = make([]program.Step, 0, len(c.steps))
	flush := func(layer int) {
		for len(waiting) > 0 && waiting[0].Layer <= layer {
			c.p.Steps = append(c.p.Steps, waiting[0])
			waiting = waiting[1:]
		}
	}
	for i := len(c.steps) - 1; i >= 0; i-- {
		s := c.steps[i]
		if s.Kind != program.KindRows {
			flush(s.Layer)
			c.p.Steps = append(c.p.Steps, s)
			continue
		}
		at := len(waiting)
		for at > 0 && waiting[at-1].Layer > s.Layer {
			at--
		}
		waiting = slices.Insert(waiting, at, s)
	}
	flush(math.MaxInt)
}

// single says that only one step reads node id, in the domain of root.
func (c *cover) single(root *graph.Node, id int) bool {
	return len(c.uses[id]) == 1 && c.domain[id] == c.domain[root.ID]
}

func (c *cover) node(id int) *graph.Node { return c.g.Nodes[c.strip(id)] }
