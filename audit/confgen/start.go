package confgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Process is a server that Start has started.
type Process struct {
	Address string // host:port of the TLS listener
	cmd     *exec.Cmd
	out     *bounded
	ended   chan struct{}
}

// A StartError reports that a server refused its configuration, or didn't start with it.
type StartError struct {
	Server string
	Output string // of the server, without the folder's name
}

func (e *StartError) Error() string {
	return e.Server + " doesn't start with this configuration: " + e.Output
}

// fileName is the name of the configuration in the folder.
func fileName(kind string) string {
	switch kind {
	case "caddy":
		return "Caddyfile"
	case "postgresql":
		return "postgresql.conf"
	case "go":
		return "server.go"
	}
	return kind + ".conf"
}

// Write writes the configuration, and the files that the server needs with it, into the folder
// Layout.State. It returns the file's path.
func (c *Config) Write(ctx context.Context) (string, error) {
	dir := c.Layout.State
	if dir == "" {
		return "", errors.New("confgen: Layout.State is empty")
	}
	file := filepath.Join(dir, fileName(c.Server.Kind))
	if err := os.WriteFile(file, []byte(c.Text()), 0o600); err != nil {
		return "", err
	}
	if c.Server.Kind == "postgresql" {
		if err := c.makeDatabase(ctx); err != nil {
			return "", err
		}
	}
	return file, own(c.Server, dir)
}

func (c *Config) makeDatabase(ctx context.Context) error {
	dir := c.Layout.State
	data := filepath.Join(dir, "data")
	if _, err := os.Stat(data); err == nil {
		return nil
	}
	if err := own(c.Server, dir); err != nil {
		return err
	}
	initdb := c.Server
	initdb.Program = filepath.Join(filepath.Dir(c.Server.Program), "initdb")
	cmd := initdb.command(ctx, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C")
	if out, err := run(ctx, cmd, c.Server, dir); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, clean(out, dir))
	}
	return nil
}

// patience is how long a server may take to check its configuration, and to start.
var patience = 20 * time.Second

// Check makes the server check the configuration. Its error is a *StartError if the server refuses it, or
// doesn't come to an end.
func (c *Config) Check(ctx context.Context, file string) error {
	dir := c.Layout.State
	var args []string
	switch c.Server.Kind {
	case "nginx":
		args = []string{"-t", "-p", dir, "-c", file}
	case "apache":
		args = []string{"-t", "-d", dir, "-f", file}
	case "haproxy":
		args = []string{"-c", "-f", file}
	case "lighttpd":
		args = append([]string{"-tt", "-f", file}, c.moduleArgs()...)
	case "caddy":
		args = []string{"validate", "--adapter", "caddyfile", "--config", file}
	case "postgresql":
		args = []string{"-C", "ssl_ciphers", "-D", filepath.Join(dir, "data"), "-c", "config_file=" + file}
	case "go":
		args = []string{"build", "-o", filepath.Join(dir, "server"), file}
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if c.Server.Kind != "go" { // a compiler with an empty cache takes longer
		limited, cancel = context.WithTimeout(ctx, patience)
	}
	defer cancel()
	cmd := c.Server.command(limited, args...)
	out, err := run(limited, cmd, c.Server, dir)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		return &StartError{c.Server.Kind, fmt.Sprintf("its check takes longer than %v: %s", patience, clean(out, dir))}
	case errors.As(err, new(*exec.ExitError)):
		return &StartError{c.Server.Kind, clean(out, dir)}
	}
	return err
}

func (c *Config) moduleArgs() []string {
	if c.Layout.Modules == "" {
		return nil
	}
	return []string{"-m", c.Layout.Modules}
}

// Start starts the server in the foreground, without root's rights, and waits until it accepts
// connections.
func (c *Config) Start(ctx context.Context, file string) (*Process, error) {
	dir := c.Layout.State
	s := c.Server
	var args []string
	switch s.Kind {
	case "nginx":
		args = []string{"-p", dir, "-c", file}
	case "apache":
		args = []string{"-D", "FOREGROUND", "-d", dir, "-f", file}
	case "haproxy":
		args = []string{"-db", "-f", file}
	case "lighttpd":
		args = append([]string{"-D", "-f", file}, c.moduleArgs()...)
	case "caddy":
		args = []string{"run", "--adapter", "caddyfile", "--config", file}
	case "postgresql":
		args = []string{"-D", filepath.Join(dir, "data"), "-c", "config_file=" + file}
	case "go":
		s.Program, s.Prefix = filepath.Join(dir, "server"), nil
	}
	cmd := s.command(context.WithoutCancel(ctx), args...)
	p := &Process{Address: net.JoinHostPort(c.Layout.Address, itoa(c.Layout.Port)), cmd: cmd,
		out: &bounded{left: 1 << 16}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.WaitDelay = p.out, p.out, dir, time.Second
	cmd.Env = environment(s, dir)
	if err := confine(cmd, c.Server); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		cmd.Wait()
		close(p.ended)
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.Address)
		if err == nil {
			return p, conn.Close()
		}
		select {
		case <-p.ended:
			return nil, &StartError{s.Kind, clean(p.out.String(), dir)}
		case <-ctx.Done():
			p.Stop()
			return nil, &StartError{s.Kind, "it accepts no connections: " + clean(p.out.String(), dir)}
		case <-time.After(20 * time.Millisecond): // there is nothing else to wait for: the port is another process's
		}
	}
}

// Ended returns a channel that is closed when the server has exited.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Stop stops the server and all processes that it has started, and waits until the server has exited.
func (p *Process) Stop() {
	kill(p.cmd, false)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
	}
	kill(p.cmd, true) // children that are left
	<-p.ended
}

// run runs a program until it exits.
func run(ctx context.Context, cmd *exec.Cmd, s Server, dir string) (string, error) {
	out := &bounded{left: 1 << 16}
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.WaitDelay = out, out, dir, time.Second
	cmd.Env = environment(s, dir)
	if s.Kind != "go" { // the compiler wants its cache
		if err := confine(cmd, s); err != nil {
			return "", err
		}
	}
	cmd.Cancel = func() error { kill(cmd, true); return nil }
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String(), err
}

// environment returns a small environment, so that servers behave the same for all users.
func environment(s Server, dir string) []string {
	env := []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir, "TMPDIR=" + dir, "LC_ALL=C", "XDG_DATA_HOME=" + dir,
		"XDG_CONFIG_HOME=" + dir}
	if s.Kind == "go" {
		// Without a module, "off" would stand for an old Go's defaults: TLS 1.0, and no ML-KEM.
		env = append(os.Environ(), "GO111MODULE=on", "GOWORK=off")
	}
	return env
}

// clean makes one line of a server's output, without the names of our folder.
func clean(out, dir string) string {
	out = strings.ReplaceAll(out, dir+"/", "")
	var lines []string
	for l := range strings.SplitSeq(out, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if len(lines) > 12 {
		lines = lines[len(lines)-12:]
	}
	return strings.Join(lines, "; ")
}

// IsRefused reports whether an error is a *StartError: the server refused its configuration, or didn't
// start with it.
func IsRefused(err error) bool { return errors.As(err, new(*StartError)) }
