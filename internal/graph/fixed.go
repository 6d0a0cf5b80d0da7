package graph

import "fmt"

// Bounds of what is the same for all tokens and is computed once, when a model
// is loaded. The largest model with projected positions of its own (48 layers,
// 512 positions, rows of 1536) makes 2^37 packed products and 2^28 values of them.
const (
	maxFixedWork   = 1 << 39 // packed products, the others by what they cost beside these
	maxFixedValues = 1 << 30
)

// What an operation of the reference costs, in packed products.
const (
	costProduct = 64 // of a product that is not packed
	costValue   = 64 // of a value that is made of others
)

// fixed adds what a node takes at load, and refuses what would take minutes or
// all memory. Shapes are checked by now.
func (c *checker) fixed(n *Node, in []*Node) error {
	if n.Op == OpParam || n.Op == OpConst {
		return nil // what is stored has a size of its own
	}
	width := float64(n.Width())
	c.values += width
	work := width * costValue
	switch a := n.Attr.(type) {
	case *LinearAttr:
		work = width * (float64(a.W.Shape[1]) + costValue)
	case *DotAttr:
		work += width * last(in[0].Shape) * costProduct
	case *HeadLinearAttr:
		work += width * last(a.W.Shape) * costProduct
	case *ExpertLinearAttr:
		work += width * last(a.W.Shape) * costProduct * float64(in[1].Width())
	case *ExpertsAttr:
		inner := float64(a.Up.Shape[1])
		work += float64(in[1].Width()) * inner * (2*last(in[0].Shape) + width) * costProduct
	case *ReduceAttr:
		work += float64(in[0].Width()) * costValue
	}
	if c.work += work; c.work > maxFixedWork {
		return fmt.Errorf("%s: what is the same for all tokens takes %.2g products to compute once, at most %.2g are made; make it of smaller values", Written(n.Op, n.Attr), c.work, float64(maxFixedWork))
	}
	if c.values > maxFixedValues {
		return fmt.Errorf("%s: what is the same for all tokens takes %.2g values, at most %.2g are kept; make it of smaller values", Written(n.Op, n.Attr), c.values, float64(maxFixedValues))
	}
	return nil
}

// maxTokenWork bounds the products of each token that no stored tensor bounds: they
// take half a minute. Models make less than 2^28.
const maxTokenWork = 1 << 34

// ofToken adds what a node multiplies for each token without a weight.
func (c *checker) ofToken(n *Node, in []*Node) error {
	c.token += products(n, in)
	return tooMuchWork(Written(n.Op, n.Attr), c.token)
}

// products are those of a node whose count its shapes alone bound.
func products(n *Node, in []*Node) float64 {
	switch a := n.Attr.(type) {
	case *DotAttr:
		return float64(n.Width()) * last(in[0].Shape)
	case *BalanceAttr:
		return 2 * float64(n.Width()) * float64(a.Rounds)
	case *LoopAttr:
		body, err := a.Graph(in)
		if err != nil {
			return 0 // which is told by now
		}
		work := 0.0
		for _, b := range body.Nodes {
			from := make([]*Node, len(b.In))
			for i, id := range b.In {
				from[i] = body.Nodes[id]
			}
			work += products(b, from)
		}
		return work
	}
	return 0
}

func tooMuchWork(op string, products float64) error {
	if products > maxTokenWork {
		return fmt.Errorf("%s: each token takes %.4g products of values with values, at most %.4g are made; make it of smaller values", op, products, float64(maxTokenWork))
	}
	return nil
}

// last is the last of an array's dimensions, 1 where it has none.
func last(shape []int) float64 {
	if len(shape) == 0 {
		return 1
	}
	return float64(shape[len(shape)-1])
}
