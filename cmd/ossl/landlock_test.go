//go:build linux

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLandlockOperations: a confined server can reload, renew its certificate and restart within its
// domain, and not beyond it.
func TestLandlockOperations(t *testing.T) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || abi < 4 {
		t.Skipf("Landlock of ABI 4 or later is missing in this kernel: version %d, %v", abi, errno)
	}
	s := newService(t)
	s.write("conf/sites.toml", "")
	s.write("conf/keep", "")
	s.write("later/index.html", "front page")
	s.write("outside/index.html", "front page")
	config := func(change func(string) string) {
		t.Helper()
		text := `listen = ["127.0.0.1:0"]
landlock = "on"
landlock-read = ["later"]
[[site]]
cert = "localhost.pem"
key = "localhost-key.pem"
root = "public"
`
		if change != nil {
			text = change(text)
		}
		s.write("conf/sites.toml", text)
	}
	// The certificates are in a folder of their own.
	for _, name := range []string{"localhost.pem", "localhost-key.pem"} {
		s.write("tls/keep", "")
		if err := os.Rename(s.path(name), s.path("tls/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	inTLS := func(text string) string {
		return strings.ReplaceAll(text, `"localhost`, `"tls/localhost`)
	}
	root := func(folder string) func(string) string {
		return func(text string) string { return strings.Replace(inTLS(text), `"public"`, `"`+folder+`"`, 1) }
	}
	config(inTLS)
	s.start("serve", "--config", "conf/sites.toml")
	serves := func() {
		t.Helper()
		if err := get(s.client("tcp", s.address, false, false), "https://localhost/"); err != nil {
			t.Error(err)
		}
	}
	serves()

	config(root("outside"))
	s.signal(syscall.SIGHUP)
	s.await("landlock: the process may not read")
	s.notified("READY=1")
	serves()
	s.signal(syscall.SIGUSR2)
	s.await("restart failed, this process goes on")
	serves()
	config(func(text string) string { return "admin = \"unix:outside/s\"\n" + inTLS(text) })
	s.signal(syscall.SIGUSR2)
	s.await("restart failed, this process goes on")
	serves()
	config(func(text string) string { return strings.Replace(inTLS(text), `"on"`, `"off"`, 1) })
	s.signal(syscall.SIGHUP)
	s.await("reload failed")
	s.notified("READY=1")

	config(root("later"))
	s.signal(syscall.SIGHUP)
	s.await("msg=reloaded")
	s.notified("READY=1")
	serves()
	s.restart()
	serves()
	for range 20 { // the kernel has 16 domains within each other at most
		s.restart()
	}
	serves()
	config(root("outside"))
	s.signal(syscall.SIGHUP)
	s.await("landlock: the process may not read") // the new process knows its domain
	s.notified("READY=1")

	// A renewal replaces the files.
	config(inTLS)
	for _, name := range []string{"localhost.pem", "localhost-key.pem"} {
		text, err := os.ReadFile(s.path("tls/" + name))
		if err != nil {
			t.Fatal(err)
		}
		s.write("tls/new", string(text))
		if err := os.Rename(s.path("tls/new"), s.path("tls/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	s.signal(syscall.SIGHUP)
	s.await("msg=reloaded")
	s.notified("READY=1")
	serves()
	s.stop("landlock", "restart failed", "reload failed")
}
