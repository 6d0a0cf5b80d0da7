package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Files gives the files of a model's folder. A missing one is an error that wraps fs.ErrNotExist.
type Files interface {
	ReadFile(name string) ([]byte, error)
}

// folder is what a model's folder says beside the vocabulary itself.
type folder struct {
	files   Files
	class   *class
	name    string // of the class; "" where the folder does not say
	conf    configJSON
	set     settings
	said    map[string]bool // settings that come from the folder, not the class
	added   []addedJSON     // with ids
	special []addedJSON     // without: named by role, or additional
	notes   []string
	listed  map[string]int // added tokens by text, for addTo
}

// read returns a file of the folder, nil where there is none.
func read(files Files, name string) ([]byte, error) {
	data, err := files.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

// object reads a JSON object of the folder, nil where there is none.
func (f *folder) object(name string) (map[string]json.RawMessage, error) {
	data, err := read(f.files, name)
	if data == nil || err != nil {
		return nil, err
	}
	var v map[string]json.RawMessage
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
	}
	return v, nil
}

// roles are the names under which configurations list tokens.
var roles = []string{"bos", "eos", "unk", "sep", "pad", "cls", "mask"}

// openFolder reads tokenizer_config.json, special_tokens_map.json, added_tokens.json and what config.json says of the class.
func openFolder(files Files) (*folder, error) {
	f := &folder{files: files, class: &class{}}
	conf, err := f.object("tokenizer_config.json")
	if err != nil {
		return nil, err
	}
	if conf != nil {
		raw, _ := read(files, "tokenizer_config.json")
		if err := unmarshalConfig(raw, &f.conf); err != nil {
			return nil, fmt.Errorf("%w: tokenizer_config.json: %w", ErrInvalid, err)
		}
	}
	tokens, err := f.object("special_tokens_map.json")
	if err != nil {
		return nil, err
	}
	if err := f.findClass(conf); err != nil {
		return nil, err
	}
	f.set, f.said = settings{}, map[string]bool{}
	for i, from := range []map[string]json.RawMessage{f.class.Set, tokens, conf} {
		for k, v := range from {
			if k != "additional_special_tokens" || len(v) > 2 {
				f.set[k], f.said[k] = v, i > 0
			}
		}
	}
	f.roleTokens()
	return f, f.addedTokens()
}

// findClass looks up the class that the folder names.
func (f *folder) findClass(conf map[string]json.RawMessage) error {
	table, err := classes()
	if err != nil {
		return err
	}
	main, err := f.object("config.json")
	if err != nil {
		return err
	}
	asked := ""
	for _, from := range []map[string]json.RawMessage{conf, main} {
		name := strings.TrimSuffix(settings(from).text("tokenizer_class"), "Fast")
		if c, ok := table.Classes[name]; ok {
			f.class, f.name = c, name
			return nil
		}
		if asked == "" {
			asked = name
		}
	}
	kind := settings(main).text("model_type")
	for name, kinds := range table.Models {
		if slices.Contains(kinds, kind) {
			f.class, f.name = table.Classes[name], name
			return nil
		}
	}
	if asked != "" {
		f.notes = append(f.notes, fmt.Sprintf("the tokenizer class %.60q is not known; its files are read as they are", asked))
	}
	return nil
}

// useDefault takes the class that goes with a file in folders that name none.
func (f *folder) useDefault(file string) error {
	if f.name != "" {
		return nil
	}
	table, err := classes()
	if err != nil {
		return err
	}
	f.name = table.Defaults[file]
	f.class = table.Classes[f.name]
	for k, v := range f.class.Set {
		if _, ok := f.set[k]; !ok {
			f.set[k] = v
		}
	}
	f.roleTokens()
	return nil
}

// roleTokens lists the special tokens that the settings name.
func (f *folder) roleTokens() {
	f.special = nil
	add := func(raw json.RawMessage) {
		var t tokenJSON
		if json.Unmarshal(raw, &t) != nil || t == "" {
			return
		}
		a := addedJSON{}
		_ = json.Unmarshal(raw, &a) // flags, where it is an object
		a.Content, a.Special, a.ID = string(t), true, -1
		f.special = append(f.special, a)
	}
	to := []*tokenJSON{&f.conf.BOS, &f.conf.EOS, &f.conf.UNK, &f.conf.SEP, &f.conf.PAD, &f.conf.CLS, &f.conf.Mask}
	for i, role := range roles {
		raw := f.set[role+"_token"]
		add(raw)
		_ = json.Unmarshal(raw, to[i])
	}
	for _, key := range []string{"additional_special_tokens", "extra_special_tokens"} {
		var list []json.RawMessage
		_ = json.Unmarshal(f.set[key], &list)
		for _, raw := range list {
			add(raw)
		}
	}
}

// addedTokens reads the tokens with ids: added_tokens_decoder, and added_tokens.json of older folders.
func (f *folder) addedTokens() error {
	old, err := f.object("added_tokens.json")
	if err != nil {
		return err
	}
	for key, tok := range f.conf.Added {
		id, err := strconv.ParseInt(key, 10, 64)
		if err != nil || id < 0 || id >= maxVocab {
			return fmt.Errorf("%w: tokenizer_config.json: added_tokens_decoder has the id %.40q, want 0 to %d", ErrInvalid, key, maxVocab-1)
		}
		tok.ID = id
		f.added = append(f.added, tok)
	}
	listed, named := map[string]bool{}, map[string]int{} // by text: where in special a token stands first
	for _, a := range f.added {
		listed[a.Content] = true
	}
	for i, a := range slices.Backward(f.special) {
		named[a.Content] = i
	}
	for text, raw := range old {
		var id int64
		if json.Unmarshal(raw, &id) != nil || id < 0 || id >= maxVocab {
			return fmt.Errorf("%w: added_tokens.json: %.40q has the id %.40s, want 0 to %d", ErrInvalid, text, raw, maxVocab-1)
		}
		if listed[text] {
			continue
		}
		a := addedJSON{ID: id, Content: text, Normalized: true}
		if i, ok := named[text]; ok {
			a = f.special[i]
			a.ID = id
		}
		f.added = append(f.added, a)
	}
	slices.SortFunc(f.added, func(a, b addedJSON) int { return int(a.ID - b.ID) })
	return nil
}

// tokens lists the added tokens: those with ids, then the special ones that find knows or, with grow, new ids from there on.
func (f *folder) tokens(find func(text string) (int32, bool), next int32) []addedJSON {
	list := slices.Clone(f.added)
	seen := map[string]bool{}
	for _, a := range list {
		seen[a.Content] = true
		next = max(next, int32(a.ID)+1)
	}
	role := map[string]bool{}
	for _, r := range roles {
		role[f.set.text(r+"_token")] = !f.said[r+"_token"]
	}
	for _, a := range f.special {
		if seen[a.Content] {
			continue
		}
		seen[a.Content] = true
		id, ok := find(a.Content)
		if !ok {
			if role[a.Content] { // a default that this vocabulary does without
				continue
			}
			id = next
			next++
		}
		a.ID = int64(id)
		list = append(list, a)
	}
	return list
}

// around sets what goes before and behind a text: the class's template, then what the configuration says of BOS and EOS.
func (f *folder) around(t *Tokenizer) {
	ids := func(texts []string) (out []int32) {
		for _, text := range texts {
			if id, ok := t.ID(f.set.fill(text)); ok {
				out = append(out, id)
			}
		}
		return out
	}
	t.prefix, t.suffix = ids(f.class.Prefix), ids(f.class.Suffix)
	bos := f.conf.AddBOS
	if bos == nil {
		bos = f.class.AddBOS
	}
	t.prefix = around(t.prefix, bos, t.named, "bos")
	t.suffix = around(t.suffix, f.conf.AddEOS, t.named, "eos")
	t.notes = append(t.notes, f.notes...)
	if f.class.Note != "" {
		t.notes = append(t.notes, f.class.Note)
	}
}

// name gives ids their roles.
func (f *folder) nameRoles(t *Tokenizer) {
	for _, role := range roles {
		if id, ok := t.ID(f.set.text(role + "_token")); ok {
			t.named[role] = id
		}
	}
}
