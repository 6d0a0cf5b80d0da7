package spec

import "strconv"

// useSeries marks the stored tensors before0after to before(n−1)after as read.
// Thousands of experts are so few entries.
func (t *tracer) useSeries(before, after string, n int) {
	if t.series == nil {
		t.series = map[string]int{}
	}
	key := before + "#" + after
	t.series[key] = max(t.series[key], n)
}

// isUsed says whether something reads a stored tensor.
func (t *tracer) isUsed(name string) bool {
	if len(t.series) == 0 {
		return t.used[name]
	}
	var buf [256]byte
	for i := 0; i < len(name); i++ {
		if !digit(name[i]) || i > 0 && digit(name[i-1]) {
			continue
		}
		end := i
		for end < len(name) && digit(name[end]) {
			end++
		}
		key := append(append(append(buf[:0], name[:i]...), '#'), name[end:]...)
		if n, ok := t.series[string(key)]; ok {
			if k, err := strconv.Atoi(name[i:end]); err == nil && k < n && (k == 0 || name[i] != '0') {
				return true
			}
		}
	}
	return t.used[name]
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
