package confgen

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A server whose check doesn't end is stopped.
func TestCheckEnds(t *testing.T) {
	defer func(d time.Duration) { patience = d }(patience)
	patience = time.Millisecond
	dir := t.TempDir()
	program := filepath.Join(dir, "nginx")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := &Config{Server: Server{Kind: "nginx", Program: program}, Layout: Layout{State: dir}}
	if err := c.Check(t.Context(), "conf"); !IsRefused(err) {
		t.Error(err)
	}
}
