//go:build cgo || ossl_nocgo

package libssl_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"testing"
	"time"

	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestNoIdentityNoResumption: a server whose certificate has no identity set resumes no session,
// and its sessions are never resumed.
func TestNoIdentityNoResumption(t *testing.T) {
	load(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, chosen := range []bool{false, true} {
			key := libssl.TicketKey{Name: [16]byte{1}, Cipher: make([]byte, 32), MAC: make([]byte, 32)}
			cert := tlstest.New(tlstest.Options{})
			cache := tls.NewLRUClientSessionCache(1)
			visit := func(identity byte) bool {
				pkcs8, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
				if err != nil {
					t.Fatal(err)
				}
				cred, err := libssl.NewCredential(false, cert.Certificate, pkcs8, nil, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if identity != 0 {
					cred.SetIdentity([32]byte{31: identity})
				}
				cfg := &libssl.ContextConfig{MinVersion: version, MaxVersion: version, SecurityLevel: -1, Tickets: true,
					WantHello: chosen}
				if !chosen {
					cfg.Credential = cred
				}
				ctx, err := libssl.NewContext(cfg)
				if err != nil {
					t.Fatal(err)
				}
				if !ctx.SetTicketKeys([]libssl.TicketKey{key}) {
					t.Fatal("no ticket keys")
				}
				return resumedAt(t, ctx, cred, cache)
			}
			for i, step := range []struct {
				identity byte
				resumes  bool
			}{{1, false}, {1, true}, {0, false}, {0, false}, {1, false}, {1, true}, {2, false}} {
				if got := visit(step.identity); got != step.resumes {
					t.Errorf("%s, chosen %t: visit %d resumed: %t", tls.VersionName(version), chosen, i, got)
				}
			}
		}
	}
}

// resumedAt makes a crypto/tls client connect to a server, and reports whether the server resumes.
func resumedAt(t *testing.T, ctx *libssl.Context, cred *libssl.Credential, cache tls.ClientSessionCache) bool {
	t.Helper()
	ours, theirs := tlstest.Buffered()
	defer ours.Close()
	limit := time.Now().Add(time.Minute)
	ours.SetDeadline(limit)
	theirs.SetDeadline(limit)
	done := make(chan error, 1)
	go func() {
		defer theirs.Close()
		peer := tls.Client(theirs, &tls.Config{RootCAs: tlstest.CA().Pool(), ServerName: tlstest.ServerName,
			ClientSessionCache: cache})
		_, err := peer.Write([]byte{1})
		if err == nil {
			_, err = io.ReadFull(peer, make([]byte, 1)) // and the tickets before it
		}
		done <- err
	}()
	out := make([]byte, 1<<15)
	conn, _, err := ctx.Start(true, true, "", nil, nil, out)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Free(false, nil)
	e := &endpoint{conn: conn, wire: ours, cred: cred, out: out}
	if err := e.handshake(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.read(); err != nil {
		t.Fatal(err)
	}
	if err := e.write(2); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return e.facts.Resumed
}

// TestResumeAbandoned frees servers that have asked whether a session may be resumed: libssl must
// fail instead of continuing with a full handshake, in which it would sign.
func TestResumeAbandoned(t *testing.T) {
	load(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cert := tlstest.New(tlstest.Options{})
		pkcs8, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		cred, err := libssl.NewCredential(false, cert.Certificate, pkcs8, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		cred.SetIdentity([32]byte{1})
		ctx, err := libssl.NewContext(&libssl.ContextConfig{MinVersion: version, MaxVersion: version, SecurityLevel: -1, Tickets: true,
			RequestClientCert: true, Credential: cred})
		if err != nil {
			t.Fatal(err)
		}
		if !ctx.SetTicketKeys([]libssl.TicketKey{{Cipher: make([]byte, 32), MAC: make([]byte, 32)}}) {
			t.Fatal("no ticket keys")
		}
		cache := tls.NewLRUClientSessionCache(1)
		if resumedAt(t, ctx, nil, cache) {
			t.Fatal("resumed without a session")
		}
		ours, theirs := tlstest.Buffered()
		go func() {
			defer theirs.Close()
			_ = tls.Client(theirs, &tls.Config{RootCAs: tlstest.CA().Pool(), ServerName: tlstest.ServerName,
				ClientSessionCache: cache}).Handshake()
		}()
		out := make([]byte, 1<<15)
		conn, _, err := ctx.Start(true, true, "", nil, nil, out)
		if err != nil {
			t.Fatal(err)
		}
		e := &endpoint{conn: conn, wire: ours, out: out}
		status := libssl.WantRead
		for status == libssl.WantRead {
			if err := e.fill(); err != nil {
				t.Fatal(err)
			}
			s := conn.Handshake(e.unread, e.out, &e.facts)
			e.unread, status = e.unread[s.Consumed:], s.Status
		}
		if status != libssl.NeedResume {
			t.Fatalf("%s: status %d, want NeedResume", tls.VersionName(version), status)
		}
		const alert = 5 + 2
		if n := conn.Free(false, nil).N; n > alert {
			t.Errorf("%s: libssl made %d bytes", tls.VersionName(version), n)
		}
		ours.Close()
	}
}
