package tokenizer

import (
	"fmt"
	"math"
	"strings"
)

// pieces builds the tokenizer of a SentencePiece file, its ids as the folder's class numbers them.
func (f *folder) pieces(data []byte) (*Tokenizer, error) {
	p, err := parsePieces(data)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{named: map[string]int32{}}
	layout, err := f.layout(p)
	if err != nil {
		return nil, err
	}
	lookup := layout.index()
	added := f.tokens(func(text string) (int32, bool) { id, ok := lookup[text]; return id, ok }, int32(len(layout.texts)))
	if err := layout.add(added, lookup); err != nil {
		return nil, err
	}
	f.seal(p, added)
	t.texts, t.kinds, t.lookup, t.others = layout.texts, make([]kind, len(layout.texts)), map[string]int32{}, map[string]int32{}
	if t.model, err = p.newModel(); err != nil {
		return nil, err
	}
	if ids := layout.ids(p, lookup); ids != nil {
		t.model = &mappedModel{t.model, ids}
	}
	list := f.pieceKinds(t, p, layout, added)
	if err := f.pieceSteps(t, p); err != nil {
		return nil, err
	}
	if t.added, err = newAddedTokens(list, t.norm); err != nil {
		return nil, err
	}
	f.pieceRoles(t, p)
	f.around(t)
	t.ends = endTokens(t)
	return t, nil
}

// pieceLayout says which text each id has and which piece of the file it is.
type pieceLayout struct {
	texts []string
	from  []int32 // piece; -1: none
	own   []int32 // ids of texts that the layout itself names
}

func (f *folder) layout(p *pieceFile) (*pieceLayout, error) {
	l := &pieceLayout{}
	if f.class.ByText {
		if err := f.byText(p, l); err != nil {
			return nil, err
		}
	}
	if len(f.class.Layout) == 0 && !f.class.ByText {
		l.rest(p, 0)
	}
	for _, x := range f.class.Layout {
		switch x := x.(type) {
		case float64:
			l.rest(p, int(x))
		case string:
			texts, err := f.set.expand(x)
			if err != nil {
				return nil, err
			}
			for _, text := range texts {
				l.own = append(l.own, int32(len(l.texts)))
				l.texts, l.from = append(l.texts, text), append(l.from, -1)
			}
		}
	}
	return l, nil
}

// rest appends the pieces from n on.
func (l *pieceLayout) rest(p *pieceFile, n int) {
	for i := n; i < len(p.texts); i++ {
		l.texts, l.from = append(l.texts, p.texts[i]), append(l.from, int32(i))
	}
}

// byText reads vocab.json, which numbers the pieces.
func (f *folder) byText(p *pieceFile, l *pieceLayout) error {
	data, err := read(f.files, "vocab.json")
	if err != nil {
		return err
	}
	if data == nil {
		return fmt.Errorf("%w: no vocab.json, which numbers the pieces", ErrNoTokenizer)
	}
	list, err := scanVocab(string(data))
	if err != nil {
		return err
	}
	byText := make(map[string]int32, len(p.texts))
	for i, text := range p.texts {
		byText[text] = int32(i)
	}
	for _, e := range list {
		if int(e.id) >= 2*len(list)+1<<16 {
			return fmt.Errorf("%w: vocab.json has %d tokens with ids up to %d", ErrInvalid, len(list), e.id)
		}
		for int(e.id) >= len(l.texts) {
			l.texts, l.from = append(l.texts, ""), append(l.from, -1)
		}
		l.texts[e.id] = e.text
		if i, ok := byText[e.text]; ok {
			l.from[e.id] = i
		}
	}
	return nil
}

// index is the first id of each text.
func (l *pieceLayout) index() map[string]int32 {
	m := make(map[string]int32, len(l.texts))
	for i, text := range l.texts {
		if _, ok := m[text]; !ok && text != "" {
			m[text] = int32(i)
		}
	}
	return m
}

// add gives added tokens their texts.
func (l *pieceLayout) add(added []addedJSON, lookup map[string]int32) error {
	limit := 2*(len(l.texts)+len(added)) + 1<<16
	for i := range added {
		a := &added[i]
		if id, ok := lookup[a.Content]; ok {
			a.ID = int64(id)
			continue
		}
		if a.ID >= int64(limit) {
			return fmt.Errorf("%w: added token %.40q has id %d of %d", ErrInvalid, a.Content, a.ID, len(l.texts))
		}
		for int(a.ID) >= len(l.texts) {
			l.texts, l.from = append(l.texts, ""), append(l.from, -1)
		}
		l.texts[a.ID] = a.Content // where it replaces another, text may still reach that by its old name, as in the reference
		lookup[a.Content] = int32(a.ID)
	}
	return nil
}

// ids maps the file's ids to the layout's, nil where they are the same. What the layout leaves out has the id of its text, or is unknown.
func (l *pieceLayout) ids(p *pieceFile, lookup map[string]int32) []int32 {
	ids := make([]int32, len(p.texts))
	for i := range ids {
		ids[i] = -1
	}
	for id, piece := range l.from {
		if piece >= 0 {
			ids[piece] = int32(id)
		}
	}
	unk := p.unknown()
	if ids[unk] < 0 {
		ids[unk] = lookup[p.texts[unk]]
	}
	same := true
	for i := range ids {
		if ids[i] < 0 {
			if id, ok := lookup[p.texts[i]]; ok {
				ids[i] = id
			} else {
				ids[i] = ids[unk]
			}
		}
		same = same && ids[i] == int32(i)
	}
	if same {
		return nil
	}
	return ids
}

// seal takes special tokens that are ordinary pieces of the file out of the model's reach.
func (f *folder) seal(p *pieceFile, added []addedJSON) {
	special := map[string]bool{}
	for _, a := range added {
		special[a.Content] = special[a.Content] || a.Special
	}
	for i, text := range p.texts {
		if special[text] && p.spoken(i) {
			p.types[i] = pieceControl
		}
	}
}

// pieceKinds fills in what sort of token each id is and lists those that are cut out of text.
func (f *folder) pieceKinds(t *Tokenizer, p *pieceFile, l *pieceLayout, added []addedJSON) []addedToken {
	var list []addedToken
	f.listed = map[string]int{}
	for id, text := range t.texts {
		i := l.from[id]
		kind := int32(pieceNormal)
		if i >= 0 && p.texts[i] == text {
			kind = p.types[i]
		}
		to := t.lookup
		tok := addedToken{id: int32(id), text: text}
		switch kind {
		case pieceControl:
			t.kinds[id], tok.special, to = kindControl|kindAdded, true, t.others
			f.listed[text] = len(list)
			list = append(list, tok)
		case pieceUser:
			t.kinds[id], tok.inModel = kindAdded, !isWhite(text)
			if tok.inModel {
				f.listed[text] = len(list)
				list = append(list, tok)
			}
		case pieceByte:
			t.kinds[id], to = kindByte, t.others
		case pieceUnknown:
			t.kinds[id], to = kindUnknown, t.others
		case pieceUnused:
			t.kinds[id] = kindUnused
		}
		if i < 0 {
			to = t.others
		}
		if _, ok := to[text]; !ok && text != "" {
			to[text] = int32(id)
		}
	}
	for _, id := range l.own {
		list = f.addTo(t, list, addedJSON{ID: int64(id), Content: t.texts[id], Special: true})
	}
	for _, a := range added {
		list = f.addTo(t, list, a)
	}
	if s := f.class.Start; len(s) == 2 {
		for id, text := range t.texts {
			if strings.HasPrefix(text, s[0]) && strings.HasSuffix(text, s[1]) && len(text) > len(s[0])+len(s[1]) {
				list = append(list, addedToken{id: int32(id), text: text, atStart: true})
				t.kinds[id] |= kindAdded
			}
		}
	}
	return list
}

// addTo puts an added token on the list, in place of the entry that it has there.
func (f *folder) addTo(t *Tokenizer, list []addedToken, a addedJSON) []addedToken {
	id := int32(a.ID)
	tok := addedToken{id: id, text: a.Content, special: a.Special, singleWord: a.SingleWord, lstrip: a.Lstrip, rstrip: a.Rstrip, normalized: a.Normalized && !a.Special}
	t.kinds[id] |= kindAdded
	if a.Special {
		t.kinds[id] |= kindControl
	}
	t.others[a.Content] = id
	if i, ok := f.listed[a.Content]; ok {
		list[i] = tok
		return list
	}
	f.listed[a.Content] = len(list)
	return append(list, tok)
}

// pieceSteps sets the normalizer, what comes before the words, and the decoder.
func (f *folder) pieceSteps(t *Tokenizer, p *pieceFile) error {
	r := &jsonReader{t: t}
	raw, err := f.set.step(f.class.Normalizer)
	if err != nil {
		return err
	}
	if err := r.normalizer(raw); err != nil {
		return err
	}
	list, _ := t.norm.(normalizers)
	n := &pieceNormalizer{chars: p.chars, user: p.userTrie(), prefix: p.prefix, suffix: p.suffix, merge: p.merge, plain: !p.escape}
	if legacy := f.set.flag("legacy", true); !legacy && p.prefix && !p.suffix {
		n.prefix = false
		t.pre = preTokenizers{&metaspace{mark: n.mark(), prefix: prefixFirst}}
	}
	t.norm = append(list, n)
	lead := stageSpec{kind: stageLead, from: spaceMark}
	if p.prefix {
		lead.start = 1
	}
	if p.merge {
		lead.start = math.MaxInt
	}
	if f.name == "" { // by itself the file says what the unknown looks like; its readers in transformers write the token
		t.stages = append(t.stages, stageSpec{kind: stageExact, from: p.texts[p.unknown()], to: p.unkText})
	}
	if lead.start > 0 {
		t.stages = append(t.stages, lead)
	}
	t.stages = append(t.stages, stageSpec{kind: stageReplace, from: spaceMark, to: " "})
	if p.fallback {
		t.stages = append(t.stages, stageSpec{kind: stageByteFallback})
	}
	return checkNormalizer(t.norm)
}

// pieceRoles names ids: what the folder says, else the file.
func (f *folder) pieceRoles(t *Tokenizer, p *pieceFile) {
	f.nameRoles(t)
	for role, text := range map[string]string{"bos": p.bos, "eos": p.eos, "pad": p.pad} {
		if _, ok := t.named[role]; !ok && p.find(text, pieceControl) >= 0 {
			if id, ok := t.ID(text); ok {
				t.named[role] = id
			}
		}
	}
	if _, ok := t.named["unk"]; !ok {
		if id, ok := t.ID(p.texts[p.unknown()]); ok {
			t.named["unk"] = id
		}
	}
}
