package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// probes is the most places that finding a key of a table takes.
func (t *pairTable) probes() (most int) {
	for at, s := range t.slots {
		if s.key != 0 {
			most = max(most, int((uint64(at)-hash(s.key))&t.mask)+1)
		}
	}
	return most
}

func (t *trie) probes() (most int) {
	for at, k := range t.keys {
		if k != 0 {
			most = max(most, int((uint64(at)-hash(k))&t.mask)+1)
		}
	}
	return most
}

// TestHostileKeys: pairs of ids that a multiplication by a known number sends to one place are found as fast as others.
func TestHostileKeys(t *testing.T) {
	const known, n = 0x9e3779b97f4a7c15, 50_000
	table := newPairTable(0)
	for left := int32(0); table.used < n; left++ {
		for right := int32(0); right < 1<<10; right++ {
			if pairKey(left, right)*known>>32&(1<<17-1) < 1<<10 {
				table.set(left, right, pairRank{rank: left, id: right})
			}
		}
	}
	if most := table.probes(); most > 500 {
		t.Errorf("a pair takes %d places", most)
	}
	tr := newTrie(0)
	for i := range n {
		tr.insert(fmt.Sprintf("%c%c%c", rune(i%31), rune(i), rune(i*7%65_000)), int32(i))
	}
	if most := tr.probes(); most > 500 {
		t.Errorf("an edge takes %d places", most)
	}
}

// TestManyAdded has 50,000 added tokens of all flags that share their beginnings, some in others.
func TestManyAdded(t *testing.T) {
	const n = 50_000
	var b strings.Builder
	b.WriteString(`{"added_tokens":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"content":"<|%d","special":%t,"lstrip":%t,"rstrip":%t,"normalized":false}`, i+4, i, i%2 == 0, i%3 == 0, i%5 == 0)
	}
	b.WriteString(`],"normalizer":{"type":"NFC"},"model":{"type":"BPE","vocab":{"a":0," ":1,"<":2,"|":3},"merges":[]}}`)
	tok, err := FromJSON([]byte(b.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if most := tok.added.raw.probes(); most > 500 {
		t.Errorf("an edge takes %d places", most)
	}
	var text strings.Builder
	var want []int32
	for i := range n {
		fmt.Fprintf(&text, "a<|%d", i)
		want = append(want, 0, int32(i+4))
	}
	text.WriteString(strings.Repeat("<|", n))
	for range n {
		want = append(want, 2, 3)
	}
	if got := tok.Encode(text.String(), Options{ParseSpecial: true}); !slices.Equal(got, want) {
		t.Errorf("%d ids, want %d", len(got), len(want))
	}
}

// TestStrippedSpaces: added tokens of white space that take the white space around them do not look at all of a run again and again.
func TestStrippedSpaces(t *testing.T) {
	tok, err := FromJSON([]byte(`{"added_tokens":[{"id":1,"content":" ","lstrip":true},{"id":2,"content":"<x>","lstrip":true,"rstrip":true}],"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	const n = 200_000
	if got := tok.Encode(strings.Repeat(" ", n)+"<x>"+strings.Repeat(" ", n)+"a", Options{ParseSpecial: true}); len(got) != n+2 || got[n] != 2 || got[n+1] != 0 {
		t.Errorf("%d ids", len(got))
	}
}

// TestLongPieces: no file may have a piece that is longer than it is worth looking for at every place.
func TestLongPieces(t *testing.T) {
	long := strings.Repeat("a", maxPiece+1)
	for name, file := range map[string]string{
		"vocab":     `{"model":{"type":"BPE","vocab":{"` + long + `":0},"merges":[]}}`,
		"unigram":   `{"model":{"type":"Unigram","vocab":[["<unk>",0],["` + long + `",-1]],"unk_id":0}}`,
		"wordpiece": `{"model":{"type":"WordPiece","unk_token":"u","vocab":{"u":0,"##` + long + `":1}}}`,
		"added":     `{"added_tokens":[{"id":1,"content":"` + long + `"}],"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`,
		"grown": `{"added_tokens":[{"id":1,"content":"` + long[:1000] + `","normalized":true}],"normalizer":{"type":"Replace","pattern":{"String":"a"},"content":"bbbbb"},` +
			`"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`,
	} {
		if _, err := FromJSON([]byte(file), nil); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "bytes, want at most 4096") || len(err.Error()) > 300 {
			t.Errorf("%s: %.400v", name, err)
		}
	}
}

// chain is a BPE vocabulary a, aa, aaa, … with a merge of every two that are a third.
func chain(n int) string {
	var vocab, merges []string
	for i := 1; i <= n; i++ {
		vocab = append(vocab, fmt.Sprintf(`"%s":%d`, strings.Repeat("a", i), i-1))
	}
	for i := 2; i <= n; i++ {
		for j := 1; j < i; j++ {
			merges = append(merges, fmt.Sprintf(`["%s","%s"]`, strings.Repeat("a", j), strings.Repeat("a", i-j)))
		}
	}
	slices.Reverse(merges) // the longest first
	return `{"model":{"type":"BPE","vocab":{` + strings.Join(vocab, ",") + `},"merges":[` + strings.Join(merges, ",") + `]}}`
}

// TestMergeSteps counts what a word of one letter costs where everything merges with everything: the queue takes a candidate for each pair at the
// beginning and two for each merge, and no more.
func TestMergeSteps(t *testing.T) {
	tok, err := FromJSON([]byte(chain(64)), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := tok.model.(*bpe)
	for _, n := range []int{1_000, 10_000, 100_000} {
		sc := &scratch{}
		ids := m.merge(strings.Repeat("a", n), sc, nil)
		total := 0
		for _, id := range ids {
			total += int(id) + 1
		}
		if total != n {
			t.Errorf("%d letters become %d", n, total)
		}
		if most := 3 * n; cap(sc.queue) > 2*most || len(sc.symbols) != n {
			t.Errorf("%d letters take a queue of %d, want at most %d", n, cap(sc.queue), 2*most)
		}
	}
}

// TestMergeCycles: merges that lead back to their parts end, for each makes two symbols one.
func TestMergeCycles(t *testing.T) {
	tok, err := FromJSON([]byte(`{"model":{"type":"BPE","continuing_subword_prefix":"#","vocab":{"a":0,"#":1,"#a":2,"aa":3,"##":4},"merges":[["a","#"],["#a","#"],["aa","#"],["a","#a"]]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Encode(strings.Repeat("a#", 5_000), Options{}); len(got) == 0 || len(got) > 10_000 {
		t.Errorf("%d ids", len(got))
	}
}

// TestWordPieceSteps: the characters of a long word are counted once, not once a piece.
func TestWordPieceSteps(t *testing.T) {
	const n = 200_000
	tok, err := FromJSON([]byte(`{"model":{"type":"WordPiece","unk_token":"u","max_input_chars_per_word":1000000000,"vocab":{"u":0,"a":1,"##a":2}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Encode(strings.Repeat("a", n), Options{}); len(got) != n || got[0] != 1 || got[n-1] != 2 {
		t.Errorf("%d ids", len(got))
	}
}

// TestCharsmapCycle: a trie that leads back to itself is followed no further than a piece is long.
func TestCharsmapCycle(t *testing.T) {
	m := &charsmap{units: make([]uint32, 256), replacements: "b\x00"}
	for i := range m.units {
		m.units[i] = uint32(i) // every byte leads on, to where it began
	}
	text := strings.Repeat("a", 50_000)
	if to, size := m.find(text, false); size > maxPiece {
		t.Errorf("%q of %d bytes", to, size)
	}
	if s := (&pieceNormalizer{chars: m, plain: true}).normalize(text); s != text {
		t.Errorf("%d bytes become %d", len(text), len(s))
	}
}
