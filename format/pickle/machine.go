package pickle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/inferflow/inferflow/format/shelf"
)

// Limits of one pickled object. A checkpoint of 100,000 tensors takes a
// million containers and some ten megabytes.
const (
	maxPickle  = 64 << 20 // bytes
	maxObjects = 1 << 21  // containers and other things built
	maxStack   = 1 << 20
	maxLong    = 256      // bytes of an integer
	maxMade    = 64 << 20 // bytes that calls make, beside what the objects take
)

// Containers. The others are Go's own: nil, bool, int64, *big.Int, float64,
// string, []byte.
type (
	tuple struct{ items []any }
	list  struct{ items []any } // sets too
	dict  struct {
		keys, values []any
		ordered      bool // an OrderedDict, which may have attributes
	}
	mark struct{}
)

// machine interprets one pickled object.
type machine struct {
	data    []byte
	at      int
	stack   []any
	memo    map[uint64]any
	objects int
	made    int // bytes, against maxMade
	op      int // offset of the instruction
	// persistent makes the object of a persistent id.
	persistent func(id any) (any, error)
}

func (m *machine) bad(is error, format string, args ...any) error {
	return fmt.Errorf("pickle offset %d: %s: %w", m.op, fmt.Sprintf(format, args...), is)
}

// run interprets up to STOP and returns the object.
func (m *machine) run() (any, error) {
	m.memo = map[uint64]any{}
	for {
		m.op = m.at
		c, err := m.take(1)
		if err != nil {
			return nil, err
		}
		if c[0] == '.' {
			v, err := m.pop()
			if err == nil && len(m.stack) > 0 {
				err = m.bad(ErrCorrupt, "%d objects are left on the stack", len(m.stack))
			}
			return v, err
		}
		f := opcodes[c[0]]
		if f == nil {
			return nil, m.bad(ErrCorrupt, "unknown instruction %#02x", c[0])
		}
		if err := f(m); err != nil {
			return nil, err
		}
	}
}

func (m *machine) take(n uint64) ([]byte, error) {
	if n > uint64(len(m.data)-m.at) {
		return nil, m.bad(ErrCorrupt, "asks for %d bytes, %d are left", n, len(m.data)-m.at)
	}
	b := m.data[m.at : m.at+int(n)]
	m.at += int(n)
	return b, nil
}

// line reads up to a newline, which is taken too.
func (m *machine) line() (string, error) {
	rest := m.data[m.at:]
	n := bytes.IndexByte(rest[:min(len(rest), 4096)], '\n')
	if n < 0 {
		return "", m.bad(ErrCorrupt, "a line does not end within 4096 bytes")
	}
	m.at += n + 1
	return string(rest[:n]), nil
}

func (m *machine) push(v any) error {
	if len(m.stack) >= maxStack {
		return m.bad(ErrTooLarge, "more than %d objects on the stack", maxStack)
	}
	m.stack = append(m.stack, v)
	return nil
}

// build is push of something that takes memory of its own.
func (m *machine) build(v any) error {
	if m.objects++; m.objects > maxObjects {
		return m.bad(ErrTooLarge, "more than %d objects", maxObjects)
	}
	return m.push(v)
}

// make counts n bytes that a call is about to make of its arguments: the
// arguments may be memorised, and the call be made again and again.
func (m *machine) make(n int) error {
	if m.made += n; m.made > maxMade {
		return m.bad(ErrTooLarge, "calls make more than %d bytes", maxMade)
	}
	return nil
}

func (m *machine) pop() (any, error) {
	if len(m.stack) == 0 {
		return nil, m.bad(ErrCorrupt, "the stack is empty")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	if _, is := v.(mark); is {
		return nil, m.bad(ErrCorrupt, "a mark is taken for an object")
	}
	return v, nil
}

func (m *machine) top() (any, error) {
	v, err := m.pop()
	if err == nil {
		m.stack = append(m.stack, v)
	}
	return v, err
}

// popMark takes all objects above the last mark, and the mark. The slice is a copy.
func (m *machine) popMark() ([]any, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, is := m.stack[i].(mark); is {
			items := append([]any(nil), m.stack[i+1:]...)
			m.stack = m.stack[:i]
			return items, nil
		}
	}
	return nil, m.bad(ErrCorrupt, "there is no mark on the stack")
}

func (m *machine) popTuple(n int) error {
	items := make([]any, n)
	for i := n - 1; i >= 0; i-- {
		v, err := m.pop()
		if err != nil {
			return err
		}
		items[i] = v
	}
	return m.build(&tuple{items})
}

func (m *machine) put(key uint64) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	if len(m.memo) >= maxObjects {
		return m.bad(ErrTooLarge, "more than %d memorised objects", maxObjects)
	}
	m.memo[key] = v
	return nil
}

func (m *machine) get(key uint64) error {
	v, ok := m.memo[key]
	if !ok {
		return m.bad(ErrCorrupt, "object %d was never memorised", key)
	}
	return m.push(v)
}

// uint reads a little-endian number of n bytes.
func (m *machine) uint(n uint64) (uint64, error) {
	b, err := m.take(n)
	if err != nil {
		return 0, err
	}
	var all [8]byte
	copy(all[:], b)
	return binary.LittleEndian.Uint64(all[:]), nil
}

// lineKey reads a number in text, as a key of the memo.
func (m *machine) lineKey() (uint64, error) {
	s, err := m.line()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, m.bad(ErrCorrupt, "%s is no key", shelf.Quote(s))
	}
	return n, nil
}

// long reads a number of n bytes in two's complement.
func (m *machine) long(n uint64) error {
	if n > maxLong {
		return m.bad(ErrTooLarge, "an integer of %d bytes", n)
	}
	b, err := m.take(n)
	if err != nil {
		return err
	}
	be := make([]byte, len(b))
	for i, x := range b {
		be[len(b)-1-i] = x
	}
	v := new(big.Int).SetBytes(be)
	if n > 0 && b[n-1]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return m.number(v)
}

func (m *machine) number(v *big.Int) error {
	if v.IsInt64() {
		return m.push(v.Int64())
	}
	return m.build(v)
}

// text reads an integer in decimal.
func (m *machine) text(s string) error {
	s = strings.TrimSuffix(s, "L")
	if len(s) > 2*maxLong {
		return m.bad(ErrTooLarge, "an integer of %d digits", len(s))
	}
	v, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return m.bad(ErrCorrupt, "%s is no integer", shelf.Quote(s))
	}
	return m.number(v)
}

func (m *machine) str(size uint64) error {
	n, err := m.uint(size)
	if err != nil {
		return err
	}
	b, err := m.take(n)
	if err != nil {
		return err
	}
	return m.build(string(b))
}

func (m *machine) blob(size uint64) error {
	n, err := m.uint(size)
	if err != nil {
		return err
	}
	b, err := m.take(n)
	if err != nil {
		return err
	}
	return m.build(b)
}

// quoted reads a string of protocol 0: quotes and no more than simple escapes.
func (m *machine) quoted() error {
	s, err := m.line()
	if err != nil {
		return err
	}
	if len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '\'' && s[0] != '"' {
		return m.bad(ErrCorrupt, "%s is no quoted string", shelf.Quote(s))
	}
	if strings.Contains(s, `\`) {
		return m.bad(ErrUnsupported, "escapes in the string %s", shelf.Quote(s))
	}
	return m.build(s[1 : len(s)-1])
}

func (m *machine) float() error {
	b, err := m.take(8)
	if err != nil {
		return err
	}
	return m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
}

// setItems adds pairs to the dict on top of the stack.
func (m *machine) setItems(pairs []any) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	d, ok := v.(*dict)
	if !ok || len(pairs)%2 != 0 {
		return m.bad(ErrCorrupt, "%d objects are set as items of %s", len(pairs), kindOf(v))
	}
	if m.objects += len(pairs) / 2; m.objects > maxObjects {
		return m.bad(ErrTooLarge, "more than %d objects", maxObjects)
	}
	for i := 0; i < len(pairs); i += 2 {
		d.keys, d.values = append(d.keys, pairs[i]), append(d.values, pairs[i+1])
	}
	return nil
}

func (m *machine) appendItems(items []any) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	l, ok := v.(*list)
	if !ok {
		return m.bad(ErrCorrupt, "items are appended to %s", kindOf(v))
	}
	if m.objects += len(items); m.objects > maxObjects {
		return m.bad(ErrTooLarge, "more than %d objects", maxObjects)
	}
	l.items = append(l.items, items...)
	return nil
}

// kindOf names what an object is, for messages.
func kindOf(v any) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a truth value"
	case int64, *big.Int:
		return "an integer"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []byte:
		return "bytes"
	case *tuple:
		return "a tuple"
	case *list:
		return "a list"
	case *dict:
		return "a dict"
	case *storage:
		return "a storage"
	case *strided:
		return "a tensor"
	case global:
		return x.String()
	}
	return "an object"
}
