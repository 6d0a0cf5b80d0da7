package spec

import (
	"strings"
	"testing"
)

// TestChatRoles reads what a specification says of roles and refuses other words.
func TestChatRoles(t *testing.T) {
	f := loadShapes(t, "llama.hf")
	src, err := librarySource("llama")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace("m.star", src+"\nchat(developer = \"user\", late_system = \"merge\", system = \"keep\")\n", f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := tr.Chat; c.Developer != "user" || c.LateSystem != "merge" || c.System != "keep" || len(c.EndTokens) == 0 {
		t.Errorf("got %+v", c)
	}
	for _, bad := range []string{`developer = "assistant"`, `late_system = True`, `system = "merge"`} {
		if _, err := trace("m.star", src+"\nchat("+bad+")\n", f, Options{}); err == nil || !strings.Contains(err.Error(), "is one of") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}
