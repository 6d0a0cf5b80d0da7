package chat

import "testing"

func TestWantsTools(t *testing.T) {
	for source, want := range map[string]bool{
		"{% for t in tools %}{{ t }}{% endfor %}":                      true,
		"{{ tools | length }}":                                         true,
		"a\n{%- for t in tools %}{{ t }}{% endfor %}":                  true,
		"{% for t in messages[0].nothing.more %}{{ t }}{% endfor %}":   false,
		"{{ raise_exception('give tools') }}":                          false,
		"{% if tools %}{% endif %}{% for x in none %}{% endfor %}\n{}": true, // the line speaks of tools
	} {
		tm, err := Parse(source, Options{})
		if err != nil {
			t.Fatal(source, err)
		}
		in := Input{Messages: []Message{{Role: "user", Content: "a"}}}
		if _, err = tm.Render(in); WantsTools(source, in, err) != want {
			t.Errorf("%q: %v, want %v", source, err, want)
		}
	}
}
