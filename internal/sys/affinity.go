package sys

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// UsableCPUs is the number of CPUs that this process can keep busy: those of its
// affinity mask, at most its control groups' quota (rounded down, at least 1).
func UsableCPUs() int {
	n := runtime.NumCPU()
	if mask := affinityMask(); len(mask) > 0 {
		n = len(mask)
	}
	if quota, ok := cgroupCPUs("/"); ok {
		n = min(n, max(1, int(quota)))
	}
	return n
}

// pinOrder orders CPUs so that one hardware thread of each core comes before the
// second ones: a team smaller than the machine then has cores to itself. siblings
// tells the CPUs that share a core with one, in the kernel's list form. cores is the
// number of cores, whose first threads lead the order.
func pinOrder(mask []int, siblings func(cpu int) string) (order []int, cores int) {
	rank := make(map[int]int, len(mask))
	for _, c := range mask {
		for _, s := range parseCPUList(siblings(c)) {
			if s < c && slices.Contains(mask, s) {
				rank[c]++
			}
		}
	}
	order = slices.Clone(mask)
	slices.SortStableFunc(order, func(a, b int) int { return rank[a] - rank[b] })
	for _, c := range mask {
		if rank[c] == 0 {
			cores++
		}
	}
	return order, cores
}

func siblingList(cpu int) string {
	text, err := os.ReadFile("/sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/topology/thread_siblings_list")
	if err != nil {
		return ""
	}
	return string(text)
}

// parseCPUList reads the kernel's list form, "0-3,8"; what does not parse is left
// out, since the list is only a hint.
func parseCPUList(s string) []int {
	var cpus []int
	for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(lo)
		if err != nil {
			continue
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(hi); err != nil {
				continue
			}
		}
		for ; a <= b && len(cpus) < 1<<16; a++ {
			cpus = append(cpus, a)
		}
	}
	return cpus
}
