package audit

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// serve starts a server on loopback that calls handle with each connection and its number.
func serve(t *testing.T, handle func(conn net.Conn, number int)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for i := 1; ; i++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(20 * time.Second))
				handle(conn, i)
			}()
		}
	}()
	return l.Addr().String()
}

// serveGo starts a crypto/tls server.
func serveGo(t *testing.T, config *tls.Config) string {
	t.Helper()
	if config.Certificates == nil {
		config.Certificates = []tls.Certificate{testcert.Root(testcert.Template{}).TLS()}
	}
	return serve(t, func(conn net.Conn, _ int) { tls.Server(conn, config).Handshake() })
}

// testRun returns a run against a server. It makes no spare connections: on a busy machine, any server
// can seem far away, and tests count connections.
func testRun(address string) *run {
	return &run{target: Target{Host: "localhost", Protocol: "tls"}, address: address, facts: &Facts{},
		options: Options{Timeout: 2 * time.Second, MaxConnections: roomy - 1, ServerName: "localhost"}}
}

// protocolsOf runs the probe.
func protocolsOf(t *testing.T, r *run) ProtocolFacts {
	t.Helper()
	defer r.dropSpare()
	if err := probeProtocols(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r.facts.Protocols
}

// offered returns the versions that are offered, and those that failed.
func offered(f ProtocolFacts) (versions, failed []string) {
	for _, v := range []string{"SSL 2", "SSL 3", "TLS 1.0", "TLS 1.1", "TLS 1.2", "TLS 1.3"} {
		switch {
		case f.Versions[v].State != Tested:
			failed = append(failed, v)
		case f.Versions[v].Offered:
			versions = append(versions, v)
		}
	}
	return versions, failed
}

func TestProtocolsOfGo(t *testing.T) {
	config := &tls.Config{
		MinVersion:       tls.VersionTLS10,
		CurvePreferences: []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256},
		CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA},
	}
	r := testRun(serveGo(t, config))
	f := protocolsOf(t, r)
	versions, failed := offered(f)
	want := []string{"TLS 1.0", "TLS 1.1", "TLS 1.2", "TLS 1.3"}
	if !slices.Equal(versions, want) || failed != nil || f.Lies != nil {
		t.Errorf("versions %v, failed %v, lies %v", versions, failed, f.Lies)
	}
	v13 := f.Versions["TLS 1.3"]
	sorted := slices.Sorted(slices.Values(v13.Suites))
	if !slices.Equal(sorted, []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}) ||
		!v13.Retry || v13.Partial != "" {
		t.Errorf("TLS 1.3: %+v", v13)
	}
	if groups := slices.Sorted(slices.Values(v13.Groups)); !slices.Equal(groups, []string{"X25519MLKEM768", "secp256r1", "x25519"}) {
		t.Errorf("groups of TLS 1.3: %v", groups)
	}
	v12 := f.Versions["TLS 1.2"]
	if suites := slices.Sorted(slices.Values(v12.Suites)); !slices.Equal(suites, []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
		"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"}) || v12.Order != orderChaCha {
		t.Errorf("TLS 1.2: %+v", v12)
	}
	if !slices.Equal(slices.Sorted(slices.Values(v12.Groups)), []string{"secp256r1", "x25519"}) {
		t.Errorf("groups of TLS 1.2: %v", v12.Groups)
	}
	if v10 := f.Versions["TLS 1.0"]; !slices.Equal(v10.Suites, []string{"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"}) || !v10.Inherits {
		t.Errorf("TLS 1.0: %+v", v10)
	}
	if r.cost.Connections > 30 {
		t.Errorf("%d connections", r.cost.Connections)
	}
	t.Logf("%+v", r.cost)
}

func TestProtocolsOf13Only(t *testing.T) {
	r := testRun(serveGo(t, &tls.Config{MinVersion: tls.VersionTLS13}))
	f := protocolsOf(t, r)
	versions, failed := offered(f)
	if !slices.Equal(versions, []string{"TLS 1.3"}) || failed != nil {
		t.Errorf("versions %v, failed %v", versions, failed)
	}
	if r.cost.Signatures != 0 {
		t.Errorf("the server signed %d times", r.cost.Signatures)
	}
	t.Logf("%+v", r.cost)
}

func TestProtocolsOf12Only(t *testing.T) {
	r := testRun(serveGo(t, &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}))
	f := protocolsOf(t, r)
	versions, failed := offered(f)
	if !slices.Equal(versions, []string{"TLS 1.2"}) || failed != nil {
		t.Errorf("versions %v, failed %v", versions, failed)
	}
}

// readHello reads a ClientHello's record.
func readHello(conn net.Conn) ([]byte, error) {
	header := make([]byte, 5)
	if _, err := io.ReadFull(conn, header); err != nil {
		return nil, err
	}
	if header[0]&0x80 != 0 { // SSL 2
		body := make([]byte, int(header[0]&0x7f)<<8+int(header[1])-3)
		_, err := io.ReadFull(conn, body)
		return append(header, body...), err
	}
	body := make([]byte, int(header[3])<<8+int(header[4]))
	_, err := io.ReadFull(conn, body)
	return append(header, body...), err
}

// serverHello returns a ServerHello of SSL 3 to TLS 1.2.
func serverHello(version, suite uint16) []byte {
	body := append([]byte{byte(version >> 8), byte(version)}, make([]byte, 32)...)
	body = append(body, 0, byte(suite>>8), byte(suite), 0)
	return hello.Records(22, version, append([]byte{2, 0, 0, byte(len(body))}, body...))
}

// scripted answers as a server of SSL 3 and SSL 2 with two suites, an export one among them.
func scriptedOld(conn net.Conn, _ int) {
	packet, err := readHello(conn)
	if err != nil {
		return
	}
	if packet[0]&0x80 != 0 {
		conn.Write([]byte{0x80, 14, 4, 0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 7, 0, 0xc0})
		return
	}
	m := packet[5:]
	b := m[38:]
	b = b[1+int(b[0]):]
	suites := b[2 : 2+int(b[0])<<8+int(b[1])]
	for _, want := range []uint16{0x0005, 0x0003} {
		for i := 0; i+1 < len(suites); i += 2 {
			if uint16(suites[i])<<8|uint16(suites[i+1]) == want {
				conn.Write(append(serverHello(hello.SSL3, want), hello.Records(22, 0x300, []byte{14, 0, 0, 0})...))
				return
			}
		}
	}
	conn.Write([]byte{21, 3, 0, 0, 2, 2, 40})
}

func TestProtocolsOfSSL3(t *testing.T) {
	r := testRun(serve(t, scriptedOld))
	f := protocolsOf(t, r)
	versions, failed := offered(f)
	if !slices.Equal(versions, []string{"SSL 2", "SSL 3"}) || failed != nil {
		t.Fatalf("versions %v, failed %v, lies %v", versions, failed, f.Lies)
	}
	v := f.Versions["SSL 3"]
	if !slices.Equal(v.Suites, []string{"TLS_RSA_WITH_RC4_128_SHA", "TLS_RSA_EXPORT_WITH_RC4_40_MD5"}) || v.Order != orderServer {
		t.Errorf("SSL 3: %+v", v)
	}
	if !slices.Equal(f.Versions["SSL 2"].Suites, []string{"SSL_CK_DES_192_EDE3_CBC_WITH_MD5"}) {
		t.Errorf("SSL 2: %+v", f.Versions["SSL 2"])
	}
}

// TestEmptyShareRefused looks at a server that refuses an empty key_share, as some do, and is a
// good one otherwise.
func TestEmptyShareRefused(t *testing.T) {
	for _, refuse := range []shareMode{noShares, greaseShare} {
		t.Run(fmt.Sprint(refuse), func(t *testing.T) {
			config := &tls.Config{MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256},
				Certificates: []tls.Certificate{testcert.Root(testcert.Template{}).TLS()}}
			r := testRun(serve(t, func(conn net.Conn, _ int) {
				packet, err := readHello(conn)
				if err != nil {
					return
				}
				empty, grease := []byte{0, 51, 0, 2, 0, 0}, []byte{0, 51, 0, 7, 0, 5, 0x2a, 0x2a}
				if bytes.Contains(packet, empty) || refuse == greaseShare && bytes.Contains(packet, grease) {
					conn.Write([]byte{21, 3, 3, 0, 2, 2, 50})
					return
				}
				tls.Server(&replayed{conn, packet}, config).Handshake()
			}))
			f := protocolsOf(t, r)
			v := f.Versions["TLS 1.3"]
			if !v.Offered || len(v.Suites) != 3 || len(v.Groups) != 2 || v.Partial != "" || v.Retry != (refuse == noShares) {
				t.Errorf("%+v, %v", v, f.Lies)
			}
			if (r.cost.Signatures > 0) != (refuse == greaseShare) {
				t.Errorf("%d signatures", r.cost.Signatures)
			}
		})
	}
}

// A replayed connection has bytes that were read already.
type replayed struct {
	net.Conn
	before []byte
}

func (r *replayed) Read(b []byte) (int, error) {
	if len(r.before) > 0 {
		n := copy(b, r.before)
		r.before = r.before[n:]
		return n, nil
	}
	return r.Conn.Read(b)
}

// TestLost looks at a server that loses connections: each second one, some twice, or all.
func TestLost(t *testing.T) {
	config := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{testcert.Root(testcert.Template{}).TLS()}}
	t.Run("once", func(t *testing.T) {
		r := testRun(serve(t, func(conn net.Conn, number int) {
			if number == 3 {
				return
			}
			tls.Server(conn, config).Handshake()
		}))
		f := protocolsOf(t, r)
		if v := f.Versions["TLS 1.3"]; len(v.Suites) != 3 || v.Partial != "" || r.cost.Retried != 1 {
			t.Errorf("%+v after %d retries", v, r.cost.Retried)
		}
	})
	t.Run("twice", func(t *testing.T) {
		r := testRun(serve(t, func(conn net.Conn, number int) {
			if number == 3 || number == 4 {
				return
			}
			tls.Server(conn, config).Handshake()
		}))
		f := protocolsOf(t, r)
		if v := f.Versions["TLS 1.3"]; len(v.Suites) != 3 || v.Partial != "" || r.facts.Protocols.Silent != 0 {
			t.Errorf("%+v, %d refusals", v, r.facts.Protocols.Silent)
		}
	})
	t.Run("for a while", func(t *testing.T) {
		r := testRun(serve(t, func(conn net.Conn, number int) {
			if number >= 3 && number <= 5 {
				return
			}
			tls.Server(conn, config).Handshake()
		}))
		f := protocolsOf(t, r)
		if v := f.Versions["TLS 1.3"]; !v.Offered || !strings.Contains(v.Partial, errLost.Error()) {
			t.Errorf("%+v", v)
		}
	})
	t.Run("all", func(t *testing.T) {
		r := testRun(serve(t, func(net.Conn, int) {}))
		f := protocolsOf(t, r)
		if versions, failed := offered(f); versions != nil || len(failed) != 6 {
			t.Errorf("versions %v, failed %v", versions, failed)
		}
		if r.cost.Connections > 2*silentTries+1 {
			t.Errorf("%d connections to a server that never answers", r.cost.Connections)
		}
	})
}

func TestLies(t *testing.T) {
	done := string(hello.Records(22, hello.TLS12, []byte{14, 0, 0, 0}))
	for name, test := range map[string]struct {
		answer string
		want   string
	}{
		"suite":   {string(serverHello(hello.TLS12, 0xfafa)) + done, "cipher suite 0xfafa"},
		"version": {string(serverHello(0x03ff, 0xc02f)), "0x03ff"},
		"TLS 1.3": {string(serverHello(hello.TLS12, 0x1301)) + done, "TLS_AES_128_GCM_SHA256 in TLS 1.2"},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRun(serve(t, func(conn net.Conn, _ int) {
				readHello(conn)
				io.WriteString(conn, test.answer)
				io.Copy(io.Discard, conn)
			}))
			f := protocolsOf(t, r)
			versions, _ := offered(f)
			if len(f.Lies) == 0 || !strings.Contains(f.Lies[0], test.want) || versions != nil {
				t.Errorf("lies %q, versions %v", f.Lies, versions)
			}
		})
	}
}

func TestProtocolsEnd(t *testing.T) {
	r := testRun(serve(t, func(conn net.Conn, _ int) { io.Copy(io.Discard, conn) }))
	r.options.Timeout = time.Hour // which go test doesn't wait for
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := probeProtocols(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestManySuites looks at an openssl with many suites and two certificates.
func TestManySuites(t *testing.T) {
	address := serveOpenSSL(t, "-cipher", "ALL:COMPLEMENTOFALL:@SECLEVEL=0", "-serverpref")
	r := testRun(address)
	f := protocolsOf(t, r)
	v := f.Versions["TLS 1.2"]
	found := map[string]bool{}
	for _, s := range v.Suites {
		if c := weakness(s); c != nil {
			found[c.why] = true
		}
	}
	if !found[weakClasses[0].why] || !found[weakClasses[1].why] || !strings.HasPrefix(v.Partial, "the audit stops") {
		t.Errorf("weak kinds %v, partial %q, suites %v", found, v.Partial, v.Suites)
	}
	if v.PrimeBits == 0 || v.Order != orderServer || len(v.Groups) < 4 {
		t.Errorf("%d bits, order %q, groups %v", v.PrimeBits, v.Order, v.Groups)
	}
	if r.cost.Connections > 60 {
		t.Errorf("%d connections", r.cost.Connections)
	}
	p, err := defaultPolicy()
	if err != nil {
		t.Fatal(err)
	}
	report := &Report{Facts: *r.facts}
	report.Judge(p, someDay)
	for _, f := range report.Findings {
		if f.Rule == "suite-weak" && !strings.Contains(f.Evidence, "perhaps others") {
			t.Errorf("the evidence is complete: %s", f.Evidence)
		}
	}

	all := testRun(address)
	all.options.All = true
	all.options.MaxConnections = 1000
	for version, f := range protocolsOf(t, all).Versions {
		if f.Partial != "" || f.Inherits || version == "TLS 1.2" && len(f.Suites) < 2*maxSuites {
			t.Errorf("%s: %d suites of all, partial %q", version, len(f.Suites), f.Partial)
		}
	}
}

// TestManyGoodSuites looks at an openssl with its usual suites. That none is weak takes one question.
func TestManyGoodSuites(t *testing.T) {
	r := testRun(serveOpenSSL(t, "-cipher", "DEFAULT:!DHE"))
	f := protocolsOf(t, r)
	v := f.Versions["TLS 1.2"]
	weak := slices.ContainsFunc(v.Suites, func(s string) bool { return weakness(s) != nil })
	if weak || !strings.HasPrefix(v.Partial, "the audit stops") {
		t.Errorf("partial %q, suites %v", v.Partial, v.Suites)
	}
	if r.cost.Connections > 45 {
		t.Errorf("%d connections", r.cost.Connections)
	}
	t.Logf("%+v", r.cost)
}

// serveOpenSSL starts openssl s_server with an RSA and an ECDSA certificate.
func serveOpenSSL(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	dir := t.TempDir()
	for _, kind := range []string{"RSA 2048", "ECDSA secp256r1"} {
		c := testcert.Root(testcert.Template{Key: testcert.Key(kind, "")})
		name := filepath.Join(dir, kind[:3])
		if err := errors.Join(os.WriteFile(name+".crt", c.PEM(), 0o600), os.WriteFile(name+".key", c.KeyPEM(), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 { // another process may take the port
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close()
		cmd := exec.Command("openssl", append([]string{"s_server", "-accept", address, "-quiet",
			"-cert", filepath.Join(dir, "RSA.crt"), "-key", filepath.Join(dir, "RSA.key"),
			"-dcert", filepath.Join(dir, "ECD.crt"), "-dkey", filepath.Join(dir, "ECD.key")}, args...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		t.Cleanup(func() { cmd.Process.Kill(); <-ended })
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if conn, err := net.Dial("tcp", address); err == nil {
				conn.Close()
				return address
			}
		}
	}
	t.Fatal("openssl s_server doesn't start")
	return ""
}

// TestGroupsOfECDSA finds the groups of a server that has an ECDSA key, and refuses clients without
// the key's curve. Its only protocol is TLS 1.2, and its order of groups the client's.
func TestGroupsOfECDSA(t *testing.T) {
	address := serveOpenSSL(t, "-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256", "-groups", "P-384:P-256:X25519")
	f := protocolsOf(t, testRun(address)).Versions["TLS 1.2"]
	slices.Sort(f.Groups)
	if !slices.Equal(f.Groups, []string{"secp256r1", "secp384r1", "x25519"}) {
		t.Errorf("groups: %q", f.Groups)
	}
}

func TestOrder(t *testing.T) {
	for _, test := range []struct {
		found  []uint16
		choice uint16
		want   string
	}{
		{[]uint16{1}, 1, ""}, {[]uint16{1, 2}, 1, orderServer}, {[]uint16{1, 2}, 2, orderClient},
		{[]uint16{1, 2, chacha13}, 2, orderClient}, {[]uint16{1, 2, 3}, 2, ""},
	} {
		if got := order(test.found, test.choice); got != test.want {
			t.Errorf("%v, %d: %q", test.found, test.choice, got)
		}
	}
	if r := reversed([]uint16{1, 2, chacha13}); !reflect.DeepEqual(r, []uint16{2, chacha13, 1}) {
		t.Errorf("reversed: %v", r)
	}
}

// TestRateLimit shows that a server that closes all connections beyond ten a second gets the same
// facts as without its limit.
func TestRateLimit(t *testing.T) {
	config := func() *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{testcert.Root(testcert.Template{}).TLS()},
			CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}}
	}
	want := protocolsOf(t, testRun(serveGo(t, config())))
	limited := config()
	var mu sync.Mutex
	var recent []time.Time
	r := testRun(serve(t, func(conn net.Conn, _ int) {
		mu.Lock()
		now := time.Now()
		recent = slices.DeleteFunc(recent, func(t time.Time) bool { return now.Sub(t) > time.Second })
		refused := len(recent) >= 10
		if !refused {
			recent = append(recent, now)
		}
		mu.Unlock()
		if !refused {
			tls.Server(conn, limited).Handshake()
		}
	}))
	if got := protocolsOf(t, r); !reflect.DeepEqual(got, want) {
		t.Errorf("with the limit\n%+v\nwithout\n%+v", got, want)
	}
	if r.cost.Retried == 0 {
		t.Error("no connection was lost")
	}
}
