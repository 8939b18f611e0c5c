package freeport

import (
	"runtime"
	"slices"
	"testing"
)

// TestTake: no port is given twice, though nothing listens on those that were given.
func TestTake(t *testing.T) {
	var ports []int
	for range 500 {
		port, err := Take()
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(ports, port) {
			t.Fatalf("port %d was given twice", port)
		}
		ports = append(ports, port)
	}
	if runtime.GOOS != "linux" {
		return
	}
	for _, port := range ports { // as another process would
		if l, err := reserve(port); err == nil {
			l.Close()
			t.Fatalf("port %d isn't kept from other processes", port)
		}
	}
}
