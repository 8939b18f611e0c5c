//go:build cgo || ossl_nocgo

package watch

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

// replace replaces a file by renaming.
func replace(t *testing.T, name string, text []byte) {
	t.Helper()
	next := filepath.Join(filepath.Dir(name), ".next")
	if err := errors.Join(os.WriteFile(next, text, 0o600), os.Rename(next, name)); err != nil {
		t.Fatal(err)
	}
}

func pemOf(kind string, ders ...[]byte) (text []byte) {
	for _, der := range ders {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
	}
	return text
}

// started starts a Watch that checks often, and returns its events.
func started(t *testing.T, load func() error, paths ...string) (*ossl.Watch, <-chan error) {
	t.Helper()
	w, events := ossl.NewWatch(load, paths...), make(chan error, 10)
	w.OnEvent = func(e ossl.WatchEvent) { events <- e.Err }
	if err := w.Start(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w, events
}

// await waits for the event that new contents are used.
func await(t *testing.T, events <-chan error) {
	t.Helper()
	if err := <-events; err != nil {
		t.Fatal(err)
	}
}

// awaitRefusal waits for the event that they are not.
func awaitRefusal(t *testing.T, events <-chan error) {
	t.Helper()
	if err := <-events; err == nil {
		t.Fatal("garbage is used")
	}
}

// roots returns a function that makes a Context with the certificates in a file.
func roots(file string, current *atomic.Pointer[ossl.Context], config func(*x509.CertPool) *tls.Config,
	opts ...ossl.Option) func() error {
	return func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s: no certificates", file)
		}
		ctx, err := ossl.NewContext(config(pool), opts...)
		if err == nil {
			current.Store(ctx)
		}
		return err
	}
}

// echo sends a byte in both directions.
func echo(t *testing.T, a, b net.Conn) {
	t.Helper()
	for range 2 {
		buf := make([]byte, 1)
		if _, err := a.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Read(buf); err != nil {
			t.Fatal(err)
		}
		a, b = b, a
	}
}

// shake makes a connection, and lets the client read the first data, with the tickets before it.
func shake(client, server *ossl.Context) (c, s *ossl.Conn, err error) {
	a, b := tlstest.Buffered()
	c, s = client.Client(a, tlstest.ServerName), server.Server(b)
	served := make(chan error, 1)
	go func() {
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte{1})
		} else {
			_ = s.Close()
		}
		served <- err
	}()
	err = c.Handshake()
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	} else {
		_ = c.Close()
	}
	return c, s, errors.Join(err, <-served)
}

// TestRoots: the roots of a client, and those of a server, change. Handshakes after that, also those that
// could resume a session, are judged by the new ones, and connections from before go on.
func TestRoots(t *testing.T) {
	for _, judge := range []tlstest.Role{tlstest.ClientRole, tlstest.ServerRole} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(fmt.Sprint(judge, " ", tls.VersionName(version)), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "roots.pem")
				good, other := pemOf("CERTIFICATE", tlstest.CA().Cert.Raw), pemOf("CERTIFICATE", tlstest.OtherCA().Cert.Raw)
				replace(t, file, good)
				client := &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(8),
					MaxVersion: version}
				tlstest.SendCertificate(tlstest.ClientCert(tlstest.P256))(client)
				server := &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert,
					Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)}, MaxVersion: version}
				ring, err := session.NewRing(session.NewTicketKey())
				if err != nil {
					t.Fatal(err)
				}
				keys := ossl.WithTicketKeys(ring) // by which another server's Context resumes too
				clients, servers := new(atomic.Pointer[ossl.Context]), new(atomic.Pointer[ossl.Context])
				loadClient := roots(file, clients, func(pool *x509.CertPool) *tls.Config { client.RootCAs = pool; return client })
				loadServer := roots(file, servers, func(pool *x509.CertPool) *tls.Config { server.ClientCAs = pool; return server }, keys)
				if err := errors.Join(loadClient(), loadServer()); err != nil {
					t.Fatal(err)
				}
				load := loadClient
				if judge == tlstest.ServerRole {
					load = loadServer
				}
				_, events := started(t, load, file)
				connect := func() (c, s *ossl.Conn, err error) {
					return shake(clients.Load(), servers.Load())
				}
				var c, s *ossl.Conn
				for i := range 2 {
					var err error
					if c, s, err = connect(); err != nil || c.ConnectionState().DidResume != (i == 1) {
						t.Fatalf("resumed %t, %v", c.ConnectionState().DidResume, err)
					}
				}
				replace(t, file, other)
				await(t, events)
				for range 2 {
					var unknown x509.UnknownAuthorityError
					if _, _, err := connect(); !errors.As(err, &unknown) {
						t.Errorf("after the change: %v", err)
					}
				}
				echo(t, c, s)
				replace(t, file, []byte("garbage"))
				awaitRefusal(t, events)
				replace(t, file, good)
				await(t, events)
				if _, _, err := connect(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestCRLs: a revoked client is refused when the list is in the folder, also with its session. Garbage
// and an older list are refused, and the list stays.
func TestCRLs(t *testing.T) {
	folder, ca, leaf := t.TempDir(), tlstest.CA(), tlstest.ClientCert(tlstest.P256)
	file := filepath.Join(folder, "ca.crl")
	replace(t, file, ca.List(1, nil))
	lists, err := ossl.LoadCRLs(ossl.CRLFiles(folder))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)}}
	server, err := ossl.NewContext(config, ossl.WithCRLs(lists), ossl.WithCRLHardFail())
	if err != nil {
		t.Fatal(err)
	}
	client, err := ossl.NewContext(&tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{leaf},
		ClientSessionCache: tls.NewLRUClientSessionCache(8)})
	if err != nil {
		t.Fatal(err)
	}
	connect := func() error {
		_, _, err := shake(client, server)
		return err
	}
	_, events := started(t, lists.Reload, folder)
	if err := connect(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		list []byte
		used bool
	}{
		{"revoked", ca.List(3, nil, leaf.Leaf), true},
		{"garbage", []byte("garbage"), false},
		{"older", ca.List(2, nil), false},
		{"another issuer's", tlstest.OtherCA().List(9, nil), true}, // the list in place stays
	} {
		replace(t, file, step.list)
		if step.used {
			await(t, events)
		} else {
			awaitRefusal(t, events)
		}
		var revoked *ossl.RevocationError
		if err := connect(); !errors.As(err, &revoked) || revoked.State != ossl.CertificateRevoked {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}

// TestEarlyCRL: a list that isn't in force yet is loaded when it is.
func TestEarlyCRL(t *testing.T) {
	file, ca := filepath.Join(t.TempDir(), "ca.crl"), tlstest.CA()
	replace(t, file, ca.List(1, nil))
	lists, err := ossl.LoadCRLs(ossl.CRLFiles(file))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ossl.NewContext(&tls.Config{RootCAs: ca.Pool()}, ossl.WithCRLs(lists), ossl.WithCRLHardFail()); err != nil {
		t.Fatal(err) // it verifies the list
	}
	_, events := started(t, lists.Reload, file)
	replace(t, file, ca.List(2, func(l *x509.RevocationList) { l.ThisUpdate = time.Now().Add(2 * time.Second) }))
	awaitRefusal(t, events)
	await(t, events)
	if n := lists.Lists()[0].Number.Int64(); n != 2 {
		t.Errorf("list %d is in force", n)
	}
}

// TestTicketKeys: a ring follows its file.
func TestTicketKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	key := make([]byte, 80)
	next := func() []byte {
		for i := range key {
			key[i]++
		}
		return key
	}
	replace(t, file, next())
	ring := new(session.Ring)
	_, events := started(t, func() error {
		keys, err := session.ReadTicketKeyFiles(file)
		if err != nil {
			return err
		}
		return ring.Set(keys...)
	}, file)
	for range 3 {
		generation := ring.Generation()
		replace(t, file, next())
		await(t, events)
		if keys, now := ring.Snapshot(); now == generation || keys[0].Name[0] != key[0] {
			t.Errorf("generation %d, %v", now, keys)
		}
	}
	generation := ring.Generation()
	replace(t, file, key[:79])
	awaitRefusal(t, events)
	if ring.Generation() != generation {
		t.Error("the ring has changed")
	}
}

// TestUnderLoad replaces a server's pair very often, while clients connect: none fails.
func TestUnderLoad(t *testing.T) {
	reloads := 1000
	if testing.Short() {
		reloads = 50
	}
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	var pairs [2][2][]byte
	kinds := []tlstest.KeyKind{tlstest.P256, tlstest.RSA2048}
	for i, kind := range kinds {
		cert := tlstest.ServerCert(kind)
		key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		pairs[i] = [2][]byte{pemOf("CERTIFICATE", cert.Certificate...), pemOf("PRIVATE KEY", key)}
	}
	put := func(i int) {
		replace(t, certFile, pairs[i%2][0])
		replace(t, keyFile, pairs[i%2][1])
	}
	put(0)
	var current atomic.Pointer[tls.Certificate]
	w, events := started(t, func() error {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err == nil {
			current.Store(&cert)
		}
		return err
	}, certFile, keyFile)
	server, err := ossl.NewContext(&tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return current.Load(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	client, err := ossl.NewContext(&tls.Config{RootCAs: tlstest.CA().Pool()})
	if err != nil {
		t.Fatal(err)
	}
	var load sync.WaitGroup
	var handshakes atomic.Int64
	done := make(chan struct{})
	for range 2 {
		load.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				c, s, err := shake(client, server)
				if err != nil {
					t.Error(err)
				}
				_, _ = c.Close(), s.Close()
				handshakes.Add(1)
			}
		})
	}
	for i := range reloads {
		put(i + 1)
		leaf := tlstest.ServerCert(kinds[(i+1)%2]).Certificate[0]
		for !bytes.Equal(current.Load().Certificate[0], leaf) {
			<-events // an error too, if the pair was half written at two checks
		}
	}
	close(done)
	load.Wait()
	err = w.Reload() // after the last check
	stats := w.Stats()
	if err != nil || stats.Used < uint64(reloads)+1 || stats.Err != nil {
		t.Errorf("%v, %+v", err, stats)
	}
	t.Logf("%d handshakes, %d reloads, %d pairs refused since they were half written", handshakes.Load(), reloads, stats.Refused)
}
