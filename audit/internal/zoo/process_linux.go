package zoo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A tree is a folder into which a release's servers were unpacked.
type tree struct {
	release string // "bookworm"
	folder  string
}

// program returns the path of a program, which may be in several folders.
func (t tree) program(name string) (string, error) {
	for _, dir := range []string{"usr/sbin", "usr/bin", "usr/lib/postgresql/*/bin"} {
		if found, _ := filepath.Glob(filepath.Join(t.folder, dir, name)); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("%s has no program %s", t.folder, name)
}

// command returns a command that starts a program of the tree with the tree's libraries. The user
// isn't root for those programs that refuse to run for root.
func (t tree) command(ctx context.Context, r *Running, user bool, name string, args ...string) (*exec.Cmd, error) {
	path, err := t.program(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(t.folder, "run"), append([]string{path}, args...)...)
	if name == "caddy" { // it is static
		cmd = exec.CommandContext(ctx, path, args...)
	}
	cmd.Dir = r.Folder
	cmd.Env = append(os.Environ(), "HOME="+r.Folder, "XDG_DATA_HOME="+r.Folder, "XDG_CONFIG_HOME="+r.Folder, "LC_ALL=C",
		"OPENSSL_CONF=/dev/null", "APACHE_RUN_DIR="+r.Folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if user && os.Geteuid() == 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
	}
	return cmd, nil
}

// start starts a program that serves, and waits until it accepts connections at the last address.
func (t tree) start(r *Running, user bool, name string, args ...string) error {
	cmd, err := t.command(context.Background(), r, user, name, args...)
	if err != nil {
		return err
	}
	path := filepath.Join(r.Folder, fmt.Sprintf("log-%d", len(r.Addresses)))
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	stdin, err := cmd.StdinPipe() // some end if their input does
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	r.onClose(func() error {
		defer stdin.Close()
		return end(cmd.Process.Pid, ended)
	})
	return t.ready(r, ended, path)
}

// end kills a process and the processes that it started.
func end(pid int, ended <-chan struct{}) error {
	syscall.Kill(-pid, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
	}
	syscall.Kill(-pid, syscall.SIGKILL)
	select {
	case <-ended:
		return nil
	case <-time.After(3 * time.Second):
		return fmt.Errorf("process %d can't be ended", pid)
	}
}

func (t tree) ready(r *Running, ended <-chan struct{}, log string) error {
	address := r.Addresses[len(r.Addresses)-1].String()
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(log)
			return fmt.Errorf("it ended: %s", bytes.TrimSpace(text))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("it doesn't accept connections"), err)
		}
	}
}

// reserve finds a port that is free on a host of loopback, and adds the address.
func (r *Running) reserve(host string) (port string, err error) {
	l, err := r.listener(host)
	if err != nil {
		return "", err
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// write writes a file for a server, and returns its path. Words in the text that begin with @ stand
// for values.
func (r *Running) write(name, text string, values ...string) (string, error) {
	path := filepath.Join(r.Folder, name)
	text = strings.NewReplacer(append(values, "@dir", r.Folder)...).Replace(text)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// pem writes the certificate, the key, and both in one file.
func (r *Running) pem(id *identity) error {
	r.use(id)
	chain, key := string(id.leaf.PEM(id.inter)), string(id.leaf.KeyPEM())
	var all error
	for name, text := range map[string]string{
		"cert.pem": chain, "key.pem": key, "both.pem": chain + key, "leaf.pem": string(id.leaf.PEM()),
		"inter.pem": string(id.inter.PEM()),
	} {
		_, err := r.write(name, text)
		all = errors.Join(all, err)
	}
	return all
}
