package tokenizer

import "testing"

// TestRepeats holds the CTC decoder against the reference's answers.
func TestRepeats(t *testing.T) {
	const file = `{"decoder":{"type":"CTC","pad_token":"<pad>","word_delimiter_token":"|","cleanup":true},
		"model":{"type":"WordLevel","unk_token":"<pad>","vocab":{"<pad>":0,"|":1,"h":2,"e":3,"l":4,"o":5,"w":6," .":7}}}`
	tok, err := FromJSON([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ids  []int32
		want string
	}{
		{[]int32{0, 2, 2, 0, 3, 4, 4, 0, 4, 5, 1, 1, 6, 1}, "hello w "},
		{[]int32{2, 1, 0, 1, 3, 7, 1}, "h  e. "},
	} {
		if got := tok.Decode(c.ids, false); got != c.want || stream(tok, c.ids, false) != c.want {
			t.Errorf("%v: %q, streamed %q; want %q", c.ids, got, stream(tok, c.ids, false), c.want)
		}
	}
}
