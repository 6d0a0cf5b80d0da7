package graph

// Written is the word with which a specification writes an operation: messages
// name what stands in its line, not what the graph makes of it.
func Written(op Op, attr any) string {
	switch a := attr.(type) {
	case *UnaryAttr:
		return writtenUnary(a.F)
	case *BinaryAttr:
		if w, ok := writtenBinary[a.F]; ok {
			return w
		}
		return a.F
	case *ReduceAttr:
		if w, ok := writtenReduce[a.F]; ok {
			return w
		}
		return a.F
	case *NormAttr:
		return string(a.Kind) + "_norm"
	case *ConvAttr:
		if a.W == nil && a.Taps == 0 {
			return "shift"
		}
	case *LinearAttentionAttr:
		if !a.Keys && !a.Gate && !a.Bonus && a.Norm == "" {
			return "linear_scan"
		}
	case *DeltaAttr:
		if a.General {
			return "general_delta"
		}
	}
	switch op {
	case OpTypes:
		return "token_types"
	case OpBalance:
		return "doubly_stochastic"
	case OpArg:
		return "recur"
	case OpStored:
		return "attention"
	}
	return string(op)
}

var (
	writtenBinary = map[string]string{"add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "max": "maximum", "min": "minimum", "pow": "power"}
	writtenReduce = map[string]string{"sum": "total", "max": "largest", "min": "smallest"}
)

// writtenUnary names a function of one value; sums and products with a number are written by signs.
func writtenUnary(f string) string {
	switch f {
	case "add":
		return "x + n"
	case "scale":
		return "x * n"
	case "neg":
		return "-x"
	case "pow":
		return "power"
	}
	return f
}
