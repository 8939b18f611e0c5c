package terminator

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
)

// fromSystemd is the address that stands for the sockets that the process was started with:
// sd_listen_fds(3).
const fromSystemd = "systemd"

// A socket is a listener with its place in the configuration.
type socket struct {
	listener net.Listener
	place    string
	made     bool // by this process
}

// The kinds of places.
const (
	placeOfTLS      = "listen"
	placeOfRedirect = "redirect"
	placeOfAdmin    = "admin"
)

// is reports whether a socket is in a place of a kind.
func (s socket) is(kind string) bool { return strings.HasPrefix(s.place, kind+" ") }

// listenAll listens on all addresses, or on none. Sockets that were handed over are used as they are.
func listenAll(c *Config, in *Inherited) (sockets []socket, err error) {
	type place struct{ kind, address string }
	var places []place
	for _, address := range c.Listen {
		places = append(places, place{placeOfTLS, address})
	}
	for _, address := range c.Redirect {
		places = append(places, place{placeOfRedirect, address})
	}
	if c.Admin != "" {
		places = append(places, place{placeOfAdmin, c.Admin})
	}
	for _, p := range places {
		address, place := p.address, p.kind+" "+p.address
		found := in.take(place, address == fromSystemd)
		sockets = append(sockets, found...)
		var err error
		if len(found) == 0 {
			var more []net.Listener
			more, err = listen(address)
			for _, l := range more {
				found = append(found, socket{l, place, true})
			}
			sockets = append(sockets, found...)
		}
		for _, s := range found {
			if err == nil && p.kind == placeOfTLS {
				err = c.checkListener(s.listener)
			}
		}
		if err != nil {
			abandonAll(sockets)
			return nil, err
		}
	}
	return sockets, nil
}

// listen listens on an address. A Unix socket that a server has left behind is replaced.
func listen(address string) ([]net.Listener, error) {
	if address == fromSystemd {
		return inherited()
	}
	path, ok := cutUnix(address)
	if !ok {
		return one(net.Listen(networkOf(address), address))
	}
	l, err := net.Listen("unix", path)
	if err == nil || !isStale(path) {
		return one(l, err)
	}
	if err := os.Remove(path); err != nil {
		return nil, fmt.Errorf("listen unix %s: %w", path, err)
	}
	return one(net.Listen("unix", path))
}

// networkOf returns the network of an address to listen on: an IP address is of its own version alone.
// With "tcp", package net takes both 0.0.0.0 and [::] for all addresses of both versions.
func networkOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "tcp"
	case ip.Unmap().Is4():
		return "tcp4"
	}
	return "tcp6"
}

func one(l net.Listener, err error) ([]net.Listener, error) {
	if err != nil {
		return nil, err
	}
	return []net.Listener{l}, nil
}

// inherited returns the sockets that the process was started with.
func inherited() ([]net.Listener, error) {
	listeners, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("listen systemd: %w", err)
	}
	if len(listeners) == 0 {
		return nil, errors.New("listen systemd: the process was started without sockets, such as those of a .socket unit")
	}
	if i := slices.Index(listeners, nil); i >= 0 {
		return slices.DeleteFunc(listeners, func(l net.Listener) bool { return l == nil }),
			fmt.Errorf("listen systemd: socket %d is not one that accepts connections", i+1)
	}
	return listeners, nil
}

func cutUnix(address string) (path string, ok bool) { return strings.CutPrefix(address, "unix:") }

// isStale reports whether a path is a socket on which nobody listens any more.
func isStale(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return false
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
