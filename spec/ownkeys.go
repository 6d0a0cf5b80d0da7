package spec

import (
	"encoding/json"
	"fmt"
)

// maxOwnText bounds the list of a folder's tensors: that of 100,000 takes ten
// million bytes.
const maxOwnText = 4 * MaxConfig

// CheckOwnKeys says what is wrong with the keys of our own in the metadata of a
// GGUF file, beside OwnConfigKey, which files decode themselves.
func CheckOwnKeys(meta map[string]any) error {
	if _, err := decodeFilled(meta); err != nil {
		return fmt.Errorf("%s: %w", OwnFilledKey, err)
	}
	if _, err := decodeLayout(meta); err != nil {
		return fmt.Errorf("%s: %w", OwnFolderKey, err)
	}
	return nil
}

// ownText reads the JSON text under a key into v; false where there is none.
func ownText(meta map[string]any, key string, most int, v any) (bool, error) {
	value, ok := meta[key]
	if !ok {
		return false, nil
	}
	text, ok := value.(string)
	if !ok {
		return false, fmt.Errorf("it is no text, but %T", value)
	}
	if len(text) > most {
		return false, fmt.Errorf("it takes %d bytes, at most %d are read", len(text), most)
	}
	return true, json.Unmarshal([]byte(text), v)
}

// decodeFilled are the tensors that only other readers want; nil where the file
// lists none.
func decodeFilled(meta map[string]any) (names []string, err error) {
	ok, err := ownText(meta, OwnFilledKey, MaxConfig, &names)
	if err == nil && ok && names == nil {
		err = fmt.Errorf("it holds no list of names")
	}
	return names, err
}

// decodeLayout are the shapes of the folder that the file was made of; nil where
// it does not say.
func decodeLayout(meta map[string]any) (shapes map[string][]int, err error) {
	ok, err := ownText(meta, OwnFolderKey, maxOwnText, &shapes)
	if err != nil || !ok {
		return nil, err
	}
	if shapes == nil {
		return nil, fmt.Errorf("it holds no object of shapes")
	}
	for name, shape := range shapes {
		size := 1
		if len(shape) > maxLayoutDims {
			return nil, fmt.Errorf("%.200q has %d dimensions, at most %d are read", name, len(shape), maxLayoutDims)
		}
		for _, n := range shape {
			if n < 1 || size > maxLayout/n {
				return nil, fmt.Errorf("%.200q of the shape %v is no tensor", name, shape)
			}
			size *= n
		}
	}
	return shapes, nil
}

// maxLayout bounds the values of a tensor that a layout claims, maxLayoutDims
// its dimensions.
const (
	maxLayout     = 1 << 40
	maxLayoutDims = 8
)
