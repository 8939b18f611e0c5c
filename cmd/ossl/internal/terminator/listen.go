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

// A place is an address to listen on.
type place struct {
	kind, text       string // as in the Config
	network, address string // as of package net; "" for the sockets from systemd
	local            bool   // other machines must not reach it
}

// compileListen checks and parses all addresses to listen on.
func (c *Config) compileListen() (places []place, err error) {
	if len(c.Listen) == 0 {
		return nil, errors.New("no address to listen on")
	}
	for _, text := range c.Listen {
		places = append(places, place{kind: placeOfTLS, text: text, local: c.Plain && !c.InsecureListen})
	}
	for _, text := range c.Redirect {
		places = append(places, place{kind: placeOfRedirect, text: text})
	}
	if c.Admin != "" {
		places = append(places, place{kind: placeOfAdmin, text: c.Admin})
	}
	for i := range places {
		if err := places[i].parse(); err != nil {
			return nil, fmt.Errorf("%s: %w", places[i].kind, err)
		}
	}
	return places, nil
}

// parse parses the text. An IP address is of its own version alone: with "tcp", package net takes both
// 0.0.0.0 and [::] for all addresses of both versions.
func (p *place) parse() error {
	if p.text == fromSystemd && p.kind != placeOfAdmin {
		if p.kind == placeOfRedirect {
			return errors.New("the sockets from systemd are for TLS; give an address")
		}
		return nil
	}
	if path, ok := strings.CutPrefix(p.text, "unix:"); ok {
		if path == "" {
			return fmt.Errorf("%q has no path", p.text)
		}
		p.network, p.address = "unix", path
		return nil
	}
	host, _, err := net.SplitHostPort(p.text)
	if err != nil {
		return fmt.Errorf("%q is neither HOST:PORT nor unix:PATH", p.text)
	}
	p.network, p.address = "tcp", p.text
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().Is4() {
		p.network = "tcp4"
	} else if err == nil {
		p.network = "tcp6"
	}
	return nil
}

// listenAll listens on all addresses, or on none. Sockets that were handed over are used as they are.
func listenAll(places []place, in *Inherited) (sockets []socket, err error) {
	for _, p := range places {
		place := p.kind + " " + p.text
		found := in.take(place, p.network == "")
		sockets = append(sockets, found...)
		var err error
		if len(found) == 0 {
			var more []net.Listener
			more, err = p.listen()
			for _, l := range more {
				found = append(found, socket{l, place, true})
			}
			sockets = append(sockets, found...)
		}
		for _, s := range found {
			if err == nil && p.local {
				err = checkLocal(s.listener)
			}
		}
		if err != nil {
			abandonAll(sockets)
			return nil, err
		}
	}
	return sockets, nil
}

// listen listens there. A Unix socket that a server has left behind is replaced.
func (p place) listen() ([]net.Listener, error) {
	if p.network == "" {
		return inherited()
	}
	l, err := net.Listen(p.network, p.address)
	if err == nil || p.network != "unix" || !isStale(p.address) {
		return one(l, err)
	}
	if err := os.Remove(p.address); err != nil {
		return nil, fmt.Errorf("listen unix %s: %w", p.address, err)
	}
	return one(net.Listen(p.network, p.address))
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
