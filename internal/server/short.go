package server

import "strings"

// maxMessage bounds a message: what a file or a request says may be repeated in
// it, however long. A list of forty problems has room.
const maxMessage = 16 << 10

// Short is a message without its middle where it is longer than people read.
// The beginning says what happened, the end what can be done.
func Short(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	const head, tail = maxMessage * 3 / 4, maxMessage / 4
	return strings.ToValidUTF8(s[:head], "") + " … " + strings.ToValidUTF8(s[len(s)-tail:], "")
}
