package model

import "github.com/inferflow/inferflow/internal/graph"

// Encodes says that the model is an encoder-decoder: a request brings a source,
// which is encoded once, and the tokens that the decoder begins with.
func (m *Model) Encodes() bool {
	for _, c := range m.Traced.Graph.Caches {
		if c.Memory && c.Kept {
			return true
		}
	}
	return false
}

// Embeds is the number of token ids that have a row in each table of
// embeddings that the sequence's own tokens read, 0 if there is none.
func (m *Model) Embeds() int { return m.embeds(graph.RowsToken) }

// SourceEmbeds is Embeds of an encoder's source, 0 where there is no encoder.
func (m *Model) SourceEmbeds() int {
	if !m.Encodes() {
		return 0
	}
	return m.embeds(graph.RowsMemory)
}

func (m *Model) embeds(which graph.Rows) int {
	rows := 0
	g := m.Traced.Graph
	for _, n := range g.Nodes {
		a, ok := n.Attr.(*graph.EmbedAttr)
		if !ok || n.Rows != which || g.Nodes[n.In[0]].Op != graph.OpTokens || a.Guard > 0 && a.Guard <= a.Table.Shape[0] {
			continue
		}
		if v := a.Table.Shape[0]; rows == 0 || v < rows {
			rows = v
		}
	}
	return rows
}

// Lead are the ids that stand before each text: rows of the model's own that run
// through all layers, in front of position Lead. None for most models.
func (m *Model) Lead() []int32 {
	rows, first := graph.Lead(m.Traced.Graph)
	ids := make([]int32, rows)
	for i := range ids {
		ids[i] = int32(first + i)
	}
	return ids
}

// Room is the number of tokens of a text with its answer that the context holds.
func (m *Model) Room() int {
	rows, _ := graph.Lead(m.Traced.Graph)
	return m.Limits.Tokens - rows
}
