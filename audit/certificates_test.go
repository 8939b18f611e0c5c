package audit

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/ossl-go/ossl/audit/internal/hello"
	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// tlsServer serves TLS, and reads until the client goes.
func tlsServer(t *testing.T, config *tls.Config) string {
	return serve(t, func(conn net.Conn, _ int) { io.Copy(io.Discard, tls.Server(conn, config)) })
}

func newRun(address string, roots *testcert.Case, versions map[string]VersionFacts) *run {
	return &run{
		target: Target{Host: "localhost", Port: 443, Protocol: "https"}, address: address,
		facts: &Facts{Protocols: ProtocolFacts{Versions: versions}},
		options: Options{ServerName: "localhost", Roots: roots.Roots(), Timeout: 5 * time.Second, MaxConnections: 60,
			At: time.Now()},
	}
}

func spoken(suites []string, signatures ...string) VersionFacts {
	return VersionFacts{Outcome: Outcome{State: Tested}, Offered: true, Suites: suites, Signatures: signatures}
}

func TestCertificates(t *testing.T) {
	cases := testcert.Cases()
	good := &cases[slices.IndexFunc(cases, func(c testcert.Case) bool { return c.Name == "stapled" })]
	inter := good.Sent[0]
	rsa := inter.Issue(testcert.Template{Key: testcert.Key("RSA 2048", "localhost"), SCTs: 3})
	edwards := inter.Issue(testcert.Template{Key: testcert.Key("Ed25519", "localhost")})
	first := good.Leaf.TLS(inter)
	first.OCSPStaple = good.Staple
	first.SignedCertificateTimestamps = [][]byte{bytes.Repeat([]byte{1}, 100)}
	both := []tls.Certificate{first, rsa.TLS(inter)}
	suites := []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}
	for _, test := range []struct {
		name        string
		config      *tls.Config
		versions    map[string]VersionFacts
		keys        []string
		connections int
		signatures  int
	}{
		{"TLS 1.2, two keys", &tls.Config{Certificates: both, MaxVersion: tls.VersionTLS12},
			map[string]VersionFacts{"TLS 1.2": spoken(suites)}, []string{"ECDSA secp256r1", "RSA 2048"}, 2, 2},
		{"TLS 1.3, two keys", &tls.Config{Certificates: both, MinVersion: tls.VersionTLS13},
			map[string]VersionFacts{"TLS 1.3": spoken(nil, "ecdsa_secp256r1_sha256", "rsa_pss_rsae_sha256")},
			[]string{"ECDSA secp256r1", "RSA 2048"}, 2, 2},
		{"TLS 1.3, nothing known", &tls.Config{Certificates: both[:1], MinVersion: tls.VersionTLS13}, nil,
			[]string{"ECDSA secp256r1"}, 2, 1},
		{"TLS 1.0, one key", &tls.Config{Certificates: both[1:], MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10,
			CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}},
			map[string]VersionFacts{"TLS 1.0": spoken([]string{"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"})}, []string{"RSA 2048"}, 1, 1},
		{"Ed25519 in both versions", &tls.Config{Certificates: []tls.Certificate{edwards.TLS(inter)}},
			map[string]VersionFacts{"TLS 1.2": spoken(suites[:1]), "TLS 1.3": spoken(nil, "ed25519")}, []string{"Ed25519"}, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRun(tlsServer(t, test.config), good, test.versions)
			if err := certificates(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			facts := r.facts.Certificates
			if facts.State != Tested {
				t.Fatal(facts.Outcome)
			}
			var keys []string
			for _, c := range facts.Chains {
				keys = append(keys, c.Key)
				if !c.Trusted || c.NameError != "" || len(c.Certificates) != 2 {
					t.Errorf("%+v", c)
				}
			}
			if !slices.Equal(keys, test.keys) {
				t.Errorf("keys %q, want %q", keys, test.keys)
			}
			if first := facts.Chains[0]; first.Key == "ECDSA secp256r1" &&
				(first.SCTs != 1 || first.StapleFrom == nil || first.StapleUntil == nil || first.StapleError != "") {
				t.Errorf("ECDSA: %+v", first)
			}
			if last := facts.Chains[len(facts.Chains)-1]; last.Key == "RSA 2048" && (last.SCTs != 3 || last.Stapled) {
				t.Errorf("RSA: %+v", last)
			}
			if r.cost.Connections != test.connections || r.cost.Signatures != test.signatures {
				t.Errorf("cost %+v", r.cost)
			}
		})
	}
}

// TestLazyStaple has a server that, as nginx does, staples a response from the second handshake on.
func TestLazyStaple(t *testing.T) {
	now := time.Now()
	root := testcert.Root(testcert.Template{CA: true})
	leaf := root.Issue(testcert.Template{OCSP: []string{"http://127.0.0.1:1"}})
	without, with := leaf.TLS(), leaf.TLS()
	with.OCSPStaple = root.Staple(leaf, ocsp.Good, now.Add(-time.Hour), now.Add(time.Hour))
	answers := make(chan *tls.Certificate, 2)
	answers <- &without
	answers <- &with
	address := tlsServer(t, &tls.Config{
		MaxVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return <-answers, nil },
	})
	r := newRun(address, &testcert.Case{Root: root}, map[string]VersionFacts{
		"TLS 1.2": spoken([]string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"})})
	for _, probe := range []func(context.Context, *run) error{certificates, staples} {
		if err := probe(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if c := r.facts.Certificates.Chains[0]; !c.Stapled || c.StapleError != "" || r.cost.Connections != 2 {
		t.Errorf("%+v, cost %+v", c, r.cost)
	}
}

// record returns a TLS 1.2 handshake message as a record, or as several if it is long.
func record(typ byte, body []byte) []byte {
	message := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))|uint32(typ)<<24), body...)
	var all []byte
	for part := range slices.Chunk(message, 1<<14) {
		all = append(all, 22, 3, 3, byte(len(part)>>8), byte(len(part)))
		all = append(all, part...)
	}
	return all
}

func uint24(n int) []byte { return []byte{byte(n >> 16), byte(n >> 8), byte(n)} }

// TestMalformedCertificates tests servers that send certificates of 0 bytes and of 16 MB, and
// servers that close the connection before their certificates.
func TestMalformedCertificates(t *testing.T) {
	serverHello := slices.Concat([]byte{3, 3}, make([]byte, 32), []byte{0, 0xc0, 0x2f, 0})
	large := 1<<24 - 1 - 6
	for _, test := range []struct {
		name  string
		body  []byte // of Certificate
		state State
		want  string // in the reason, or in the leaf's error
	}{
		{"no certificate", uint24(0), Tested, "no certificate"},
		{"0 bytes", slices.Concat(uint24(3), uint24(0)), Tested, "it has 0 bytes"},
		{"16 MB", slices.Concat(uint24(large+3), uint24(large), make([]byte, large)), Failed, "a message of 16777219 bytes"},
		{"cut off", nil, Failed, "lost"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			flight := record(2, serverHello)
			if test.body != nil {
				flight = slices.Concat(flight, record(11, test.body), record(14, nil))
			}
			address := serve(t, func(conn net.Conn, _ int) {
				conn.Read(make([]byte, 4096))
				conn.Write(flight)
			})
			c := testcert.Cases()[0]
			r := newRun(address, &c, map[string]VersionFacts{"TLS 1.2": spoken([]string{"TLS_RSA_WITH_AES_128_GCM_SHA256"})})
			if err := certificates(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			facts := r.facts.Certificates
			if facts.State != test.state {
				t.Fatalf("%+v", facts.Outcome)
			}
			text := facts.Reason
			if facts.State == Tested {
				text = facts.Chains[0].TrustError
			}
			if !strings.Contains(text, test.want) {
				t.Errorf("%q", text)
			}
			if r.cost.Bytes > hello.MaxReply+1<<17 {
				t.Errorf("%d bytes", r.cost.Bytes)
			}
		})
	}
}
