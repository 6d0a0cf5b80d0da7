package spec

import "strings"

// respelling turns a name that begins with from into one that begins with to.
type respelling struct{ from, to string }

// references lists the name and its aliases in the reference's style, and what
// alternative beginnings make of them, one after another. Names that no stored
// tensor can have are left out where nothing else hangs on them.
func (n *nameTable) references(name string) []string {
	names, _ := n.aliases.lookup(name)
	list := append([]string{name}, names...)
	if len(n.prefixes) == 0 {
		return list
	}
	if n.binding != HF {
		for _, p := range n.prefixes {
			for _, ref := range list[:len(list):len(list)] {
				if rest, ok := strings.CutPrefix(ref, p[0]); ok {
					list = append(list, p[1]+rest)
				}
			}
		}
		return list
	}
	if n.of != len(n.prefixes) {
		n.joined, n.of = joinedPrefixes(n.prefixes, n.stored), len(n.prefixes)
	}
	own := list
	for _, r := range n.joined {
		for _, ref := range own {
			if rest, ok := strings.CutPrefix(ref, r.from); ok {
				list = append(list, r.to+rest)
			}
		}
	}
	return list
}

// joinedPrefixes are the beginnings that any number of the prefixes make in
// their order, less those that no stored name has.
func joinedPrefixes(prefixes [][2]string, stored []string) []respelling {
	all := []respelling{{}}
	for _, p := range prefixes {
		for _, b := range all[:len(all):len(all)] {
			if rest, ok := strings.CutPrefix(b.to, p[0]); ok {
				all = append(all, respelling{b.from, p[1] + rest})
			} else if more, ok := strings.CutPrefix(p[0], b.to); ok {
				all = append(all, respelling{b.from + more, p[1]})
			}
		}
	}
	begins := headsOf(stored)
	bare := !begins.have("model.") // bareName then tries the name without it
	kept, seen := []respelling{}, map[respelling]bool{}
	for _, b := range all[1:] {
		rest, of := strings.CutPrefix(b.to, "model.")
		if !seen[b] && (begins.have(b.to) || bare && of && begins.have(rest)) {
			kept = append(kept, b)
		}
		seen[b] = true
	}
	return kept
}

// headParts is how many parts of a name are looked at.
const headParts = 3

// heads are the beginnings of stored names, up to each of their first dots.
type heads map[string]bool

func headsOf(stored []string) heads {
	h, before := heads{}, "."
	for _, name := range stored {
		if strings.HasPrefix(name, before) {
			continue // names mostly come in order
		}
		at, parts := 0, 0
		for ; parts < headParts; parts++ {
			dot := strings.IndexByte(name[at:], '.')
			if dot < 0 {
				break
			}
			at += dot + 1
			h[name[:at]] = true
		}
		if before = "."; parts == headParts { // a shorter name says nothing of longer ones
			before = name[:at]
		}
	}
	return h
}

// have says that a stored name may begin so.
func (h heads) have(begin string) bool {
	at := 0
	for range headParts {
		dot := strings.IndexByte(begin[at:], '.')
		if dot < 0 {
			break
		}
		at += dot + 1
	}
	return at == 0 || h[begin[:at]]
}
