package tokenizer

import (
	"sort"
	"sync"
	"unicode"
)

// scriptRange is a range of characters of one script.
type scriptRange struct {
	first, last rune
	name        string
}

// scripts lists the ranges of all scripts in order.
var scripts = sync.OnceValue(func() (list []scriptRange) {
	for name, table := range unicode.Scripts {
		add := func(first, last, stride rune) {
			if stride == 1 {
				list = append(list, scriptRange{first, last, name})
				return
			}
			for r := first; r <= last; r += stride {
				list = append(list, scriptRange{r, r, name})
			}
		}
		for _, r := range table.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range table.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].first < list[j].first })
	return list
})

// scriptOf returns the script of r in the reference's tables, "" if they have none. Kana count as Han.
func scriptOf(r rune) string {
	switch {
	case r == ' ' || newerScripts.has(r):
		return ""
	case r == 0x30fc:
		return "Han"
	case r == 0x589 || r == 0x61c:
		return "Common"
	}
	list := scripts()
	i := sort.Search(len(list), func(i int) bool { return list[i].last >= r })
	if i == len(list) || list[i].first > r {
		return ""
	}
	if name := list[i].name; name != "Hiragana" && name != "Katakana" {
		return name
	}
	return "Han"
}
