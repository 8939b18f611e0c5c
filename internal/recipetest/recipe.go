package recipetest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A Recipe is a client and its server. The server asks for the client's certificate.
type Recipe struct {
	Client, Server string // as in the table

	// Start starts the server. It serves the connections of site.Listener, or starts a program and
	// calls site.Forward.
	Start func(t *testing.T, site *Site)

	// Use connects to addr, exchanges data and closes the connection. Its clients use config as it is.
	Use func(ctx context.Context, config *tls.Config, addr string) error

	// Others is set if the server has connections that aren't the client's, to itself for example.
	Others bool
}

// Run runs the recipe with TLS 1.2 and TLS 1.3, and notes the outcomes for the table.
func (r Recipe) Run(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Skipped() {
			noteSkipped()
		}
	})
	site := newSite(t)
	r.Start(t, site)
	for _, version := range tlstest.Versions {
		t.Run(tlstest.VersionName(version), func(t *testing.T) {
			refusesStrangers(t, site.Addr, version)
			note(r, version, r.visits(t, site, version))
		})
	}
}

// visits uses the client twice, and reports whether the server has resumed a session.
func (r Recipe) visits(t *testing.T, site *Site, version uint16) (resumed bool) {
	t.Helper()
	config := clientConfig(version)
	config.Certificates = []tls.Certificate{newCertificate("client")}
	config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	counted, seen, failed := handshakes(), site.tap.hellos(), failures()
	for visit := range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), tlstest.Patience)
		err := r.Use(ctx, config, site.Addr)
		cancel()
		if err != nil {
			t.Fatalf("visit %d: %v", visit+1, err)
		}
	}
	// On the client's side ossl counts its handshakes, so all of these connections are its own. A client that
	// is closed may break one off, when the server has answered.
	var client, server counts
	var broken int
	for late := time.Now().Add(tlstest.Patience); ; <-time.After(10 * time.Millisecond) {
		server = site.tap.hellos().minus(seen)
		client, broken = handshakes().minus(counted), failures()-failed
		if r.Others || server.count <= client.count+broken || time.Now().After(late) {
			break
		}
	}
	if client.count < 2 || client.count > server.count || server.count > client.count+broken && !r.Others {
		t.Errorf("ossl counts %d handshakes of clients, and %d that failed, the server %d; want the same, and two or more",
			client.count, broken, server.count)
	}
	if client.resumed > server.resumed || server.resumed > client.resumed+broken {
		t.Errorf("ossl counts %d resumptions of clients, and %d handshakes that failed, the server %d", client.resumed, broken,
			server.resumed)
	}
	if client.versions[version] != client.count {
		t.Errorf("versions %v; want only %#x", client.versions, version)
	}
	return server.resumed > 0
}

// refusesStrangers fails the test unless the server refuses a client without a certificate, by an
// alert.
func refusesStrangers(t *testing.T, addr string, version uint16) {
	t.Helper()
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: tlstest.Patience}, Config: clientConfig(version)}
	conn, err := dialer.DialContext(t.Context(), "tcp", addr)
	if err == nil { // in TLS 1.3 the client's handshake succeeds before the server has accepted or refused the client
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(tlstest.Patience))
		_, err = conn.Read(make([]byte, 1))
	}
	var alert *net.OpError
	if !errors.As(err, &alert) || alert.Op != "remote error" {
		t.Errorf("a client without a certificate got %v; want an alert", err)
	}
}

// counts are of handshakes.
type counts struct {
	count, resumed int
	versions       map[uint16]int
}

func (c *counts) add(version uint16, resumed bool, n int) {
	if c.versions == nil {
		c.versions = map[uint16]int{}
	}
	c.count += n
	c.versions[version] += n
	if resumed {
		c.resumed += n
	}
}

func (c counts) minus(earlier counts) counts {
	d := counts{count: c.count - earlier.count, resumed: c.resumed - earlier.resumed, versions: map[uint16]int{}}
	for v, n := range c.versions {
		d.versions[v] = n - earlier.versions[v]
	}
	return d
}

// failures counts the handshakes of this process's clients that have failed.
func failures() (n int) {
	for _, f := range ossl.ProcessStats().Failures {
		if !f.Server {
			n += int(f.Count)
		}
	}
	return n
}

// handshakes counts the handshakes of this process's clients.
func handshakes() (c counts) {
	for _, h := range ossl.ProcessStats().Handshakes {
		if !h.Server {
			c.add(h.Version, h.Resumption != ossl.NotResumed, int(h.Count))
		}
	}
	return c
}
