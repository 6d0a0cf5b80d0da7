package spec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// oneLine shows line ends, control characters and the like of names and values
// that come from files as escapes: a comment must not end early, and a
// terminal must not obey them.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "�") {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}

// maxShown bounds a value of a file within a message.
const maxShown = 100

// shown is a value of a file as a message holds it: quoted and short.
func shown(s string) string {
	if len(s) <= maxShown {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%s… (%d bytes)", strconv.Quote(strings.ToValidUTF8(s[:maxShown], "")), len(s))
}

// isIdentifier says that a key of a configuration can be read as c.key.
func isIdentifier(s string) bool {
	for i, r := range s {
		if !(r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || i > 0 && '0' <= r && r <= '9') {
			return false
		}
	}
	return s != ""
}

// cut is a text of a file, short and on one line.
func cut(s string) string { return cutTo(s, maxShown) }

// cutTo is one of at most so many bytes.
func cutTo(s string, most int) string {
	if len(s) <= most {
		return oneLine(s)
	}
	return fmt.Sprintf("%s… (%d bytes)", oneLine(strings.ToValidUTF8(s[:most], "")), len(s))
}

// longestName is the length of names of tensors that are told whole.
const longestName = 250

// namedTensor is a tensor's name for messages.
func namedTensor(name string) string {
	if len(name) <= longestName {
		return oneLine(name)
	}
	return cut(name)
}

// maxProblem bounds a problem's text.
const maxProblem = 2000

// brief is a problem's text without its middle where it is longer: whatever it
// repeats of values, its beginning says where and its end what to do.
func brief(s string) string {
	if len(s) <= maxProblem {
		return s
	}
	const head = maxProblem * 3 / 4
	return strings.ToValidUTF8(s[:head], "") + " … " + strings.ToValidUTF8(s[len(s)-(maxProblem-head):], "")
}
