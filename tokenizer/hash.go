package tokenizer

import (
	"math/bits"
	"math/rand/v2"
)

// Secrets of the hash tables: a file could else be made whose keys all meet in one place.
var hashSecret, hashFactor = rand.Uint64(), rand.Uint64() | 1<<63 | 1

// hash mixes a key for a table with open addressing.
func hash(key uint64) uint64 {
	hi, lo := bits.Mul64(key^hashSecret, hashFactor)
	return hi ^ lo
}
