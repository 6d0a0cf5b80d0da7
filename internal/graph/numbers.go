package graph

import (
	"fmt"
	"math"
)

// Bounds of numbers that devices keep in float32: what is beyond it would be
// infinite there, and what is below its normal numbers would be 0.
const (
	maxNumber = math.MaxFloat32
	minNumber = 0x1p-126
)

// fits says that a number is one in float32 too.
func fits(x float64) bool { return math.Abs(x) <= maxNumber }

// checkNumbers refuses numbers of the attributes with which the graph and a device
// would not compute the same, or nothing.
func checkNumbers(word string, attr any) error {
	type named struct {
		name  string
		value float64
		ok    bool
		want  string
	}
	const plain, notNegative = "a finite number of at most 3.4e38", "a finite number from 0 to 3.4e38"
	var list []named
	number := func(name string, x float64) { list = append(list, named{name, x, fits(x), plain}) }
	atLeast0 := func(name string, x float64) { list = append(list, named{name, x, fits(x) && x >= 0, notNegative}) }
	switch a := attr.(type) {
	case *UnaryAttr:
		for _, x := range []float64{a.A, a.B} { // an open end of clamp is infinite
			list = append(list, named{"the number", x, fits(x) || math.IsInf(x, 0) || a.F == "clamp" && !math.IsNaN(x), plain})
		}
	case *NormAttr:
		atLeast0("eps", a.Eps)
		number("offset", a.Offset)
	case *AttentionAttr:
		number("scale", a.Scale)
		for _, s := range a.Slopes {
			number("a slope", s)
		}
	case *StoredAttr:
		number("scale", a.Scale)
	case *RouteAttr:
		number("scale", a.Scale)
		atLeast0("renorm_eps", a.RenormEps)
		atLeast0("norm_pow", a.NormPow)
		list = append(list, named{"group_fill", a.GroupFill, fits(a.GroupFill) || math.IsInf(a.GroupFill, -1), plain + ", or -math.inf"})
	case *ExpertsAttr:
		number("alpha", a.Alpha)
		list = append(list, named{"limit", a.Limit, a.Limit == 0 || a.Limit >= minNumber && !math.IsNaN(a.Limit), "a number above 0, or 0"})
	case *LinearAttentionAttr:
		atLeast0("eps", a.Eps)
	}
	for _, n := range list {
		if !n.ok {
			return fmt.Errorf("%s: %s is %g, expected %s", word, n.name, n.value, n.want)
		}
	}
	return nil
}
