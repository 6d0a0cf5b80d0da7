package pattern

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"unicode"
)

// categoryNames are the long names of categories, without spaces, dashes and low lines.
var categoryNames = map[string]string{
	"other": "C", "control": "Cc", "format": "Cf", "unassigned": "Cn", "privateuse": "Co", "surrogate": "Cs",
	"letter": "L", "casedletter": "LC", "lowercaseletter": "Ll", "modifierletter": "Lm", "otherletter": "Lo", "titlecaseletter": "Lt", "uppercaseletter": "Lu",
	"mark": "M", "combiningmark": "M", "spacingmark": "Mc", "enclosingmark": "Me", "nonspacingmark": "Mn",
	"number": "N", "decimalnumber": "Nd", "letternumber": "Nl", "othernumber": "No",
	"punctuation": "P", "connectorpunctuation": "Pc", "dashpunctuation": "Pd", "closepunctuation": "Pe", "finalpunctuation": "Pf", "initialpunctuation": "Pi",
	"otherpunctuation": "Po", "openpunctuation": "Ps",
	"symbol": "S", "currencysymbol": "Sc", "modifiersymbol": "Sk", "mathsymbol": "Sm", "othersymbol": "So",
	"separator": "Z", "lineseparator": "Zl", "paragraphseparator": "Zp", "spaceseparator": "Zs",
}

// laterAlphabetic are the marks that are alphabetic in Unicode 16, not in this program's tables.
var laterAlphabetic = []runeRange{
	{0x363, 0x36f}, {0x897, 0x897}, {0x1dd3, 0x1de6}, {0x10d69, 0x10d69}, {0x10efc, 0x10efc}, {0x113b8, 0x113c0}, {0x113c2, 0x113c2},
	{0x113c5, 0x113c5}, {0x113c7, 0x113ca}, {0x113cc, 0x113cd}, {0x1611e, 0x1612e},
}

// bracketNames are the names of [:name:], which are properties too.
var bracketNames = map[string]*set{
	"alpha":  {mask: maskL | 1<<catNl, table: unicode.Other_Alphabetic, ranges: laterAlphabetic},
	"alnum":  {mask: maskL | 1<<catNl | 1<<catNd, table: unicode.Other_Alphabetic, ranges: laterAlphabetic},
	"upper":  {mask: 1 << catLu, table: unicode.Other_Uppercase},
	"lower":  {mask: 1 << catLl, table: unicode.Other_Lowercase},
	"digit":  {mask: 1 << catNd},
	"space":  {mask: maskSpace},
	"blank":  {mask: 1 << catZs, ranges: []runeRange{{'\t', '\t'}}},
	"cntrl":  {mask: maskControl},
	"punct":  {mask: maskP | maskS},
	"graph":  {mask: maskAll &^ (maskControl | maskZ | 1<<catCn | 1<<catCs)},
	"print":  {mask: maskAll &^ (maskControl | 1<<catZl | 1<<catZp | 1<<catCn | 1<<catCs)},
	"xdigit": {ranges: []runeRange{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
	"ascii":  {ranges: []runeRange{{0, 0x7f}}},
	"word":   wordSet(true),
}

// properties are the sets of \p{name} by their names without spaces, dashes and low lines, in small letters.
var properties = sync.OnceValue(func() map[string]*set {
	all := map[string]*set{"any": {mask: maskAll}, "assigned": {mask: maskAll &^ (1 << catCn)}}
	for name, table := range unicode.Properties {
		all[plainName(name)] = &set{table: table}
	}
	for name, table := range unicode.Scripts {
		all[plainName(name)] = &set{table: table}
	}
	for name, mask := range categoryMasks {
		all[plainName(name)] = &set{mask: mask}
	}
	for name, short := range categoryNames {
		all[name] = &set{mask: categoryMasks[short]}
	}
	maps.Copy(all, bracketNames)
	all["punct"] = &set{mask: maskP} // between brackets symbols are too
	all["math"] = &set{mask: 1 << catSm, table: unicode.Other_Math}
	for name, same := range map[string]string{"alphabetic": "alpha", "uppercase": "upper", "lowercase": "lower", "whitespace": "space"} {
		all[name] = bracketNames[same]
	}
	return all
})

func plainName(name string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
}

// property is the set of \p{name}, within brackets or outside of them; "^" before the name turns it round.
func property(name string, inside bool) (*set, error) {
	name, negated := strings.CutPrefix(name, "^")
	plain := plainName(name)
	s := properties()[plain]
	if s == nil {
		return nil, fmt.Errorf("unknown property \\p{%s}", name)
	}
	if plain == "word" {
		s = wordSet(inside)
	}
	return &set{negated: negated, subs: []*set{s}}, nil
}
