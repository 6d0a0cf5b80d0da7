package jinja

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats a time as C's strftime does in the C locale, with glibc's
// flags "-" (no padding), "_", "0" and "^". Unknown directives stay as they are.
func strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		start, flag := i, byte(0)
		i++
		for i+1 < len(format) && strings.IndexByte("-_0^", format[i]) >= 0 {
			flag = format[i]
			i++
		}
		s, ok := directive(format[i], flag, t)
		if !ok {
			s = format[start : i+1]
		}
		if flag == '^' {
			s = strings.ToUpper(s)
		}
		b.WriteString(s)
	}
	return b.String()
}

func padded(n, width int, fill, flag byte) string {
	switch flag {
	case '-':
		return fmt.Sprint(n)
	case '_':
		fill = ' '
	case '0':
		fill = '0'
	}
	if fill == ' ' {
		return fmt.Sprintf("%*d", width, n)
	}
	return fmt.Sprintf("%0*d", width, n)
}

// composed directives stand for longer formats.
var composed = map[byte]string{'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'R': "%H:%M", 'T': "%H:%M:%S",
	'r': "%I:%M:%S %p", 'c': "%a %b %e %H:%M:%S %Y", 'x': "%m/%d/%y", 'X': "%H:%M:%S"}

func directive(c, flag byte, t time.Time) (string, bool) {
	if f, ok := composed[c]; ok {
		return strftime(f, t), true
	}
	isoYear, isoWeek := t.ISOWeek()
	hour12 := (t.Hour()+11)%12 + 1
	numbers := map[byte]struct {
		n, width int
		fill     byte
	}{
		'd': {t.Day(), 2, '0'}, 'e': {t.Day(), 2, ' '}, 'm': {int(t.Month()), 2, '0'},
		'Y': {t.Year(), 1, '0'}, 'y': {t.Year() % 100, 2, '0'}, 'C': {t.Year() / 100, 2, '0'},
		'H': {t.Hour(), 2, '0'}, 'k': {t.Hour(), 2, ' '}, 'I': {hour12, 2, '0'}, 'l': {hour12, 2, ' '},
		'M': {t.Minute(), 2, '0'}, 'S': {t.Second(), 2, '0'}, 'j': {t.YearDay(), 3, '0'},
		'u': {(int(t.Weekday())+6)%7 + 1, 1, '0'}, 'w': {int(t.Weekday()), 1, '0'},
		'G': {isoYear, 4, '0'}, 'g': {isoYear % 100, 2, '0'}, 'V': {isoWeek, 2, '0'},
		'U': {(t.YearDay() + 6 - int(t.Weekday())) / 7, 2, '0'},
		'W': {(t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7, 2, '0'},
		'f': {t.Nanosecond() / 1000, 6, '0'},
	}
	if n, ok := numbers[c]; ok {
		return padded(n.n, n.width, n.fill, flag), true
	}
	switch c {
	case 'a':
		return t.Format("Mon"), true
	case 'A':
		return t.Format("Monday"), true
	case 'b', 'h':
		return t.Format("Jan"), true
	case 'B':
		return t.Format("January"), true
	case 'p':
		return t.Format("PM"), true
	case 'P':
		return strings.ToLower(t.Format("PM")), true
	case 's':
		return fmt.Sprint(t.Unix()), true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case '%':
		return "%", true
	case 'z', 'Z':
		return "", true // transformers gives a time without a zone
	}
	return "", false
}
