//go:build (amd64 || arm64) && !noasm

package sys

// procyield executes n hints that the thread is spinning: they spare the core's
// other hardware thread and the memory bus.
//
//go:noescape
func procyield(n uint32)
