package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/inferflow/inferflow/config"
	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/tokenizer"
)

// frameUse is what a template is for.
type frameUse uint8

const (
	encodes frameUse = iota // the source of an encoder-decoder
	decodes                 // a prompt: it ends at the answer's place, where the answer's beginning follows in any case
	reads                   // the text of an encoder alone, which may spell tokens such as [MASK]
)

// frameIDs are the tokens of a template of an .ini with what was said in its
// places. What stands between two tokens of the template is one text, in which
// only the template's own part may spell special tokens, unless the use says so.
func (x *iniService) frameIDs(tok *tokenizer.Tokenizer, t *config.Template, q config.Query, use frameUse) (ids []int32, err error) {
	var text []tokenizer.Piece
	flush := func() error {
		if len(text) == 0 {
			return nil
		}
		more, err := tok.TryEncodePieces(text, false)
		ids, text = append(ids, more...), nil
		return err
	}
	user := func(s string) {
		if s != "" {
			text = append(text, tokenizer.Piece{Text: s, Special: use == reads})
		}
	}
	for _, p := range t.Parts {
		switch p.Kind {
		case config.PartText:
			text = append(text, tokenizer.Piece{Text: p.Text, Special: true})
		case config.PartQuery:
			if p.Space {
				user(" ")
			}
			user(q.Text)
		case config.PartSystem:
			user(q.System)
		case config.PartAnswer:
			if use != decodes {
				user(q.Prefix)
			}
		default:
			if err := flush(); err != nil {
				return nil, err
			}
			id, known, err := x.frameToken(tok, p)
			if err != nil {
				return nil, err
			}
			if known {
				ids = append(ids, id)
			}
		}
		if use == decodes && p.Kind == config.PartAnswer {
			break
		}
	}
	if use == decodes {
		if err := flush(); err != nil {
			return nil, err
		}
		user(q.Prefix)
	}
	return ids, flush()
}

// frameToken is the token of a template's part; known is false for a role that
// the vocabulary does without.
func (x *iniService) frameToken(tok *tokenizer.Tokenizer, p config.Part) (id int32, known bool, err error) {
	if p.Kind == config.PartID {
		if p.ID >= tok.Size() {
			return 0, false, fmt.Errorf("%s: [model.%s]: the vocabulary has no token {#%d}", x.file.Path, x.model.Name, p.ID)
		}
		return int32(p.ID), true, nil
	}
	if text := x.files.Tokens[p.Text]; text != "" {
		if id, ok := tok.ID(text); ok {
			return id, true, nil
		}
	}
	if id, ok := x.roles[p.Text]; ok && int(id) < tok.Size() {
		return id, true, nil
	}
	if id, ok := tok.Named(p.Text); ok {
		return id, true, nil
	}
	if id, ok := tok.ID(p.Text); ok {
		return id, true, nil
	}
	if p.Text == "bos" || p.Text == "eos" {
		return 0, false, nil
	}
	return 0, false, fmt.Errorf("%s: [model.%s]: the vocabulary has no token {%s}", x.file.Path, x.model.Name, p.Text)
}

// frameSuffix counts the tokens that a template puts behind what the user said.
func frameSuffix(t *config.Template) (n int) {
	for _, p := range slices.Backward(t.Parts) {
		if p.Kind != config.PartToken && p.Kind != config.PartID {
			break
		}
		n++
	}
	return n
}

// checkFrame tries a template, so that a token which is not there is told at once.
func (x *iniService) checkFrame(tok *tokenizer.Tokenizer, t *config.Template, use frameUse) error {
	if t == nil {
		return nil
	}
	_, err := x.frameIDs(tok, t, config.Query{Text: "x"}, use)
	return err
}

// generationFile is where the C++ engine looks for the tokens of roles.
const generationFile = "generation_config.json"

// readRoles reads the ids of {user_token} and {assistant_token}. A file that is
// not there, or holds none, says nothing.
func (x *iniService) readRoles() error {
	name := x.files.GenerationConfig
	if name == "" {
		name = generationFile
	}
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) {
		return fmt.Errorf("%s: generation_config: %q leads out of the model's folder", x.model.SpecFile, name)
	}
	f, err := sys.OpenRegular(filepath.Join(x.model.Dir, local))
	if err != nil {
		return nil
	}
	defer f.Close()
	var o struct {
		User      *int32 `json:"user_token_id"`
		Assistant *int32 `json:"assistant_token_id"`
	}
	if raw, err := io.ReadAll(io.LimitReader(f, maxSpecFile)); err != nil || json.Unmarshal(raw, &o) != nil {
		return nil // who needs the roles will miss them
	}
	x.roles = map[string]int32{}
	for role, id := range map[string]*int32{"user_token": o.User, "assistant_token": o.Assistant} {
		if id != nil && *id >= 0 {
			x.roles[role] = *id
		}
	}
	return nil
}
