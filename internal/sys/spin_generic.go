//go:build !(amd64 || arm64) || noasm

package sys

import "sync/atomic"

var spinSink atomic.Uint32

// procyield passes about the time of n PAUSE instructions with plain loads.
func procyield(n uint32) {
	for range n * 16 {
		spinSink.Load()
	}
}
