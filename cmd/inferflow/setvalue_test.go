package main

import (
	"encoding/json"
	"testing"

	"github.com/inferflow/inferflow/spec"
)

// TestParseValue: what a notice prints of a value is taken as that value; numbers
// stay as they are typed, and what begins as JSON does is that or refused.
func TestParseValue(t *testing.T) {
	for text, say := range map[string]string{
		"1": "1", "[1,2]": "[1, 2]", "1e-5": "1e-5", "2.50": "2.50", `{"a":[1,2.0]}`: `{"a": [1, 2.0]}`, "[0, Infinity]": "[0, Infinity]", "-Infinity": "-Infinity", "NaN": "NaN",
		"null": "null", "true": "true", "gelu": `"gelu"`, `"gelu"`: `"gelu"`, `["a","b Infinity"]`: `["a", "b Infinity"]`, ".5": "0.5", "4-bit": `"4-bit"`, "": `""`,
	} {
		v, err := parseValue(text)
		got := spec.ValueText(v)
		if err != nil || got != say {
			t.Errorf("%s is %s, want %s: %v", text, got, say, err)
		}
		again, err := parseValue(got)
		if err != nil || spec.ValueText(again) != got {
			t.Errorf("%s is printed as %s, which is taken as %s: %v", text, got, spec.ValueText(again), err)
		}
	}
	if v, _ := parseValue("12"); v != json.Number("12") {
		t.Errorf("12 is %T", v)
	}
	for _, bad := range []string{"[1,", `{"a"`, `["a" "b"]`, "[1] 2"} {
		if v, err := parseValue(bad); err == nil {
			t.Errorf("%s is %v", bad, v)
		}
	}
}
