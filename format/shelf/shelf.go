// Package shelf keeps the tensors of one or several mapped files under their
// names: what the readers of all formats have in common. It knows no format and
// must not import anything above package tensor but internal/sys. Read Shelf first.
package shelf

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/inferflow/inferflow/internal/sys"
	"github.com/inferflow/inferflow/tensor"
)

// ErrTensor marks a tensor that stands in two places, or not where it should.
var ErrTensor = errors.New("the tensors do not fit together")

// Part is one file: its tensors in order, and where their bytes begin in it (−1:
// they are a copy). Mapping is nil where the bytes are not a mapping of the file.
type Part struct {
	Name    string
	Tensors []tensor.View
	Offsets []int
	Mapping *sys.Mapping
}

// Add appends a tensor whose bytes begin at offset.
func (p *Part) Add(v tensor.View, offset int) {
	p.Tensors, p.Offsets = append(p.Tensors, v), append(p.Offsets, offset)
}

// Close unmaps the file. A second Close does nothing.
func (p *Part) Close() error {
	m := p.Mapping
	if p.Mapping = nil; m == nil {
		return nil
	}
	return m.Close()
}

// Shelf holds the tensors of several parts. Its zero value holds none.
type Shelf struct {
	parts   []*Part
	tensors []tensor.View
	index   map[string]int
	places  []place
}

// place is where the bytes of a tensor lie.
type place struct{ part, offset int }

// New owns the parts, and closes them where they do not fit together: an error
// wraps ErrTensor. where, if not nil, says in which file (by its base name) each
// tensor is to be found; what another file holds under the name is passed over.
func New(parts []*Part, where map[string]string) (Shelf, error) {
	n := 0
	for _, p := range parts {
		n += len(p.Tensors)
	}
	s := Shelf{parts: parts, index: make(map[string]int, n), tensors: make([]tensor.View, 0, n), places: make([]place, 0, n)}
	for i, p := range parts {
		for k, v := range p.Tensors {
			if home, ok := where[v.Name]; ok && home != filepath.Base(p.Name) {
				continue
			}
			if first, dup := s.index[v.Name]; dup {
				other := parts[s.places[first].part].Name
				return Shelf{}, errors.Join(fmt.Errorf("%s: tensor %s stands there and in %s: %w", p.Name, Quote(v.Name), other, ErrTensor), s.Close())
			}
			s.index[v.Name] = len(s.tensors)
			s.tensors = append(s.tensors, v)
			s.places = append(s.places, place{i, p.Offsets[k]})
		}
	}
	lacking := slices.DeleteFunc(slices.Sorted(maps.Keys(where)), func(name string) bool { _, ok := s.index[name]; return ok })
	if len(lacking) > 0 {
		return Shelf{}, errors.Join(fmt.Errorf("tensor %s should be in %s, which lacks it: %w", Quote(lacking[0]), where[lacking[0]], ErrTensor), s.Close())
	}
	return s, nil
}

// Files are the paths of all files that hold tensors, in order.
func (s *Shelf) Files() []string {
	names := make([]string, len(s.parts))
	for i, p := range s.parts {
		names[i] = p.Name
	}
	return names
}

// Tensors lists all tensors in the order of their files. The slice belongs to
// the Shelf.
func (s *Shelf) Tensors() []tensor.View { return s.tensors }

// Tensor finds a tensor by its name.
func (s *Shelf) Tensor(name string) (tensor.View, bool) {
	i, ok := s.index[name]
	if !ok {
		return tensor.View{}, false
	}
	return s.tensors[i], true
}

// Release tells the system that the pages of a tensor are not needed soon.
// Reading the view afterwards is right, only slower. A tensor that is not on the
// shelf is ignored.
func (s *Shelf) Release(name string) error {
	i, ok := s.index[name]
	if !ok {
		return nil
	}
	m, at, n := s.parts[s.places[i].part].Mapping, s.places[i].offset, len(s.tensors[i].Data)
	if m == nil || at < 0 || n == 0 {
		return nil
	}
	return m.Advise(at, n, sys.DontNeed)
}

// Close unmaps the files. Views must not be used afterwards. A second Close
// does nothing.
func (s *Shelf) Close() error {
	s.tensors, s.index = nil, nil
	return CloseAll(s.parts)
}

// CloseAll closes parts that are on no shelf yet.
func CloseAll(parts []*Part) error {
	var all []error
	for _, p := range parts {
		all = append(all, p.Close())
	}
	return errors.Join(all...)
}

// Quote renders a name from a file for an error: escaped, and cut where a
// hostile file made it long.
func Quote(s string) string {
	if len(s) > 100 {
		return fmt.Sprintf("%q… (%d bytes)", s[:100], len(s))
	}
	return fmt.Sprintf("%q", s)
}
