// Package pattern matches the regular expressions that tokenizer files carry: the Unicode pattern language of their pre-tokenizers, with lookahead,
// possessive and lazy repeats, class intersection and case folding, in the reading of the Oniguruma library (Ruby syntax) that the reference uses.
//
// Matching is leftmost and takes the first alternative that succeeds, as in Perl. The time is linear in the length of the text for a fixed pattern:
// states that failed are remembered once an attempt becomes long, and a lookahead of more than one character is answered from a table that one pass
// from the end of the text fills. What cannot be kept linear (back references, atomic groups of more than a character) is refused by Compile.
//
// It imports nothing of this module. Read Pattern first.
package pattern
