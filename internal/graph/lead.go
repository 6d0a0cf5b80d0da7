package graph

import "fmt"

// maxLead bounds the rows that stand before each text.
const maxLead = 1 << 14

// Lead is the number of rows that stand before each text and run through all
// layers as tokens do, and the id of the first: the others' follow. They take
// the positions 0 … rows−1 of a sequence; the text begins after them. 0: none.
func Lead(g *Graph) (rows, id int) {
	for _, n := range g.Nodes {
		if a, ok := n.Attr.(*EmbedAttr); ok && a.Lead != nil {
			return a.Lead.Shape[0], a.Table.Shape[0]
		}
	}
	return 0, 0
}

// checkLead wants all tables of tokens to have a row for each id that stands
// before a text, and a sequence that is computed from its beginning on.
func checkLead(g *Graph) error {
	rows, id := Lead(g)
	if rows == 0 {
		return nil
	}
	for i, n := range g.Nodes {
		a, ok := n.Attr.(*EmbedAttr)
		switch {
		case n.Rows == RowsMemory:
			return fmt.Errorf("graph: node %d (%s): rows before a text go with decoders that have no encoder", i, n.Line)
		case !ok || g.Nodes[n.In[0]].Op != OpTokens || a.Guard > 0 && a.Guard <= a.Table.Shape[0]:
		case a.Lead == nil && a.Table.Shape[0] < id+rows || a.Lead != nil && (a.Lead.Shape[0] != rows || a.Table.Shape[0] != id):
			return fmt.Errorf("graph: node %d (%s): %d rows stand before each text, with ids from %d on, and this table of tokens has no row for them: say before= or guard= here too", i, n.Line, rows, id)
		}
	}
	if Whole(g) {
		return fmt.Errorf("graph: rows before a text go with models that see earlier tokens only")
	}
	return nil
}
