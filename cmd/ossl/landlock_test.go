//go:build linux

package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// landlockNeeded skips a test if the kernel has no Landlock that restricts connections.
func landlockNeeded(t *testing.T) {
	t.Helper()
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || abi < 4 {
		t.Skipf("Landlock of ABI 4 or later is missing in this kernel: version %d, %v", abi, errno)
	}
}

// TestLandlockOperations: a confined server can reload, renew its certificate and restart within its
// domain, and not beyond it.
func TestLandlockOperations(t *testing.T) {
	landlockNeeded(t)
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

// TestLandlockACME: a confined server that gets certificates by ACME reaches the authority, writes
// in its storage and reads there the files that another server has written, after a restart too. A
// server that was started without ACME refuses it.
func TestLandlockACME(t *testing.T) {
	landlockNeeded(t)
	s := newService(t)
	var authority *httptest.Server
	authority = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Replay-Nonce", "once")
		if r.URL.Path != "/dir" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"type": "urn:ietf:params:acme:error:unauthorized", "detail": "no more accounts"}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.ReplaceAll(`{"newNonce": "@/nonce", "newAccount": "@/account", "newOrder": "@/order"}`,
			"@", authority.URL))
	}))
	defer authority.Close()
	s.write("conf/roots.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate().Raw})))
	const without = `listen = ["127.0.0.1:0"]
landlock = "on"
[[site]]
root = "public"
`
	with := fmt.Sprintf(`acme-directory = "%s/dir"
acme-roots = "conf/roots.pem"
acme-storage = "state/acme"
%sacme = true
names = ["localhost"]
`, authority.URL, without)
	s.write("state/keep", "")
	s.write("conf/sites.toml", with)
	s.start("serve", "--config", "conf/sites.toml")
	s.await("no more accounts") // and so the authority was reached
	folder := "state/acme/" + strings.NewReplacer("https://", "", ":", "-").Replace(authority.URL) + "-dir/"
	if info, err := os.Stat(s.path(folder + "account-key.pem")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the account's key: %v, %v", info, err)
	}
	text := ""
	for _, name := range []string{"localhost-key.pem", "localhost.pem"} {
		part, err := os.ReadFile(s.path(name))
		if err != nil {
			t.Fatal(err)
		}
		text += string(part)
	}
	s.write(folder+"certificates/new", text)
	if err := os.Rename(s.path(folder+"certificates/new"), s.path(folder+"certificates/localhost.pem")); err != nil {
		t.Fatal(err)
	}
	s.await("certificate replaced")
	serves := func() {
		t.Helper()
		if err := get(s.client("tcp", s.address, false, false), "https://localhost/"); err != nil {
			t.Error(err)
		}
	}
	serves()
	s.restart()
	serves()
	s.stop("no more accounts")

	s = newService(t)
	s.write("conf/roots.pem", "")
	s.write("state/acme/keep", "")
	s.write("conf/sites.toml", without+"cert = \"localhost.pem\"\nkey = \"localhost-key.pem\"\n")
	s.start("serve", "--config", "conf/sites.toml")
	s.write("conf/sites.toml", with)
	s.signal(syscall.SIGHUP)
	s.await("landlock: the process may not write in " + s.path("state/acme"))
	s.notified("READY=1")
	s.signal(syscall.SIGUSR2)
	s.await("restart failed, this process goes on")
	s.stop("may not write", "restart failed")
}
