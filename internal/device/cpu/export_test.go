package cpu

import "github.com/inferflow/inferflow/internal/device"

// SetBandRows makes bands of n rows until the function that it returns is called.
func SetBandRows(n int) (restore func()) {
	old := bandRows
	bandRows = n
	return func() { bandRows = old }
}

// Bands is the number of pairs of steps that may run by bands.
func Bands(d device.Stage) (n int) {
	for _, e := range d.(*Stage).exec {
		if _, ok := e.(*bands); ok {
			n++
		}
	}
	return n
}
