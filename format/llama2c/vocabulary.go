package llama2c

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/inferflow/inferflow/format/gguf"
)

// maxVocabulary bounds a tokenizer.bin, in bytes.
const maxVocabulary = 64 << 20

// vocabulary is what a tokenizer.bin holds, by id.
type vocabulary struct {
	pieces []string
	scores []float32
	types  []int32
}

// Types of tokens in GGUF files.
const (
	typeNormal  = 1
	typeUnknown = 2
	typeControl = 3
	typeByte    = 6
)

// findVocabulary reads tokenizer.bin, else tokN.bin; nil where neither is there.
func findVocabulary(dir string, size int) (*vocabulary, error) {
	for _, name := range []string{"tokenizer.bin", fmt.Sprintf("tok%d.bin", size)} {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() > maxVocabulary {
			return nil, fmt.Errorf("%s: no regular file of at most %d bytes: %w", path, maxVocabulary, ErrCorrupt)
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(io.LimitReader(f, maxVocabulary))
		f.Close()
		if err == nil {
			var v *vocabulary
			if v, err = parseVocabulary(raw, size); err == nil {
				return v, nil
			}
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return nil, nil
}

// parseVocabulary reads the longest length, then score, length and text of
// each of size tokens. Ids 0 to 2 are unknown, beginning and end; spaces stand
// for the marks of SentencePiece.
func parseVocabulary(raw []byte, size int) (*vocabulary, error) {
	v := &vocabulary{}
	at := 4
	for id := range size {
		if len(raw)-at < 8 {
			return nil, fmt.Errorf("offset %d: ends after %d of %d tokens: %w", at, id, size, ErrCorrupt)
		}
		score := math.Float32frombits(binary.LittleEndian.Uint32(raw[at:]))
		n := binary.LittleEndian.Uint32(raw[at+4:])
		if uint64(n) > uint64(len(raw)-at-8) {
			return nil, fmt.Errorf("offset %d: token %d of %d bytes leaves the file: %w", at, id, n, ErrCorrupt)
		}
		text := string(raw[at+8 : at+8+int(n)])
		at += 8 + int(n)
		piece, typ := pieceOf(id, text)
		v.pieces, v.scores, v.types = append(v.pieces, piece), append(v.scores, score), append(v.types, typ)
	}
	if at != len(raw) {
		return nil, fmt.Errorf("offset %d: %d bytes follow the last of %d tokens: %w", at, len(raw)-at, size, ErrCorrupt)
	}
	return v, nil
}

func pieceOf(id int, text string) (piece string, typ int32) {
	switch id {
	case 0:
		return "<unk>", typeUnknown
	case 1:
		return "<s>", typeControl
	case 2:
		return "</s>", typeControl
	}
	var b byte
	if n, err := fmt.Sscanf(text, "<0x%02X>", &b); err == nil && n == 1 && len(text) == 6 {
		return text, typeByte
	}
	return strings.ReplaceAll(text, " ", "\u2581"), typeNormal
}

// write sets the keys of a GGUF file's tokenizer.
func (v *vocabulary) write(w *gguf.Writer) error {
	const ggml = "tokenizer.ggml."
	return errors.Join(w.Set(ggml+"model", "llama"), w.Set(ggml+"tokens", v.pieces), w.Set(ggml+"scores", v.scores), w.Set(ggml+"token_type", v.types),
		w.Set(ggml+"bos_token_id", uint32(1)), w.Set(ggml+"eos_token_id", uint32(2)), w.Set(ggml+"unknown_token_id", uint32(0)),
		w.Set(ggml+"add_bos_token", true), w.Set(ggml+"add_eos_token", false))
}
