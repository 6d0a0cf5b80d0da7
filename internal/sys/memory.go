package sys

import (
	"bytes"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// MemoryLimit is the number of bytes that this process may still take into use
// without swapping or being killed, and a word for what sets the limit: the free
// physical memory ("MemAvailable"), a control group ("cgroup …", its limit less
// what the group holds that cannot be reclaimed), or the machine's size where the
// system tells no more ("physical memory"). It is 0, "unknown" where nothing is told.
func MemoryLimit() (bytes int64, source string) {
	bytes, source = physicalMemory()
	if n, from, ok := cgroupMemory("/"); ok && (bytes == 0 || n < bytes) {
		bytes, source = n, from
	}
	return bytes, source
}

// memAvailable reads MemAvailable from the text of /proc/meminfo, in bytes.
func memAvailable(meminfo []byte) (int64, bool) {
	for line := range bytes.Lines(meminfo) {
		if f := bytes.Fields(line); len(f) >= 2 && string(f[0]) == "MemAvailable:" {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err != nil || n < 0 || n > math.MaxInt64/1024 {
				return 0, false
			}
			return n * 1024, true
		}
	}
	return 0, false
}

// cgroup is where one controller's files of this process lie.
type cgroup struct {
	mount string // the controller's mount point, without the last slash
	dir   string // the process's group below it
	v2    bool
}

// cgroupOf finds the group of this process for a v1 controller, or for v2. The
// files are read below root, "/" outside tests.
func cgroupOf(root, controller string) (g cgroup, ok bool) {
	text, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return g, false
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[0] == "0" && f[1] == "" && !ok {
			g, ok = cgroup{path.Join(root, "sys/fs/cgroup"), f[2], true}, true
		}
		for c := range strings.SplitSeq(f[1], ",") {
			if c == controller {
				return cgroup{path.Join(root, "sys/fs/cgroup", controller), f[2], false}, true
			}
		}
	}
	return g, ok
}

// levels calls f for the process's group and all above it, whose limits hold too.
// In a container the group's path may not exist below the mount; the mount itself
// is then the group.
func (g cgroup) levels(f func(dir string)) {
	dir := path.Clean("/" + g.dir)
	for dir != "/" {
		f(path.Join(g.mount, dir))
		dir = path.Dir(dir)
	}
	f(g.mount)
}

func cgroupMemory(root string) (limit int64, source string, ok bool) {
	g, found := cgroupOf(root, "memory")
	if !found {
		return 0, "", false
	}
	maxName, useName, cacheName := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
	if g.v2 {
		maxName, useName, cacheName = "memory.max", "memory.current", "inactive_file"
	}
	g.levels(func(dir string) {
		n, isSet := readInt(path.Join(dir, maxName))
		if !isSet || n >= 1<<60 { // v1 writes "no limit" as a huge number of pages
			return
		}
		if used, has := readInt(path.Join(dir, useName)); has {
			cache, _ := readStat(path.Join(dir, "memory.stat"), cacheName)
			n = max(0, n-max(0, used-cache))
		}
		if !ok || n < limit {
			limit, source, ok = n, "cgroup "+path.Join(dir, maxName), true
		}
	})
	return limit, source, ok
}

// cgroupCPUs is the quota of the process's groups in CPUs; false where none is set.
func cgroupCPUs(root string) (cpus float64, ok bool) {
	g, found := cgroupOf(root, "cpu")
	if !found {
		return 0, false
	}
	g.levels(func(dir string) {
		var quota, period int64
		var has bool
		if g.v2 {
			quota, period, has = readPair(path.Join(dir, "cpu.max"))
		} else if quota, has = readInt(path.Join(dir, "cpu.cfs_quota_us")); has {
			period, has = readInt(path.Join(dir, "cpu.cfs_period_us"))
		}
		if !has || quota <= 0 || period <= 0 {
			return
		}
		if n := float64(quota) / float64(period); !ok || n < cpus {
			cpus, ok = n, true
		}
	})
	return cpus, ok
}

// readInt reads a file that holds one number; "max" and -1 are no number.
func readInt(name string) (int64, bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil && n >= 0
}

// readPair reads "quota period" of cpu.max.
func readPair(name string) (a, b int64, ok bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, 0, false
	}
	f := strings.Fields(string(text))
	if len(f) != 2 {
		return 0, 0, false
	}
	a, errA := strconv.ParseInt(f[0], 10, 64)
	b, errB := strconv.ParseInt(f[1], 10, 64)
	return a, b, errA == nil && errB == nil
}

// readStat reads one line "key number" of memory.stat.
func readStat(name, key string) (int64, bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == key {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil && n >= 0
		}
	}
	return 0, false
}
