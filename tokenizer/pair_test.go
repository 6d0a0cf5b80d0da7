package tokenizer

import (
	"errors"
	"slices"
	"testing"
)

const pairModel = `"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"a":3,"b":4,"c":5}},
	"pre_tokenizer":{"type":"WhitespaceSplit"},"added_tokens":[{"id":1,"content":"[CLS]","special":true},{"id":2,"content":"[SEP]","special":true}]`

// TestPair holds the forms of two texts, as Hugging Face's post-processors give them.
func TestPair(t *testing.T) {
	template := `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],
		"pair":[{"Sequence":{"id":"B","type_id":1}},{"SpecialToken":{"id":"[SEP]","type_id":1}},{"Sequence":{"id":"A","type_id":0}}],
		"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[1]},"[SEP]":{"id":"[SEP]","ids":[2]}}}`
	around := `"sep":["[SEP]",2],"cls":["[CLS]",1]}`
	for name, x := range map[string]struct {
		processor  string
		most       int
		ids, types []int32
		cut        int
	}{
		"bert":           {`{"type":"BertProcessing",` + around, 0, []int32{1, 3, 4, 2, 5, 2}, []int32{0, 0, 0, 0, 1, 1}, 0},
		"roberta":        {`{"type":"RobertaProcessing",` + around, 0, []int32{1, 3, 4, 2, 2, 5, 2}, []int32{0, 0, 0, 0, 0, 0, 0}, 0},
		"template":       {template, 0, []int32{5, 2, 3, 4}, []int32{1, 1, 0, 0}, 0},
		"the longer cut": {`{"type":"BertProcessing",` + around, 5, []int32{1, 3, 2, 5, 2}, []int32{0, 0, 0, 1, 1}, 1},
		"nothing left":   {`{"type":"BertProcessing",` + around, 1, []int32{1, 2, 2}, []int32{0, 0, 1}, 3},
	} {
		tok, err := FromJSON([]byte(`{"post_processor":`+x.processor+`,`+pairModel+`}`), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ids, types, cut, err := tok.EncodePair("a b", "c", x.most)
		if err != nil || !slices.Equal(ids, x.ids) || !slices.Equal(types, x.types) || cut != x.cut {
			t.Errorf("%s: ids %v, types %v, %d cut, error %v; want %v, %v, %d", name, ids, types, cut, err, x.ids, x.types, x.cut)
		}
	}
	tok, err := FromJSON([]byte(`{`+pairModel+`}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := tok.EncodePair("a", "b", 0); !errors.Is(err, ErrNoPair) {
		t.Errorf("without a form of pairs: %v", err)
	}
}
