package graph

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBucket compares with scripts/reference/buckets.py.
func TestBucket(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "buckets.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		TwoSided          bool `json:"two_sided"`
		Buckets, Farthest int
		Want              []int
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		for i, want := range c.Want {
			if got := Bucket(i-200, c.Buckets, c.Farthest, c.TwoSided); got != want {
				t.Errorf("two-sided %v, %d buckets up to %d, offset %d: bucket %d, want %d", c.TwoSided, c.Buckets, c.Farthest, i-200, got, want)
			}
		}
		for _, far := range []int{c.Farthest, c.Farthest + 1, maxDistance, 1 << 30} { // what is unrolled ends at Farthest
			for _, side := range []int{-1, 1} {
				if a, b := Bucket(side*far, c.Buckets, c.Farthest, c.TwoSided), Bucket(side*c.Farthest, c.Buckets, c.Farthest, c.TwoSided); a != b {
					t.Errorf("%d buckets up to %d: offset %d has bucket %d, the farthest %d", c.Buckets, c.Farthest, side*far, a, b)
				}
			}
		}
	}
}

// TestSourceRows wants errors where rows of the source and of the answer meet.
func TestSourceRows(t *testing.T) {
	heads := func(b *Builder, x *Node) *Node {
		n, err := b.Reshape(x, []int{2, 4})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	table := Tensor("w", []int{9, 8})
	embed := func(b *Builder, memory bool) *Node {
		b.Memory = memory
		n, err := b.Embed(b.Tokens(), table, 0)
		b.Memory = false
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	full := AttentionAttr{Mask: MaskFull, Scale: 1}
	for _, c := range []struct {
		name, says string
		build      func(b *Builder, own, memory *Node) (*Node, error)
	}{
		{"a sum", "mixes rows", func(b *Builder, own, memory *Node) (*Node, error) { return b.Binary("add", own, memory) }},
		{"keys of one, values of the other", "neither", func(b *Builder, own, memory *Node) (*Node, error) {
			return b.Attention(heads(b, own), heads(b, memory), heads(b, own), full)
		}},
		{"an encoder that sees the answer", "encoder", func(b *Builder, own, memory *Node) (*Node, error) {
			return b.Attention(heads(b, memory), heads(b, own), heads(b, own), full)
		}},
		{"an encoder that reads the answer's cache", "decoder", func(b *Builder, own, memory *Node) (*Node, error) {
			if _, err := b.Attention(heads(b, own), heads(b, own), heads(b, own), full); err != nil {
				return nil, err
			}
			return b.AttentionShared(heads(b, memory), AttentionAttr{Mask: MaskFull, Scale: 1})
		}},
		{"distances across", "no distance", func(b *Builder, own, memory *Node) (*Node, error) {
			a := full
			a.Relative, a.Farthest = Tensor("r", []int{8, 2}), 20
			return b.Attention(heads(b, own), heads(b, memory), heads(b, memory), a)
		}},
		{"a table of another number of heads", "needs a table", func(b *Builder, own, _ *Node) (*Node, error) {
			a := full
			a.Relative, a.Farthest = Tensor("r", []int{8, 3}), 20
			return b.Attention(heads(b, own), heads(b, own), heads(b, own), a)
		}},
		{"a distance within the first buckets", "farthest distance of 4", func(b *Builder, own, _ *Node) (*Node, error) {
			a := full
			a.Relative, a.Farthest = Tensor("r", []int{8, 2}), 4
			return b.Attention(heads(b, own), heads(b, own), heads(b, own), a)
		}},
		{"sums of the answer's blocks", "rows of the encoder", func(b *Builder, own, _ *Node) (*Node, error) {
			return b.Add(OpBlockSum, &BlockSumAttr{Size: 4}, nil, own)
		}},
		{"blocks of nothing", "at least 1", func(b *Builder, _, memory *Node) (*Node, error) {
			return b.Add(OpBlockSum, &BlockSumAttr{}, nil, memory)
		}},
		{"block attention of the answer", "rows of the encoder", func(b *Builder, own, memory *Node) (*Node, error) {
			h := heads(b, memory)
			return b.Add(OpBlockAttn, &BlockAttnAttr{Size: 4, Heads: 2, KVHeads: 2, Scale: 1}, nil, heads(b, own), h, h, h, h)
		}},
	} {
		b := NewBuilder()
		_, err := c.build(b, embed(b, false), embed(b, true))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want …%s…", c.name, err, c.says)
		}
	}
	b := NewBuilder()
	own, memory := embed(b, false), embed(b, true)
	n, err := b.Attention(heads(b, own), heads(b, memory), heads(b, memory), AttentionAttr{Mask: MaskCausal, Scale: 1})
	if err != nil || n.Rows != RowsToken {
		t.Fatalf("cross attention: %v, %v", n, err)
	}
	if a := n.Attr.(*AttentionAttr); !a.Cross || a.Mask != MaskFull || !b.G.Caches[a.Cache].Kept {
		t.Errorf("cross attention: %+v of %+v", a, b.G.Caches[a.Cache])
	}
	b.G.Outputs = []Output{{"logits", n.ID}}
	raw, err := Encode(b.G)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(raw); err != nil {
		t.Error(err)
	}
	if _, err := Decode([]byte(strings.Replace(string(raw), `"Cross":true,`, "", 1))); err == nil {
		t.Error("a graph whose attention hides that it is cross attention is taken")
	}
}
