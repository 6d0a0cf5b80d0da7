package chat

import (
	"errors"
	"strings"

	"github.com/inferflow/inferflow/chat/jinja"
)

// WantsTools says that err is of a line of the template's source that cannot do
// without tools, of which in has none.
func WantsTools(source string, in Input, err error) bool {
	var j *jinja.Error
	lines := strings.Split(source, "\n")
	return len(in.Tools) == 0 && errors.As(err, &j) && j.Line > 0 && j.Line <= len(lines) && strings.Contains(j.Msg, "NoneType") && strings.Contains(lines[j.Line-1], "tools")
}
