package spec

import (
	"strings"
	"testing"

	"github.com/inferflow/inferflow/internal/graph"
	"github.com/inferflow/inferflow/quant"
	"github.com/inferflow/inferflow/tensor"
)

// packed are the files of a matrix of 8 × 6 in two bits a weight.
func packed(typ quant.Type, method string) *shapeFiles {
	return &shapeFiles{binding: HF, config: map[string]any{"model_type": "packed", "quantization_config": map[string]any{"quant_method": method}},
		tensors: map[string]tensor.View{
			"embed.weight": {Name: "embed.weight", Type: quant.F32, Shape: tensor.Shape{10, 6}},
			"up.weight":    {Name: "up.weight", Type: typ, Shape: tensor.Shape{2, 6}},
		}}
}

const packedSpec = `
serves(model_type = "packed", quantized = "two_bits")
def model(c):
    return linear(round(embed("embed")), ternary("up.weight"))
`

// TestTernary unpacks four rows a byte, of a quantisation that the specification names.
func TestTernary(t *testing.T) {
	tr, err := trace("packed.star", packedSpec, packed(quant.U8, "two_bits"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := tr.Graph.Nodes[tr.Graph.Outputs[0].Node]
	if w := n.Attr.(*graph.LinearAttr).W; len(n.Shape) != 1 || n.Shape[0] != 8 || len(w.Args) != 4 || w.Args[3].F != "bits_6" {
		t.Errorf("a product of %v by %s", n.Shape, graph.WeightText(w))
	}
}

func TestTernaryErrors(t *testing.T) {
	for _, c := range []struct {
		files *shapeFiles
		say   string
	}{
		{packed(quant.F32, "two_bits"), "expected a matrix of bytes"},
		{packed(quant.U8, "other"), `quant_method "other"`},
	} {
		if _, err := trace("packed.star", packedSpec, c.files, Options{}); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("got %v, expected %q", err, c.say)
		}
	}
}
