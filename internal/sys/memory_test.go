package sys

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMemoryLimit(t *testing.T) {
	n, from := MemoryLimit()
	if n < 0 || from == "" {
		t.Errorf("MemoryLimit() = %d, %q", n, from)
	}
	if c := UsableCPUs(); c < 1 {
		t.Errorf("UsableCPUs() = %d", c)
	}
}

func TestMemAvailable(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:  100 kB\nMemAvailable:   7 kB\n": 7168,
		"MemAvailable: x kB":                        -1,
		"MemAvailable: 9223372036854775807 kB":      -1,
		"MemAvailable:":                             -1,
		"":                                          -1,
	} {
		n, ok := memAvailable([]byte(text))
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("%q: %d, want %d", text, n, want)
		}
	}
}

func TestControlGroups(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  map[string]string
		memory int64 // -1 for none
		cpus   float64
	}{
		{"v2", map[string]string{
			"proc/self/cgroup":                  "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":      "max\n",
			"sys/fs/cgroup/a/memory.max":        "1000\n",
			"sys/fs/cgroup/a/memory.current":    "600\n",
			"sys/fs/cgroup/a/memory.stat":       "anon 5\ninactive_file 100\n",
			"sys/fs/cgroup/a/b/cpu.max":         "max 100000\n",
			"sys/fs/cgroup/a/cpu.max":           "250000 100000\n",
			"sys/fs/cgroup/other/memory.max":    "1\n",
			"sys/fs/cgroup/a/b/c/d/memory.max":  "1\n",
			"sys/fs/cgroup/a/b/c/d/memory.stat": "",
		}, 500, 2.5},
		{"v1, inside a container's namespace", map[string]string{
			"proc/self/cgroup":                           "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "4096",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "50000",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000",
		}, 4096, 0.5},
		{"v1 without limits", map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n1:cpu:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "-1",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000",
		}, -1, -1},
		{"over the limit", map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "10",
			"sys/fs/cgroup/memory.current": "20",
			"sys/fs/cgroup/cpu.max":        "5",
		}, 0, -1},
		{"garbage", map[string]string{"proc/self/cgroup": "x\n::\n0::../../..\n"}, -1, -1},
		{"nothing", nil, -1, -1},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			full := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		memory, _, ok := cgroupMemory(root)
		if !ok {
			memory = -1
		}
		cpus, ok := cgroupCPUs(root)
		if !ok {
			cpus = -1
		}
		if memory != c.memory || cpus != c.cpus {
			t.Errorf("%s: memory %d, cpus %v; want %d, %v", c.name, memory, cpus, c.memory, c.cpus)
		}
	}
}

func TestPinOrder(t *testing.T) {
	pairs := map[int]string{0: "0,4", 1: "1,5", 4: "0,4", 5: "1,5", 7: "3,7"}
	order, cores := pinOrder([]int{0, 1, 4, 5, 7}, func(c int) string { return pairs[c] })
	if !slices.Equal(order, []int{0, 1, 7, 4, 5}) || cores != 3 {
		t.Errorf("order %v, %d cores", order, cores)
	}
	if got := parseCPUList("0-2,x,9-,5\n"); !slices.Equal(got, []int{0, 1, 2, 5}) {
		t.Errorf("list %v", got)
	}
}
