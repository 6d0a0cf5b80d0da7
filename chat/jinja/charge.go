package jinja

import (
	"math/big"
	"sort"
)

// What a rendering pays for work that its number of nodes does not tell: a
// step stands for some tens of nanoseconds, so reading a string costs one for
// each scanBytes, and work on each of its characters one for each charBytes.
const (
	scanBytes = 64
	charBytes = 8
)

// touch pays for values that are handed to a method, a filter, a test or an
// operator which may read each whole.
func (r *run) touch(values ...Value) error {
	n := 0
	for _, v := range values {
		switch x := v.(type) {
		case Str:
			n += len(x.s)/scanBytes + len(x.user)/charBytes
		case *big.Int:
			n += x.BitLen() / scanBytes
		}
	}
	if n == 0 {
		return nil
	}
	return r.step(n)
}

// given pays for arguments as touch does, and for finding them by name.
func (r *run) given(a *args) error {
	if err := r.touch(a.pos...); err != nil {
		return err
	}
	return r.touch(a.named...)
}

// made pays for a string's record of whose bytes are whose, which text, told
// before the string is made, knows nothing of.
func (r *run) made(s Str) error {
	if r.mem += int64(len(s.user)) * 16; r.mem > r.lim.Memory {
		return limitf("more than %d bytes of memory", r.lim.Memory)
	}
	return r.step(len(s.user) / charBytes)
}

// escape is Str.escape within the limits.
func (r *run) escape(s Str) (Str, error) {
	if s.safe {
		return s, nil
	}
	if err := r.chars(len(s.s)); err != nil {
		return Str{}, err
	}
	out := s.escape()
	return out, r.text(len(out.s))
}

// hash is hashKey at the expense of the rendering: keys are copied, and those
// that are tuples may be as deep and as wide as any value.
func (r *run) hash(key Value) (string, error) {
	if _, err := r.key(key); err != nil {
		return "", err
	}
	return hashKey(key)
}

// key pays for the hash of a key and tells its length.
func (r *run) key(v Value) (int, error) {
	switch x := v.(type) {
	case Str:
		return len(x.s) + 1, r.keyBytes(len(x.s))
	case *big.Int:
		return x.BitLen(), r.step(x.BitLen() / charBytes)
	case *List:
		if x.kind != kindTuple {
			break
		}
		if err := r.enter(); err != nil {
			return 0, err
		}
		defer r.leave()
		sum := 1
		for _, it := range x.items {
			n, err := r.key(it)
			if err != nil {
				return 0, err
			}
			sum += n + 20
			if err := r.step(1); err != nil {
				return 0, err
			}
		}
		return sum, r.keyBytes(sum)
	}
	return 32, nil
}

func (r *run) keyBytes(n int) error {
	if n < scanBytes {
		return nil
	}
	if err := r.text(n); err != nil {
		return err
	}
	return r.step(n / scanBytes)
}

// lookup is d[key].
func (r *run) lookup(d *Dict, key Value) (Value, bool, error) {
	if _, err := r.key(key); err != nil {
		return nil, false, err
	}
	return d.get(key)
}

// put is d[key] = v.
func (r *run) put(d *Dict, key, v Value) error {
	if _, err := r.key(key); err != nil {
		return err
	}
	return d.set(key, v)
}

// spanFrom is the first span that ends behind byte i.
func (s Str) spanFrom(i int) int {
	return sort.Search(len(s.user), func(k int) bool { return s.user[k].hi > i })
}
