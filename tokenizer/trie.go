package tokenizer

import (
	"strings"
)

// trie is a set of byte strings with a value each, as one hash table of edges: (node, byte) → node. It is small and quick to build for a quarter of a
// million strings, where nodes of their own would not be.
type trie struct {
	keys   []uint64 // node<<8 | byte, plus 1; 0 is free
	next   []uint32
	mask   uint64
	edges  int
	values []int32 // by node; -1 where no string ends
	first  [256]bool
	start  string // the bytes of first, when they are few
}

func newTrie(strings int) *trie {
	size := 64
	for size < strings*4 {
		size *= 2
	}
	return &trie{keys: make([]uint64, size), next: make([]uint32, size), mask: uint64(size - 1), values: []int32{-1}}
}

func (t *trie) slot(key uint64) uint64 {
	i := hash(key) & t.mask
	for t.keys[i] != 0 && t.keys[i] != key {
		i = (i + 1) & t.mask
	}
	return i
}

// child returns the node behind byte b, 0 if there is none (the root is no child).
func (t *trie) child(node uint32, b byte) uint32 {
	return t.next[t.slot(uint64(node)<<8|uint64(b)+1<<40)]
}

// insert gives s a value >= 0; an earlier value stays.
func (t *trie) insert(s string, value int32) {
	if s == "" {
		return
	}
	if !t.first[s[0]] {
		t.first[s[0]] = true
		t.start += s[:1]
	}
	node := uint32(0)
	for i := range len(s) {
		key := uint64(node)<<8 | uint64(s[i]) + 1<<40
		at := t.slot(key)
		if t.keys[at] == 0 {
			if t.edges*3 > len(t.keys)*2 {
				t.grow()
				at = t.slot(key)
			}
			t.edges++
			t.keys[at], t.next[at] = key, uint32(len(t.values))
			t.values = append(t.values, -1)
		}
		node = t.next[at]
	}
	if t.values[node] < 0 {
		t.values[node] = value
	}
}

func (t *trie) grow() {
	keys, next := t.keys, t.next
	t.keys, t.next = make([]uint64, 2*len(keys)), make([]uint32, 2*len(keys))
	t.mask = uint64(len(t.keys) - 1)
	for i, k := range keys {
		if k != 0 {
			at := t.slot(k)
			t.keys[at], t.next[at] = k, next[i]
		}
	}
}

// longest returns the value and size of the longest string that s begins with and accept takes; size 0 means none.
func (t *trie) longest(s string, accept func(value int32) bool) (value int32, size int) {
	node := uint32(0)
	for i := range len(s) {
		if node = t.child(node, s[i]); node == 0 {
			break
		}
		if v := t.values[node]; v >= 0 && (accept == nil || accept(v)) {
			value, size = v, i+1
		}
	}
	return value, size
}

// candidate returns the first position from pos on where a string of the set could begin, len(s) if there is none.
func (t *trie) candidate(s string, pos int) int {
	if pos >= len(s) || t.edges == 0 {
		return len(s)
	}
	if len(t.start) == 1 {
		if i := strings.IndexByte(s[pos:], t.start[0]); i >= 0 {
			return pos + i
		}
		return len(s)
	}
	for pos < len(s) && !t.first[s[pos]] {
		pos++
	}
	return pos
}
