package ossl_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

func Example() {
	// Certificates for the example; a program loads its own with tls.LoadX509KeyPair.
	serverConfig := &tls.Config{Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)}}
	clientConfig := &tls.Config{RootCAs: tlstest.CA().Pool(), ServerName: tlstest.ServerName}

	listener, err := ossl.Listen("tcp", "127.0.0.1:0", serverConfig)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "hello over TLS")
	}()

	conn, err := ossl.Dial("tcp", listener.Addr().String(), clientConfig)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	fmt.Printf("%s, %v, %v\n", text, tls.VersionName(conn.ConnectionState().Version), err)
	// Output: hello over TLS, TLS 1.3, <nil>
}

// A server that admits clients with certificates that were not revoked.
func ExampleWithCRLs() {
	ca, client := tlstest.CA(), tlstest.ClientCert(tlstest.P256)
	list := ca.List(1, nil) // the authority's list as DER; a program loads files: CRLFiles
	lists, err := ossl.LoadCRLs(func() (map[string][]byte, error) { return map[string][]byte{"ca.crl": list}, nil })
	if err != nil {
		log.Fatal(err)
	}
	ctx, err := ossl.NewContext(&tls.Config{
		Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    ca.Pool(),
	}, ossl.WithCRLs(lists), ossl.WithCRLHardFail())
	if err != nil {
		log.Fatal(err)
	}
	connect := func() error {
		a, b := tlstest.Buffered()
		defer a.Close()
		go tls.Client(a, &tls.Config{
			Certificates: []tls.Certificate{client}, RootCAs: ca.Pool(), ServerName: tlstest.ServerName}).Handshake()
		server := ctx.Server(b)
		defer server.Close()
		return server.Handshake()
	}
	fmt.Println(connect())

	list = ca.List(2, nil, client.Leaf)
	if err := lists.Reload(); err != nil {
		log.Fatal(err)
	}
	var revoked *ossl.RevocationError
	fmt.Println(errors.As(connect(), &revoked), revoked.State)
	// Output:
	// <nil>
	// true revoked
}

// A client whose roots are in a file. Connections that begin after the file was replaced trust the new
// roots alone, also if they could resume a session; open connections go on. For a server's ClientCAs, and
// for all else in a configuration, it is the same.
func ExampleWatch() {
	var current atomic.Pointer[ossl.Context]
	sessions := tls.NewLRUClientSessionCache(0) // which all Contexts share
	load := func() error {
		text, err := os.ReadFile("roots.pem")
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return errors.New("roots.pem: no certificates")
		}
		ctx, err := ossl.NewContext(&tls.Config{RootCAs: roots, ClientSessionCache: sessions})
		if err != nil {
			return err
		}
		current.Store(ctx)
		return nil
	}
	watch := ossl.NewWatch(load, "roots.pem")
	watch.OnEvent = func(e ossl.WatchEvent) { log.Print("roots changed, or didn't: ", e.Err) }
	if err := watch.Start(context.Background(), 0); err != nil { // loads the file
		log.Fatal(err)
	}
	defer watch.Close()
	conn, err := current.Load().Dial("tcp", "example.org:443")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
}

// Revocation lists, and ticket keys of a fleet, that are loaded again when their files change.
func ExampleWatch_lists() {
	lists, err := ossl.LoadCRLs(ossl.CRLFiles("/etc/pki/crls"))
	if err != nil {
		log.Fatal(err)
	}
	ring := new(session.Ring)
	files := []string{"/etc/tickets/current.key", "/etc/tickets/previous.key"}
	loadKeys := func() error {
		keys, err := session.ReadTicketKeyFiles(files...)
		if err != nil {
			return err
		}
		return ring.Set(keys...)
	}
	for _, watch := range []*ossl.Watch{ossl.NewWatch(lists.Reload, "/etc/pki/crls"), ossl.NewWatch(loadKeys, files...)} {
		if err := watch.Start(context.Background(), 0); err != nil {
			log.Fatal(err)
		}
		defer watch.Close()
	}
}

// A server that echoes: the example of README.md.
func ExampleListen() {
	cert, err := tls.LoadX509KeyPair("cert.pem", "key.pem")
	if err != nil {
		log.Fatal(err)
	}
	listener, err := ossl.Listen("tcp", ":443", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		log.Fatal(err)
	}
	for {
		conn, err := listener.Accept() // a net.Conn
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer conn.Close()
			io.Copy(conn, conn)
		}()
	}
}

// A Context is compiled once, and names a field that can't be honoured. Connections over any
// net.Conn share it.
func ExampleNewContext() {
	ctx, err := ossl.NewContext(&tls.Config{RootCAs: tlstest.CA().Pool()},
		ossl.WithSignatureAlgorithms(tls.ECDSAWithP256AndSHA256))
	if err != nil {
		log.Fatal(err)
	}
	server, err := ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)}})
	if err != nil {
		log.Fatal(err)
	}
	a, b := net.Pipe()
	go server.Server(b).Handshake()
	conn := ctx.Client(a, tlstest.ServerName)
	fmt.Println(conn.Handshake())
	// Output: <nil>
}

func ExampleConfigError() {
	_, err := ossl.NewContext(&tls.Config{MinVersion: tls.VersionTLS10})
	var refused *ossl.ConfigError
	if errors.As(err, &refused) {
		fmt.Println(refused.Field)
	}
	fmt.Println(err)
	// Output:
	// MinVersion
	// ossl: MinVersion: versions below TLS 1.2 are refused
}

// Both sides verify each other.
func ExampleConn_mutual() {
	server, err := ossl.NewContext(&tls.Config{
		Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    tlstest.CA().Pool(),
	})
	if err != nil {
		log.Fatal(err)
	}
	client, err := ossl.NewContext(&tls.Config{
		RootCAs:      tlstest.CA().Pool(),
		Certificates: []tls.Certificate{tlstest.ClientCert(tlstest.P256)},
	})
	if err != nil {
		log.Fatal(err)
	}
	a, b := net.Pipe()
	go io.Copy(io.Discard, client.Client(a, tlstest.ServerName)) // runs the handshake, and reads the rest
	conn := server.Server(b)
	if err := conn.Handshake(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(conn.ConnectionState().PeerCertificates[0].Subject.CommonName)
	// Output: client.test
}

func ExampleLibrary() {
	info, err := ossl.Library()
	if errors.Is(err, ossl.ErrUnavailable) {
		log.Print("going on with crypto/tls: ", err)
		return
	}
	fmt.Println(info.Version != "", info.Path != "")
	// Output: true true
}

// A client that leaves the records of its connections with libssl.
func ExampleWithRecordPath() {
	client, err := ossl.NewContext(&tls.Config{RootCAs: tlstest.CA().Pool()}, ossl.WithRecordPath(ossl.RecordsLibssl))
	if err != nil {
		log.Fatal(err)
	}
	a, b := net.Pipe()
	go ossl.Server(b, &tls.Config{Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)}}).Write([]byte("hello"))
	buf := make([]byte, 5)
	if _, err := io.ReadFull(client.Client(a, tlstest.ServerName), buf); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", buf)
	// Output: hello
}

// io.Copy sends files with sendfile(2) if the kernel seals, and works in any case.
func ExampleConn_ReadFrom() {
	serverConfig := &tls.Config{Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)}}
	server, err := ossl.NewContext(serverConfig, ossl.WithKernelTLS())
	if err != nil {
		log.Fatal(err)
	}
	listener, err := server.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		file, err := os.Open("go.mod")
		if err != nil {
			return
		}
		defer file.Close()
		_, _ = io.CopyN(conn, file, 6) // or io.Copy for all of it
	}()
	conn, err := ossl.Dial("tcp", listener.Addr().String(), &tls.Config{
		RootCAs: tlstest.CA().Pool(), ServerName: tlstest.ServerName,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	got, err := io.ReadAll(conn)
	fmt.Printf("%s %v", got, err)
	// Output: module <nil>
}

// If Linux has kernel TLS, files go from the page cache to the network without passing through the
// process.
func ExampleConn_SendFile() {
	config := &tls.Config{ /* Certificates */ }
	ctx, err := ossl.NewContext(config, ossl.WithKernelTLS())
	if err != nil {
		log.Fatal(err)
	}
	listener, err := ctx.Listen("tcp", ":443")
	if err != nil {
		log.Fatal(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer conn.Close()
			file, err := os.Open("/srv/image")
			if err != nil {
				return
			}
			defer file.Close()
			n, err := conn.(*ossl.Conn).SendFile(file, -1)
			log.Print(n, err, "; by the kernel: ", conn.(*ossl.Conn).KernelTLS())
		}()
	}
}

func ExampleWithEvents() {
	config := &tls.Config{}
	ctx, err := ossl.NewContext(config, ossl.WithEvents(func(event ossl.Event) {
		if e, ok := event.(*ossl.HandshakeEvent); ok && e.Err != nil {
			slog.Warn("TLS handshake", "peer", e.Conn.RemoteAddr(), "failure", e.Failure, "took", e.Duration)
		}
	}))
	if err != nil {
		log.Fatal(err)
	}
	conn, err := ctx.Dial("tcp", "example.org:443")
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
}

func ExampleContext_Stats() {
	ctx, err := ossl.NewContext(&tls.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range ctx.Stats().Handshakes {
		fmt.Println(tls.VersionName(h.Version), tls.CipherSuiteName(h.CipherSuite), h.CurveID, h.Resumption, h.Count)
	}
	for _, f := range ctx.Stats().Failures {
		fmt.Println(f.Failure, f.Count) // such as "refused (tls: protocol version not supported) 3"
	}
}

func ExampleFailureOf() {
	for _, err := range []error{io.EOF, context.DeadlineExceeded, x509.UnknownAuthorityError{}} {
		fmt.Println(ossl.FailureOf(err))
	}
	// Output:
	// peer_closed
	// timeout
	// certificate_untrusted
}

// A remoteKey signs by a key management service.
type remoteKey struct {
	crypto.Signer // its public key; here, the service is in the process
	hangs         bool
}

func (k *remoteKey) SignContext(ctx context.Context, rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if k.hangs {
		<-ctx.Done() // as a request to the service does
		return nil, context.Cause(ctx)
	}
	return k.Sign(rand, digest, opts)
}

// A program that ends when the host's policy has changed, so that its supervisor starts it under the new
// one: OpenSSL reads its configuration once.
func ExampleWatch_policy() {
	lib, err := ossl.Library()
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // of the program's servers
	defer stop()
	known := false
	watch := ossl.NewWatch(func() error {
		if known {
			stop()
		}
		known = true
		return nil
	}, lib.HostPolicy.ConfigFile, "/etc/crypto-policies/back-ends/opensslcnf.config")
	if err := watch.Start(ctx, time.Minute); err != nil {
		log.Fatal(err)
	}
	<-ctx.Done()
	log.Print("the host's policy has changed")
}

// Both ends of a connection have the same bindings, and the two connections of somebody between them
// have others.
func ExampleConn_ChannelBinding() {
	a, b := net.Pipe()
	server := ossl.Server(b, &tls.Config{Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)}})
	done := make(chan error)
	go func() { done <- server.Handshake() }()
	client := ossl.Client(a, &tls.Config{RootCAs: tlstest.CA().Pool(), ServerName: tlstest.ServerName})
	fmt.Println(client.Handshake(), <-done)
	ours, err := client.ChannelBinding("tls-exporter")
	if err != nil {
		log.Fatal(err)
	}
	theirs, err := server.ChannelBinding("tls-exporter")
	fmt.Println(bytes.Equal(ours, theirs), err)
	// Output:
	// <nil> <nil>
	// true <nil>
}

// A server of TLS 1.3 that has one cipher suite.
func ExampleWithTLS13CipherSuites() {
	server, err := ossl.NewContext(&tls.Config{Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)}},
		ossl.WithTLS13CipherSuites(tls.TLS_AES_256_GCM_SHA384))
	if err != nil {
		log.Fatal(err)
	}
	a, b := net.Pipe()
	go server.Server(b).Handshake()
	client := tls.Client(a, &tls.Config{RootCAs: tlstest.CA().Pool(), ServerName: tlstest.ServerName})
	fmt.Println(client.Handshake(), tls.CipherSuiteName(client.ConnectionState().CipherSuite))
	// Output: <nil> TLS_AES_256_GCM_SHA384
}

// A server that resumes the sessions of clients without tickets.
func ExampleWithSessionCache() {
	server, err := ossl.NewContext(&tls.Config{
		Certificates: []tls.Certificate{tlstest.ServerCert(tlstest.P256)},
		MaxVersion:   tls.VersionTLS12, SessionTicketsDisabled: true,
	}, ossl.WithSessionCache(session.NewCache(10_000))) // 4 MB at most
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{RootCAs: tlstest.CA().Pool(), ServerName: tlstest.ServerName,
		ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	for range 2 {
		a, b := net.Pipe()
		go server.Server(b).Handshake()
		client := ossl.Client(a, config)
		fmt.Println(client.Handshake(), client.ConnectionState().DidResume)
	}
	// Output:
	// <nil> false
	// <nil> true
}

// The service hangs, and the handshake's deadline ends the request.
func ExampleContextSigner() {
	cert := tlstest.ServerCert(tlstest.P256)
	cert.PrivateKey = &remoteKey{cert.PrivateKey.(crypto.Signer), true}
	client, server := tlstest.Loopback()
	go ossl.Client(client, &tls.Config{RootCAs: tlstest.CA().Pool(), ServerName: tlstest.ServerName}).Handshake()

	conn := ossl.Server(server, &tls.Config{Certificates: []tls.Certificate{cert}})
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	fmt.Println(conn.Handshake())
	// Output: i/o timeout
}

// Client and server authenticate each other by a key that both have, without certificates.
func ExampleWithPSK() {
	key := make([]byte, 32) // from a file that only this program can read
	rand.Read(key)
	client, err := ossl.NewContext(nil, ossl.WithPSK(func(_ context.Context, serverName string) (*ossl.PSK, error) {
		return &ossl.PSK{Identity: []byte("meter-17"), Key: key}, nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	server, err := ossl.NewContext(nil, ossl.WithPSKLookup(func(_ context.Context, identity []byte) (*ossl.PSK, error) {
		if string(identity) == "meter-17" {
			return &ossl.PSK{Key: key}, nil
		}
		return nil, nil // unknown
	}))
	if err != nil {
		log.Fatal(err)
	}
	a, b := net.Pipe()
	go io.Copy(io.Discard, client.Client(a, "")) // runs the handshake, and reads the rest
	conn := server.Server(b)
	if err := conn.Handshake(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", conn.PSKIdentity())
	// Output: meter-17
}
