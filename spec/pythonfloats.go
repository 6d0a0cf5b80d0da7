package spec

import "bytes"

// floatWords are what Python's json writes for floats that JSON has no form for,
// with the form that config.json has in this package.
var floatWords = []struct{ word, object string }{
	{"-Infinity", `{"__float__":"-Infinity"}`},
	{"Infinity", `{"__float__":"Infinity"}`},
	{"NaN", `{"__float__":"NaN"}`},
}

// PythonFloats replaces those words where they stand outside of the strings of JSON.
func PythonFloats(raw []byte) []byte {
	var out bytes.Buffer
	inside := false
next:
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			inside = !inside
		case inside && c == '\\' && i+1 < len(raw):
			out.WriteByte(c)
			i++
		case !inside && (c == '-' || c == 'I' || c == 'N'):
			for _, f := range floatWords {
				if bytes.HasPrefix(raw[i:], []byte(f.word)) {
					out.WriteString(f.object)
					i += len(f.word) - 1
					continue next
				}
			}
		}
		out.WriteByte(raw[i])
	}
	return out.Bytes()
}
