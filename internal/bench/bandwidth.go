package bench

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/inferflow/inferflow/internal/kernel/vec"
	"github.com/inferflow/inferflow/internal/sys"
)

// bandwidthBuffer is larger than any last-level cache that two cores share.
const bandwidthBuffer = 320 << 20

// bandwidthPasses are made over the buffer in each of two ways of reading; the
// fastest counts.
const bandwidthPasses = 4

// Bandwidth is the rate, in bytes a second, at which threads together read a
// buffer that no cache holds: the best of several passes.
func Bandwidth(threads int) (float64, error) {
	if runtime.GOMAXPROCS(0) < threads+2 {
		runtime.GOMAXPROCS(threads + 2)
	}
	team, err := sys.NewTeam(threads)
	if err != nil {
		return 0, fmt.Errorf("bench: bandwidth: %w", err)
	}
	defer team.Close()
	arena, err := sys.NewArena(bandwidthBuffer)
	if err != nil {
		return 0, fmt.Errorf("bench: bandwidth: %w", err)
	}
	defer arena.Close()
	buf, err := arena.Bytes(bandwidthBuffer)
	if err != nil {
		return 0, fmt.Errorf("bench: bandwidth: %w", err)
	}
	part := len(buf) / team.Size() &^ 63
	team.Run(func(i int) { // pages that were never written are all the same one
		mine := buf[i*part : (i+1)*part]
		for k := range mine {
			mine[k] = 0x3f // as a float32 an ordinary number
		}
	})
	return bestPass(team, buf, part), nil
}

// bestPass times passes over the buffer, each thread over its own part.
func bestPass(team *sys.Team, buf []byte, part int) float64 {
	var sink atomic.Uint64
	words := func(i int) { sink.Add(sumWords(buf[i*part : (i+1)*part])) }
	floats := func(i int) { sink.Add(math.Float64bits(sumFloats(buf[i*part : (i+1)*part]))) }
	best := 0.0
	for range bandwidthPasses {
		for _, read := range []func(int){words, floats} {
			start := time.Now()
			team.Run(read)
			best = max(best, float64(part*team.Size())/time.Since(start).Seconds())
		}
	}
	return best
}

// sumFloats reads b in pieces with the vector kernel of the tier.
func sumFloats(b []byte) float64 {
	f := unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
	sum := 0.0
	for piece := range slices.Chunk(f, 4096) {
		sum += float64(vec.Sum(piece))
	}
	return sum
}

// sumWords reads b, whose length is a multiple of 64, in words of 8 bytes.
func sumWords(b []byte) uint64 {
	var s0, s1, s2, s3 uint64
	for len(b) >= 64 {
		c := b[:64:64]
		s0 += binary.LittleEndian.Uint64(c[0:]) + binary.LittleEndian.Uint64(c[8:])
		s1 += binary.LittleEndian.Uint64(c[16:]) + binary.LittleEndian.Uint64(c[24:])
		s2 += binary.LittleEndian.Uint64(c[32:]) + binary.LittleEndian.Uint64(c[40:])
		s3 += binary.LittleEndian.Uint64(c[48:]) + binary.LittleEndian.Uint64(c[56:])
		b = b[64:]
	}
	return s0 + s1 + s2 + s3
}
