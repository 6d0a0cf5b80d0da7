package jinja

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
)

// FuzzRender parses and renders any source: neither may panic, hang or fail
// with anything but an *Error, and the pieces must be well formed.
func FuzzRender(f *testing.F) {
	vars, cases := readExpressions(f, "testdata/expressions.json")
	for i, c := range cases {
		if i%3 == 0 {
			f.Add(c.Source)
		}
	}
	lim := Limits{Steps: 20_000, Output: 1 << 18, Memory: 8 << 20}
	f.Fuzz(func(t *testing.T, source string) {
		tpl, err := Parse(source, lim)
		if err == nil {
			v, jsonErr := FromJSON(vars, true)
			if jsonErr != nil {
				t.Fatal(jsonErr)
			}
			var pieces []Piece
			pieces, err = tpl.Render(v.(*Dict), now)
			for i, p := range pieces {
				if p.Text == "" || i > 0 && pieces[i-1].User == p.User {
					t.Fatalf("piece %d of %+v", i, pieces)
				}
			}
		}
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error of type %T: %v", err, err)
		}
	})
}

// FuzzJSON reads any text as JSON: what encoding/json accepts is accepted and
// written back the same.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,-3e10,"x\u00e9\ud83d\ude42",null,true]}`, `[]`, `"\u0000"`, `123456789012345678901234567890`, `{"a":1,"a":2}`, `[1`, `01`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := FromJSON([]byte(text), true)
		if err != nil {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("accepted %q", text)
		}
		r := &run{ctx: context.Background(), lim: Limits{}.orDefaults(), filters: filters}
		out, err := filterToJSON(r, v, &args{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := FromJSON([]byte(out.(Str).s), true)
		if err != nil {
			t.Skip(err) // numbers beyond float64 become Infinity, as in Python
		}
		if eq, err := r.equal(v, again); err != nil || !eq {
			t.Fatalf("%q became %q", text, out.(Str).s)
		}
	})
}
