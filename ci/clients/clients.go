package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed programs
var programs embed.FS

// A client is a program that visits HTTPS servers, and a description of it.
type client struct {
	name    string
	tools   []string // the programs it needs, in $PATH
	banner  []string // the command that prints its version
	ids     bool     // resumes TLS 1.2 by session ID
	tickets bool     // resumes TLS 1.2 by ticket
	tls13   bool     // resumes TLS 1.3

	hundreds bool // is in the second table
	lacks13  bool // doesn't know TLS 1.3
	pairs    bool // makes reused pairs of connections, of which the second offers the first one's session

	prepare func(ctx context.Context, c *client) error
	visit   func(ctx context.Context, v *visit) (told, error)

	dir     string // for prepare's files
	version string
}

// A visit is a task for a client: fresh connections with a new session each, then one, then reused
// ones that offer its session.
type visit struct {
	port, dir, version string
	fresh, reused      int
}

// told is a client's report on its visit: the time that its connections took, for those that begin
// anew and those that may resume, and how many did resume.
type told struct {
	fresh, reused time.Duration
	resumed       int
}

// unknown is the number from a client that doesn't know whether a connection was resumed.
const unknown = -1

func (c *client) versions() []string {
	if c.lacks13 {
		return []string{"1.2"}
	}
	return []string{"1.2", "1.3"}
}

// resumes reports whether the client and a kind of server have a way of resuming in common. asked
// is false for the tickets that crypto/tls sends in TLS 1.2, since clients handle them differently:
// Java 17 and wolfSSL 5.5 never resume with them, Ruby 3.1 every second time.
func (c *client) resumes(k kind, version string) (does, asked bool) {
	switch {
	case version == "1.3":
		return c.tls13, true
	case k == control:
		return false, !c.tickets
	}
	return c.tickets && k != cacheAlone || c.ids && k != tickets, true
}

// expect returns which connections of a visit offer a session, if there is one to be had.
func (c *client) expect(v *visit) []bool {
	if c.pairs {
		return slices.Repeat([]bool{false, true}, v.reused)
	}
	return append(make([]bool, v.fresh+1), slices.Repeat([]bool{true}, v.reused)...)
}

type absence struct {
	name string
	err  error
}

// findClients returns the clients that can run here.
func findClients(ctx context.Context, dir string, only []string) (found []*client, missing []absence, err error) {
	for _, name := range only {
		if !slices.ContainsFunc(clients, func(c *client) bool { return c.name == name }) {
			return nil, nil, fmt.Errorf("there is no client %q", name)
		}
	}
	for _, c := range clients {
		if len(only) > 0 && !slices.Contains(only, c.name) {
			continue
		}
		c.dir = filepath.Join(dir, c.name)
		if err := c.find(ctx); err != nil {
			missing = append(missing, absence{c.name, err})
			continue
		}
		found = append(found, c)
	}
	return found, missing, nil
}

// find looks for the programs that the client needs and prepares it, in a folder of its own.
func (c *client) find(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, visitTimeout)
	defer cancel()
	for _, tool := range c.tools {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	files, err := fs.Sub(programs, "programs")
	if err != nil {
		return err
	}
	if err := os.CopyFS(c.dir, files); err != nil {
		return err
	}
	if err := writeCA(c.dir); err != nil {
		return err
	}
	if c.prepare != nil {
		if err := c.prepare(ctx, c); err != nil {
			return err
		}
	}
	if c.banner == nil {
		c.version = "of this build"
		return nil
	}
	c.version = "version unknown" // no reason not to run
	if out, err := command(ctx, c.dir, "", c.banner...); err == nil {
		c.version, _, _ = strings.Cut(strings.TrimSpace(out), "\n")
	}
	return nil
}

// command runs a program and returns its output. The program sees no proxy and no settings meant
// for the libssl under test.
func command(ctx context.Context, dir, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = hostEnv()
	cmd.Stdin = strings.NewReader(input)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return string(out), nil
}

func hostEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		switch strings.ToUpper(name) {
		case "LD_LIBRARY_PATH", "LD_PRELOAD", "OPENSSL_MODULES", "OPENSSL_CONF", "OSSL_LIBRARY",
			"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "JAVA_TOOL_OPTIONS", "NODE_OPTIONS", "RUBYOPT":
			return true
		}
		return false
	})
}
