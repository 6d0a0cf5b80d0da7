package bench

import (
	"fmt"
	"sort"
	"strings"

	"github.com/inferflow/inferflow/internal/model"
)

// TypeBytes is what the tensors of one storage type take.
type TypeBytes struct {
	Type     string  `json:"type"`
	Tensors  int     `json:"tensors"`
	Elements int64   `json:"elements"`
	Bytes    int64   `json:"bytes"`
	Bits     float64 `json:"bits"` // a value
}

// Types sums up the stored tensors by type, the largest first.
func Types(m *model.Model) []TypeBytes {
	by := map[string]*TypeBytes{}
	for _, v := range m.Tensors() {
		name := v.Type.String()
		t := by[name]
		if t == nil {
			t = &TypeBytes{Type: name}
			by[name] = t
		}
		t.Tensors++
		t.Elements += int64(v.Shape.Elements())
		t.Bytes += int64(len(v.Data))
	}
	out := make([]TypeBytes, 0, len(by))
	for _, t := range by {
		if t.Elements > 0 {
			t.Bits = 8 * float64(t.Bytes) / float64(t.Elements)
		}
		out = append(out, *t)
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].Bytes > out[j].Bytes || out[i].Bytes == out[j].Bytes && out[i].Type < out[j].Type
	})
	return out
}

// Info describes an opened model.
func Info(m *model.Model) ModelInfo {
	i := ModelInfo{Name: m.Name, Path: m.Path, Spec: m.Traced.SpecName, Layers: m.Traced.Graph.Layers}
	var names []string
	for _, t := range Types(m) {
		i.Parameters += t.Elements
		i.Bytes += t.Bytes
		names = append(names, t.Type)
	}
	i.Types = strings.Join(names, "+")
	return i
}

// Count renders a number of parameters: 134.5 M, 1.1 B.
func Count(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f B", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f K", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}
