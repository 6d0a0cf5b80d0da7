package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"

	"github.com/inferflow/inferflow/tokenizer"
)

// Matching names a vocabulary that texts are matched against longest first
// (the fmm of model_spec.json), in place of the model's own tokenizer.
type Matching struct {
	Dir          string            // folder of the files
	Files        []string          // the vocabulary first; special_tokens_map.json may follow
	Roles        map[string]string // texts of unk, pad, bos and eos; they go before the map and config.json
	ByteAlphabet bool              // the tokens are written in the byte alphabet
}

// specialTokensMap is the file that names the tokens with a role.
const specialTokensMap = "special_tokens_map.json"

// open reads the vocabulary. config may name the ids of roles.
func (x *Matching) open(config map[string]any) (*tokenizer.Tokenizer, error) {
	vocabulary := ""
	roles := map[string]string{}
	for _, name := range x.Files {
		local := filepath.FromSlash(name)
		switch {
		case !filepath.IsLocal(local):
			return nil, fmt.Errorf("model: tokenizer files: %q leads out of the model's folder", name)
		case path.Base(name) == specialTokensMap:
			if err := readRoles(filepath.Join(x.Dir, local), roles); err != nil {
				return nil, err
			}
		case vocabulary == "":
			vocabulary = local
		}
	}
	switch {
	case vocabulary == "":
		return nil, errors.New("model: tokenizer files: none is a vocabulary, which longest match needs")
	case !exists(filepath.Join(x.Dir, vocabulary)):
		return nil, fmt.Errorf("model: tokenizer files: there is no %s in %s", vocabulary, x.Dir)
	}
	for role, text := range x.Roles {
		roles[role] = text
	}
	return tokenizer.OpenLongestMatch(folder{x.Dir}, vocabulary, tokenizer.MatchOptions{ByteAlphabet: x.ByteAlphabet, Roles: roles,
		BOS: configID(config, "bos_token_id"), EOS: configID(config, "eos_token_id"), Unknown: configID(config, "unk_token_id")})
}

// readRoles reads special_tokens_map.json: a role's token as its text or an
// object with it. A file that is not there says nothing.
func readRoles(name string, roles map[string]string) error {
	if !exists(name) {
		return nil
	}
	raw, err := readJSON(name)
	var all map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return fmt.Errorf("model: %s: %w", specialTokensMap, err)
	}
	for _, role := range []string{"unk", "pad", "bos", "eos", "cls", "sep", "mask"} {
		var text string
		var token struct{ Content string }
		v := all[role+"_token"]
		if json.Unmarshal(v, &text) != nil && json.Unmarshal(v, &token) == nil {
			text = token.Content
		}
		if text != "" {
			roles[role] = text
		}
	}
	return nil
}

// configID is an id that config.json names, the first of a list; -1 if none.
func configID(config map[string]any, key string) int32 {
	v := config[key]
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	if n, ok := v.(json.Number); ok {
		if id, err := n.Int64(); err == nil && id >= 0 && id <= math.MaxInt32 {
			return int32(id)
		}
	}
	return -1
}
