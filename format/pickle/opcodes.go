package pickle

import (
	"strconv"

	"github.com/inferflow/inferflow/format/shelf"
)

// opcodes are the instructions of protocols 0 to 5 that build data. What would
// call, import or make objects of classes is refused by name.
var opcodes = [256]func(*machine) error{
	'(':  func(m *machine) error { return m.push(mark{}) },
	'0':  (*machine).opPop,
	'1':  func(m *machine) error { _, err := m.popMark(); return err },
	'2':  (*machine).opDup,
	'F':  (*machine).opFloatLine,
	'I':  (*machine).opIntLine,
	'J':  (*machine).opInt4,
	'K':  func(m *machine) error { return m.opUint(1) },
	'M':  func(m *machine) error { return m.opUint(2) },
	'L':  (*machine).opLongLine,
	'N':  func(m *machine) error { return m.push(nil) },
	'G':  (*machine).float,
	'S':  (*machine).quoted,
	'T':  func(m *machine) error { return m.str(4) },
	'U':  func(m *machine) error { return m.str(1) },
	'V':  (*machine).opUnicodeLine,
	'X':  func(m *machine) error { return m.str(4) },
	0x8c: func(m *machine) error { return m.str(1) },
	0x8d: func(m *machine) error { return m.str(8) },
	'B':  func(m *machine) error { return m.blob(4) },
	'C':  func(m *machine) error { return m.blob(1) },
	0x8e: func(m *machine) error { return m.blob(8) },
	0x96: func(m *machine) error { return m.blob(8) },
	0x8a: func(m *machine) error { return m.opLong(1) },
	0x8b: func(m *machine) error { return m.opLong(4) },
	0x88: func(m *machine) error { return m.push(true) },
	0x89: func(m *machine) error { return m.push(false) },
	']':  func(m *machine) error { return m.build(&list{}) },
	')':  func(m *machine) error { return m.build(&tuple{}) },
	'}':  func(m *machine) error { return m.build(&dict{}) },
	0x8f: func(m *machine) error { return m.build(&list{}) },
	'l':  (*machine).opList,
	't':  (*machine).opTuple,
	0x91: (*machine).opList,
	'd':  (*machine).opDict,
	0x85: func(m *machine) error { return m.popTuple(1) },
	0x86: func(m *machine) error { return m.popTuple(2) },
	0x87: func(m *machine) error { return m.popTuple(3) },
	'a':  (*machine).opAppend,
	'e':  (*machine).opAppends,
	0x90: (*machine).opAppends,
	's':  (*machine).opSetItem,
	'u':  (*machine).opSetItems,
	'g':  func(m *machine) error { return m.keyed(m.lineKey, m.get) },
	'h':  func(m *machine) error { return m.keyed(m.byteKey, m.get) },
	'j':  func(m *machine) error { return m.keyed(m.wordKey, m.get) },
	'p':  func(m *machine) error { return m.keyed(m.lineKey, m.put) },
	'q':  func(m *machine) error { return m.keyed(m.byteKey, m.put) },
	'r':  func(m *machine) error { return m.keyed(m.wordKey, m.put) },
	0x94: func(m *machine) error { return m.put(uint64(len(m.memo))) },
	0x80: (*machine).opProto,
	0x95: func(m *machine) error { _, err := m.take(8); return err },
	'c':  (*machine).opGlobal,
	0x93: (*machine).opStackGlobal,
	'R':  (*machine).opReduce,
	0x81: (*machine).opReduce,
	'b':  (*machine).opBuild,
	'Q':  (*machine).opPersistent,
	'P':  refused("PERSID"),
	'i':  (*machine).opInst,
	'o':  refused("OBJ"),
	0x92: refused("NEWOBJ_EX"),
	0x82: refused("EXT1"),
	0x83: refused("EXT2"),
	0x84: refused("EXT4"),
	0x97: refused("NEXT_BUFFER"),
	0x98: refused("READONLY_BUFFER"),
}

func refused(name string) func(*machine) error {
	return func(m *machine) error { return m.bad(ErrForbidden, "the instruction %s", name) }
}

func (m *machine) opPop() error {
	if n := len(m.stack); n > 0 { // Python pops a mark too
		m.stack = m.stack[:n-1]
		return nil
	}
	return m.bad(ErrCorrupt, "the stack is empty")
}

func (m *machine) opDup() error {
	v, err := m.top()
	if err != nil {
		return err
	}
	return m.push(v)
}

func (m *machine) opFloatLine() error {
	s, err := m.line()
	if err != nil {
		return err
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return m.bad(ErrCorrupt, "%s is no number", shelf.Quote(s))
	}
	return m.push(f)
}

func (m *machine) opIntLine() error {
	s, err := m.line()
	switch {
	case err != nil:
		return err
	case s == "00", s == "01":
		return m.push(s == "01")
	}
	return m.text(s)
}

func (m *machine) opLongLine() error {
	s, err := m.line()
	if err != nil {
		return err
	}
	return m.text(s)
}

func (m *machine) opUnicodeLine() error {
	s, err := m.line()
	if err != nil {
		return err
	}
	return m.build(s)
}

func (m *machine) opInt4() error {
	n, err := m.uint(4)
	if err != nil {
		return err
	}
	return m.push(int64(int32(n)))
}

func (m *machine) opUint(size uint64) error {
	n, err := m.uint(size)
	if err != nil {
		return err
	}
	return m.push(int64(n))
}

func (m *machine) opLong(size uint64) error {
	n, err := m.uint(size)
	if err != nil {
		return err
	}
	return m.long(n)
}

func (m *machine) opList() error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	return m.build(&list{items})
}

func (m *machine) opTuple() error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	return m.build(&tuple{items})
}

func (m *machine) opDict() error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	if err := m.build(&dict{}); err != nil {
		return err
	}
	return m.setItems(items)
}

func (m *machine) opAppend() error {
	v, err := m.pop()
	if err != nil {
		return err
	}
	return m.appendItems([]any{v})
}

func (m *machine) opAppends() error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	return m.appendItems(items)
}

func (m *machine) opSetItem() error {
	v, err := m.pop()
	if err != nil {
		return err
	}
	k, err := m.pop()
	if err != nil {
		return err
	}
	return m.setItems([]any{k, v})
}

func (m *machine) opSetItems() error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	return m.setItems(items)
}

func (m *machine) keyed(read func() (uint64, error), use func(uint64) error) error {
	k, err := read()
	if err != nil {
		return err
	}
	return use(k)
}

func (m *machine) byteKey() (uint64, error) { return m.uint(1) }
func (m *machine) wordKey() (uint64, error) { return m.uint(4) }

func (m *machine) opProto() error {
	n, err := m.uint(1)
	if err == nil && n > 5 {
		err = m.bad(ErrUnsupported, "protocol %d", n)
	}
	return err
}

func (m *machine) opGlobal() error {
	module, err := m.line()
	if err != nil {
		return err
	}
	name, err := m.line()
	if err != nil {
		return err
	}
	return m.global(module, name)
}

func (m *machine) opStackGlobal() error {
	n, err := m.pop()
	if err != nil {
		return err
	}
	v, err := m.pop()
	if err != nil {
		return err
	}
	name, ok1 := n.(string)
	module, ok2 := v.(string)
	if !ok1 || !ok2 {
		return m.bad(ErrCorrupt, "a global is named by %s and %s", kindOf(v), kindOf(n))
	}
	return m.global(module, name)
}

// opInst names a class in text and would make an object of it.
func (m *machine) opInst() error {
	module, err := m.line()
	if err != nil {
		return err
	}
	name, err := m.line()
	if err != nil {
		return err
	}
	return m.bad(ErrForbidden, "an object of %s", global{module, name})
}

func (m *machine) opPersistent() error {
	id, err := m.pop()
	if err != nil {
		return err
	}
	if m.persistent == nil {
		return m.bad(ErrCorrupt, "a persistent id where none belongs")
	}
	v, err := m.persistent(id)
	if err != nil {
		return err
	}
	return m.build(v)
}
