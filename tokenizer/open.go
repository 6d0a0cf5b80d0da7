package tokenizer

import (
	"fmt"
	"slices"
)

// Open reads the tokenizer of a model's folder, in whichever of these forms it is there, the first that is:
//
//	tokenizer.json                          Hugging Face's own
//	tekken.json                             bytes by rank, with their pattern
//	source.spm, or sentencepiece.bpe.model  with a vocab.json that numbers the pieces, where the class asks for it
//	tokenizer.model, spiece.model, …        a SentencePiece model (or a tiktoken file under that name)
//	NAME.tiktoken, tiktoken.model           tiktoken files
//	vocab.json, merges.txt                  byte-pair encoding
//	vocab.txt                               WordPiece
//
// Beside them it reads tokenizer_config.json, special_tokens_map.json, added_tokens.json and config.json, which say what class of tokenizer it is
// (data/classes.json says what that means), which tokens are special and whether BOS and EOS are added. Truncation and padding are never done: how long a
// prompt may be is the engine's matter, and an id too many would change the answer. Errors wrap ErrNoTokenizer, ErrUnsupported or ErrInvalid and
// name the file; Notes says what had to be assumed.
func Open(files Files) (_ *Tokenizer, err error) {
	defer func() { err = brief(err) }()
	raw, err := read(files, "tokenizer.json")
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if raw != nil {
		config, err := read(files, "tokenizer_config.json")
		if err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
		return FromJSON(raw, config)
	}
	f, err := openFolder(files)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	for _, form := range f.forms() {
		data, err := read(files, form.name)
		if err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
		if data == nil {
			continue
		}
		t, err := form.build(data)
		if err != nil {
			return nil, fmt.Errorf("tokenizer: %s: %w", form.name, err)
		}
		return t, nil
	}
	return nil, fmt.Errorf("tokenizer: %w: no tokenizer.json, and none of the older files (%s)", ErrNoTokenizer, "tokenizer.model, vocab.txt, vocab.json, …")
}

// form is a file that holds a vocabulary.
type form struct {
	name  string
	build func(data []byte) (*Tokenizer, error)
}

// pieceNames are the names that SentencePiece models go by.
var pieceNames = []string{"tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model", "spm.model", "tokenizer_model.model", "ice_text.model"}

// forms lists the files in the order in which they count.
func (f *folder) forms() []form {
	list := []form{{"tekken.json", f.tekken}}
	if f.class.ByText {
		list = append(list, form{"source.spm", f.pieces})
	}
	for _, name := range pieceNames {
		list = append(list, form{name, func(data []byte) (*Tokenizer, error) { return f.piecesOrRanks(name, data) }})
	}
	names := []string{"tiktoken.model"}
	if table, err := classes(); err == nil {
		for _, kind := range table.Tiktoken {
			names = append(names, kind.Names...)
		}
	}
	for _, name := range names {
		list = append(list, form{name, func(data []byte) (*Tokenizer, error) { return f.ranks(name, data) }})
	}
	words := []form{{"vocab.json", f.vocabJSON}, {"vocab.txt", f.vocabText}}
	if m, err := f.classModel(); err == nil && m.Type == "WordPiece" {
		slices.Reverse(words)
	}
	return append(list, words...)
}

// piecesOrRanks reads a file that is either a SentencePiece model or, under the same name, lines of base64.
func (f *folder) piecesOrRanks(name string, data []byte) (*Tokenizer, error) {
	if _, _, err := scanRanks(data[:min(len(data), firstLine(data))]); err == nil {
		return f.ranks(name, data)
	}
	return f.pieces(data)
}

// firstLine is the size of the first line of data, its end included, 0 if there is none.
func firstLine(data []byte) int {
	return slices.Index(data[:min(len(data), 4*maxRankedToken)], '\n') + 1
}

func (f *folder) vocabJSON(data []byte) (*Tokenizer, error) {
	merges, err := read(f.files, "merges.txt")
	if err != nil {
		return nil, err
	}
	if err := f.useDefault("vocab.json"); err != nil {
		return nil, err
	}
	return f.wordsAndMerges(data, merges)
}

func (f *folder) vocabText(data []byte) (*Tokenizer, error) {
	if err := f.useDefault("vocab.txt"); err != nil {
		return nil, err
	}
	return f.wordList(data)
}
