package tokenizer

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// Types of SentencePiece's pieces (sentencepiece_model.proto).
const (
	pieceNormal  = 1
	pieceUnknown = 2
	pieceControl = 3
	pieceUser    = 4
	pieceUnused  = 5
	pieceByte    = 6
)

// Kinds of SentencePiece's models.
const (
	pieceUnigram = 1
	pieceBPE     = 2
	pieceWord    = 3
	pieceChar    = 4
)

// pieceFile is a SentencePiece model (Kudo and Richardson 2018, arXiv:1808.06226) as its file says it, defaults filled in.
type pieceFile struct {
	texts  []string
	scores []float32
	types  []int32

	model    int32
	fallback bool // byte_fallback
	suffix   bool // treat_whitespace_as_suffix
	unkText  string
	bos      string
	eos      string
	pad      string

	chars  *charsmap
	prefix bool // add_dummy_prefix
	merge  bool // remove_extra_whitespaces
	escape bool // escape_whitespaces
}

// parsePieces reads the protocol buffer ModelProto.
func parsePieces(data []byte) (*pieceFile, error) {
	p := &pieceFile{model: pieceUnigram, unkText: " \u2047 ", bos: "<s>", eos: "</s>", pad: "<pad>", prefix: true, merge: true, escape: true}
	err := protoFields(data, func(f protoField) error {
		if f.wire != 2 {
			return nil
		}
		switch f.num {
		case 1:
			return p.piece(f.data)
		case 2:
			return p.trainer(f.data)
		case 3:
			return p.normalizer(f.data)
		case 5:
			return p.denormalizer(f.data)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, p.check()
}

func (p *pieceFile) piece(data []byte) error {
	text, score, kind := "", float32(0), int32(pieceNormal)
	err := protoFields(data, func(f protoField) error {
		switch f.num {
		case 1:
			text = string(f.data)
		case 2:
			score = f.float32()
		case 3:
			kind = f.int32()
		}
		return nil
	})
	if err != nil {
		return err
	}
	n := len(p.texts)
	switch {
	case n >= maxVocab:
		return fmt.Errorf("%w: more than %d pieces", ErrInvalid, maxVocab)
	case text == "" || !utf8.ValidString(text):
		return fmt.Errorf("%w: piece %d (%.40q) is empty or no UTF-8", ErrInvalid, n, text)
	case len(text) > maxPiece:
		return fmt.Errorf("%w: piece %d has %d bytes, want at most %d", ErrInvalid, n, len(text), maxPiece)
	case kind < pieceNormal || kind > pieceByte:
		return fmt.Errorf("%w: piece %d (%.40q) has type %d, want 1 to 6", ErrInvalid, n, text, kind)
	case math.IsNaN(float64(score)) || math.IsInf(float64(score), 0):
		return fmt.Errorf("%w: piece %d (%.40q) has score %v", ErrInvalid, n, text, score)
	}
	p.texts, p.scores, p.types = append(p.texts, text), append(p.scores, score), append(p.types, kind)
	return nil
}

func (p *pieceFile) trainer(data []byte) error {
	return protoFields(data, func(f protoField) error {
		switch f.num {
		case 3:
			p.model = f.int32()
		case 24:
			p.suffix = f.flag()
		case 35:
			p.fallback = f.flag()
		case 44:
			p.unkText = string(f.data)
		case 46:
			p.bos = string(f.data)
		case 47:
			p.eos = string(f.data)
		case 48:
			p.pad = string(f.data)
		}
		return nil
	})
}

func (p *pieceFile) normalizer(data []byte) error {
	return protoFields(data, func(f protoField) (err error) {
		switch f.num {
		case 2:
			p.chars, err = parseCharsmap(f.data)
		case 3:
			p.prefix = f.flag()
		case 4:
			p.merge = f.flag()
		case 5:
			p.escape = f.flag()
		}
		return err
	})
}

func (p *pieceFile) denormalizer(data []byte) error {
	return protoFields(data, func(f protoField) error {
		if f.num == 2 && len(f.data) > 0 {
			return fmt.Errorf("%w: a denormalizer", ErrUnsupported)
		}
		return nil
	})
}

func (p *pieceFile) check() error {
	if len(p.texts) == 0 {
		return fmt.Errorf("%w: no pieces", ErrInvalid)
	}
	if p.model < pieceUnigram || p.model > pieceChar {
		return fmt.Errorf("%w: model type %d (known: 1 to 4)", ErrUnsupported, p.model)
	}
	unknown, bytes := 0, 0
	for i, t := range p.types {
		switch t {
		case pieceUnknown:
			unknown++
		case pieceByte:
			if _, ok := byteToken(p.texts[i]); !ok {
				return fmt.Errorf("%w: piece %d (%.40q) is a byte, which is written <0xHH>", ErrInvalid, i, p.texts[i])
			}
			bytes++
		}
	}
	if unknown != 1 {
		return fmt.Errorf("%w: %d unknown pieces, want one", ErrInvalid, unknown)
	}
	if p.fallback && bytes != 256 {
		return fmt.Errorf("%w: %d byte pieces, want 256 for byte_fallback", ErrInvalid, bytes)
	}
	return nil
}

// find returns the id of the piece with a text and one of the types, -1 if there is none.
func (p *pieceFile) find(text string, types ...int32) int32 {
	for i, s := range p.texts {
		if s != text {
			continue
		}
		for _, t := range types {
			if p.types[i] == t {
				return int32(i)
			}
		}
	}
	return -1
}

// unknown is the id of the unknown piece.
func (p *pieceFile) unknown() int32 {
	for i, t := range p.types {
		if t == pieceUnknown {
			return int32(i)
		}
	}
	return -1
}

// spoken reports whether the model itself knows piece i by its text.
func (p *pieceFile) spoken(i int) bool {
	t := p.types[i]
	return t == pieceNormal || t == pieceUser || t == pieceUnused
}
