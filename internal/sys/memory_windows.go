//go:build windows

package sys

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

var globalMemoryStatusEx = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// memoryStatus is MEMORYSTATUSEX of sysinfoapi.h.
type memoryStatus struct {
	length, load                                                     uint32
	totalPhys, availPhys, totalPage, availPage, totalVirt, availVirt uint64
	availExtended                                                    uint64
}

func physicalMemory() (int64, string) {
	s := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	if ok, _, _ := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&s))); ok == 0 {
		return 0, "unknown"
	}
	return int64(s.availPhys), "available memory"
}
