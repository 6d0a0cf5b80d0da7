package pattern

// scanners are hand-written matchers for the patterns that most models share, by the exact source of the pattern.
var scanners = map[string]func(text string, pos int) int{}
