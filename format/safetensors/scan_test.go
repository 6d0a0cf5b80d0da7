package safetensors

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestScanner holds the scanner of headers against package json: what one
// takes as an object of arrays of numbers the other takes, with the same keys.
func TestScanner(t *testing.T) {
	texts := []string{
		`{}`, ` { } `, `{"a":[]}`, "{\t\"a\" :\r\n[ 1 , 2 ] }", `{"a":[0,9223372036854775807]}`, `{"a\u0062\n\"\\":[1],"ä😀":[2]}`, `{"\ud83d\ude00":[1],"\ud800":[2]}`,
		`{"a":[1],}`, `{,"a":[1]}`, `{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1 2]}`, `{"a"[1]}`, `{"a":}`, `{a:[1]}`, `{"a":[01]}`, `{"a":[00]}`, `{"a":[1x]}`, `{"a":[1]`, `{"a":[1`,
		`{"a`, `{"a\`, `{"a\"`, `{`, ``, `{"a":[1]}}`, `{"a":[1]} x`, "{\"a\nb\":[1]}", `{"\x":[1]}`, "{\"a\x00\":[1]}", "\x00", `{"a":[1]"b":[2]}`, `{"":[1]}`, "{\"a\xff\":[1]}",
	}
	for _, text := range texts {
		var want map[string][]uint64
		wantErr := json.Unmarshal([]byte(text), &want)
		got := map[string][]uint64{}
		s := newScanner([]byte(text))
		err := s.object(place{what: "it"}, 0, func(key string) error {
			n, err := s.numbers(place{what: key}, 9)
			got[key] = append([]uint64{}, n...)
			return err
		})
		if err == nil {
			err = s.end()
		}
		if (err == nil) != (wantErr == nil) || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v, package json says %v", text, err, wantErr)
			continue
		}
		if err == nil && len(got) != len(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		for k := range want {
			if err == nil && len(got[k]) != len(want[k]) {
				t.Errorf("%q: %q is %v, want %v", text, k, got[k], want[k])
			}
		}
	}
	var many []string
	for i := range 20 {
		many = append(many, `"`+strings.Repeat("k", i)+`":[1]`)
	}
	for n := 1; n < len(many); n++ {
		s := newScanner([]byte("{" + strings.Join(append(many[:n:n], many[0]), ",") + "}"))
		if err := s.object(place{what: "it"}, 0, func(string) error { _, err := s.numbers(place{}, 1); return err }); err == nil || !strings.Contains(err.Error(), "twice") {
			t.Errorf("a key twice among %d: %v", n, err)
		}
	}
}

// BenchmarkHeader reads the header of a model of 80 layers and 256 experts.
func BenchmarkHeader(b *testing.B) {
	text := []byte("{")
	for l := range 80 {
		for e := range 256 {
			for _, part := range []string{"down", "gate", "up"} {
				if len(text) > 1 {
					text = append(text, ',')
				}
				text = append(text, `"model.layers.`...)
				text = append(text, byte('0'+l/10), byte('0'+l%10))
				text = append(text, `.mlp.experts.`...)
				text = append(text, byte('0'+e/100), byte('0'+e/10%10), byte('0'+e%10))
				text = append(text, "."+part+`_proj.weight":{"dtype":"BF16","shape":[768,2048],"data_offsets":[1230000000,1233145728]}`...)
			}
		}
	}
	text = append(text, '}')
	for b.Loop() {
		if h, err := parseHeader(text); err != nil || len(h.entries) != 80*256*3 {
			b.Fatal(err)
		}
	}
}
