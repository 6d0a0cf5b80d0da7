package tokenizer

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// TestDecimal has numbers as the library tokenizers 0.23 reads and writes them again: the last bit is not always the nearest.
func TestDecimal(t *testing.T) {
	for in, want := range map[string]float64{
		"0": 0, "0.0": 0, "-0.0": 0, "12": 12, "-2.5": -2.5, "1e3": 1000, "1.5E-3": 0.0015, "-7.4715776443481445": -7.471577644348144, "-7.7206902503967285": -7.720690250396728,
		"-7.7708048820495605": -7.77080488204956, "-7.8046770095825195": -7.80467700958252, "-9.866480827331543": -9.866480827331545, "-11.217742919921875": -11.217742919921877,
		"18446744073709551616": 1.8446744073709552e+19, "0.12345678901234567890123456789": 0.12345678901234568, "184467440737095516160000000000.5": 1.844674407370955e+29,
		"3.14159265358979": 3.14159265358979, "1e-400": 0, "123e-330": 0, "1e-99999999999999999999": 0,
	} {
		got, ok := decimal(in)
		if !ok || got != want {
			t.Errorf("%s: %s, %v, want %s", in, strconv.FormatFloat(got, 'g', -1, 64), ok, strconv.FormatFloat(want, 'g', -1, 64))
		}
	}
	for _, in := range []string{"", "x", "1e400", "-1e309", "NaN", "Inf", "-inf", "1e99999999999999999999", "1e"} {
		if v, ok := decimal(in); ok {
			t.Errorf("%q is read as %g", in, v)
		}
	}
	for _, in := range []string{"3.14159265358979", "-1234.5678", "0.1", "-11.217742919921875", "1" + strings.Repeat("0", 300), "0." + strings.Repeat("0", 300) + "1"} {
		exact, _ := strconv.ParseFloat(in, 64)
		if got, ok := decimal(in); !ok || math.Abs(got-exact) > 4e-16*math.Abs(exact) {
			t.Errorf("%s: %g, exactly %g", in, got, exact)
		}
	}
}
