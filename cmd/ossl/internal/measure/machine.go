package measure

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// A Machine describes a machine, on which figures depend besides the OpenSSL.
type Machine struct {
	Processor string  `json:"processor"`
	CPUs      int     `json:"cpus"`
	System    string  `json:"system"` // such as "linux/amd64, 6.1.0"
	Go        string  `json:"go"`
	Load      float64 `json:"load"` // the load average of the minute before
}

// ThisMachine describes the machine. Parts that aren't known are empty.
func ThisMachine() Machine {
	m := Machine{CPUs: runtime.GOMAXPROCS(0), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Load: load()}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += ", " + strings.TrimSpace(string(release))
	}
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.Processor = strings.TrimSpace(value)
			break
		}
	}
	return m
}

// Busy reports whether other programs have used the processors before.
func (m Machine) Busy() bool { return m.Load > float64(m.CPUs)/2 }

// load returns the system's load average of the last minute, or 0 if it is not available.
func load() float64 {
	averages, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(averages), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}
