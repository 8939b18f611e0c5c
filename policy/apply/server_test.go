package apply_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/policy"
	"github.com/ossl-go/ossl/policy/apply"
)

// serve serves one byte to each client under a policy, and returns the address.
func serve(t *testing.T, p *policy.Policy) string {
	t.Helper()
	config, options := must(t, p, apply.Server)
	config.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.P256)}
	ctx, err := ossl.NewContext(config, append(options, ossl.WithoutHostPolicy())...)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				c := ctx.Server(conn)
				c.Write([]byte{1})
				c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// must returns the configuration of a policy on this host's OpenSSL, or skips the test.
func must(t *testing.T, p *policy.Policy, role func(*policy.Policy) (*tls.Config, []ossl.Option, []apply.Unmet, error)) (
	*tls.Config, []ossl.Option,
) {
	t.Helper()
	if lib, err := ossl.Library(); err == nil && lib.FIPSRequired != "" && !p.FIPS {
		t.Skip("OpenSSL is in FIPS mode, which leaves out what other policies have")
	}
	config, options, unmet, err := role(p)
	if errors.Is(err, ossl.ErrUnavailable) {
		t.Skip("no OpenSSL: ", err)
	}
	if errors.Is(err, ossl.ErrNotFIPS) {
		lib, _ := ossl.Library()
		t.Skipf("OpenSSL %s has no FIPS module here", lib.Version)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log("unmet: ", unmet)
	if !slices.IsSortedFunc(unmet, func(a, b apply.Unmet) int {
		if a.Wanted() && !b.Wanted() || a.Level == policy.Required && b.Level == policy.Recommended {
			return -1
		}
		return 0
	}) {
		t.Error("what the policy wants most isn't first")
	}
	return config, options
}

// ask connects to a server and returns the state of the connection after its first byte.
func ask(address string, config *tls.Config) (tls.ConnectionState, error) {
	config.RootCAs, config.ServerName = tlstest.CA().Pool(), tlstest.ServerName
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	_, err = io.ReadAll(conn)
	return conn.ConnectionState(), err
}

// TestServer checks that a server with each policy's configuration negotiates the values that the
// policy allows, and refuses the rest.
func TestServer(t *testing.T) { testServer(t, false) }

// TestFIPSServer is TestServer of the policies that need FIPS mode. ci/matrix runs it by its name.
func TestFIPSServer(t *testing.T) { testServer(t, true) }

func testServer(t *testing.T, fips bool) {
	for _, p := range policy.All() {
		if p.FIPS != fips {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, p)
			has := func(list []policy.Value, name string) bool {
				return slices.ContainsFunc(list, func(v policy.Value) bool { return v.Name == name && v.Level != policy.PhaseOut })
			}
			state, err := ask(address, &tls.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if state.Version != tls.VersionTLS13 || tls.CipherSuiteName(state.CipherSuite) != p.Suites13[0].Name {
				t.Errorf("%s with %s, want TLS 1.3 with %s", tls.VersionName(state.Version),
					tls.CipherSuiteName(state.CipherSuite), p.Suites13[0].Name)
			}
			state, err = ask(address, &tls.Config{MaxVersion: tls.VersionTLS12})
			switch wanted := has(p.Versions, "TLS 1.2"); {
			case wanted != (err == nil):
				t.Errorf("TLS 1.2: %v, and the policy has it: %v", err, wanted)
			case wanted && !has(p.Suites12, tls.CipherSuiteName(state.CipherSuite)):
				t.Errorf("TLS 1.2 with %s", tls.CipherSuiteName(state.CipherSuite))
			case wanted && p.Order.Value == "server":
				first := slices.IndexFunc(p.Suites12, func(v policy.Value) bool { return strings.Contains(v.Name, "ECDSA_WITH_AES") })
				if got := tls.CipherSuiteName(state.CipherSuite); got != p.Suites12[first].Name {
					t.Errorf("TLS 1.2 with %s instead of %s", got, p.Suites12[first].Name)
				}
			}
			for id, name := range map[tls.CurveID]string{tls.X25519: "x25519", tls.CurveP256: "secp256r1", tls.CurveP384: "secp384r1"} {
				_, err := ask(address, &tls.Config{MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{id}})
				if wanted := has(p.Groups, name); wanted != (err == nil) {
					t.Errorf("%s: %v, and the policy has it: %v", name, err, wanted)
				}
			}
			const weak = tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA
			if _, err := ask(address, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{weak}}); err == nil {
				t.Errorf("%s is accepted", tls.CipherSuiteName(weak))
			}
		})
	}
}

// TestClient: with each policy's configuration, a client connects to a server that offers only one value if
// the policy has that value, and else refuses the connection.
func TestClient(t *testing.T) { testClient(t, false) }

// TestFIPSClient is TestClient of the policies that need FIPS mode. ci/matrix runs it by its name.
func TestFIPSClient(t *testing.T) { testClient(t, true) }

func testClient(t *testing.T, fips bool) {
	for _, p := range policy.All() {
		if p.FIPS != fips {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			config, options := must(t, p, apply.Client)
			config.RootCAs, config.ServerName = tlstest.CA().Pool(), tlstest.ServerName
			ctx, err := ossl.NewContext(config, append(options, ossl.WithoutHostPolicy())...)
			if err != nil {
				t.Fatal(err)
			}
			meet := func(what string, wanted bool, edits ...func(*tls.Config)) {
				t.Helper()
				end := func(conn net.Conn) tlstest.Conn { return ctx.Client(conn, tlstest.ServerName) }
				_, _, err := tlstest.TryVisit(end, tlstest.StdServer(tlstest.ServerConfig(edits...)))
				if wanted != (err == nil) {
					t.Errorf("%s: %v, and the policy has it: %v", what, err, wanted)
				}
			}
			has := func(list []policy.Value, name string) bool {
				return slices.ContainsFunc(list, func(v policy.Value) bool { return v.Name == name && v.Level != policy.PhaseOut })
			}
			tls12 := has(p.Versions, "TLS 1.2")
			meet("TLS 1.3", true)
			meet("TLS 1.2", tls12, tlstest.Only(tls.VersionTLS12))
			for _, id := range []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA} {
				name := tls.CipherSuiteName(id)
				meet(name, tls12 && has(p.Suites12, name), tlstest.Only(tls.VersionTLS12), tlstest.Suites(id))
			}
			for id, name := range map[tls.CurveID]string{tls.X25519: "x25519", tls.CurveP256: "secp256r1", tls.CurveP384: "secp384r1"} {
				meet(name, has(p.Groups, name), tlstest.Only(tls.VersionTLS13), tlstest.Curves(id))
			}
			meet("ed25519", has(p.Signatures, "ed25519"), tlstest.Certificates(tlstest.ServerCert(tlstest.Ed25519)))
		})
	}
}

// TestServerResumes: fast-and-safe resumes in both versions.
func TestServerResumes(t *testing.T) {
	p, err := policy.Get("")
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, p)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cache := tls.NewLRUClientSessionCache(1)
		for i := range 2 {
			state, err := ask(address, &tls.Config{MaxVersion: version, ClientSessionCache: cache})
			if err != nil || state.DidResume != (i == 1) {
				t.Errorf("%s, connection %d: resumed %v, %v", tls.VersionName(version), i, state.DidResume, err)
			}
		}
	}
}

// TestServerAt: dates are followed. By 2032, TLS 1.2 has gone from BSI's policy, and with it the
// classical groups, so that OpenSSL before 3.5 can't follow it.
func TestServerAt(t *testing.T) {
	p, err := policy.Get("bsi")
	if err != nil {
		t.Fatal(err)
	}
	future := p.At(p.Versions[1].Until.AddDate(0, 0, 1))
	if len(future.Versions) != 1 || len(p.Versions) != 2 {
		t.Fatalf("versions are %v, and were %v", future.Versions, p.Versions)
	}
	if same := p.At(p.Versions[1].Until.Time); len(same.Versions) != 2 {
		t.Errorf("the last day is not part of the policy: %v", same.Versions)
	}
	if lib, err := ossl.Library(); err == nil && lib.FIPSRequired != "" {
		t.Skip("OpenSSL is in FIPS mode, which leaves out what other policies have")
	}
	config, _, _, err := apply.Server(future)
	if errors.Is(err, ossl.ErrUnavailable) {
		t.Skip("no OpenSSL: ", err)
	}
	if err == nil && (config.MinVersion != tls.VersionTLS13 || slices.Contains(config.CurvePreferences, tls.CurveP256)) {
		t.Errorf("the configuration is %+v", config)
	}
	if _, pq := ossl.NewContext(&tls.Config{CurvePreferences: []tls.CurveID{tls.X25519MLKEM768}}); (pq == nil) != (err == nil) {
		t.Errorf("error %v, and of post-quantum groups %v", err, pq)
	}
}

// TestServerEnvironment: a key log that can't be written is the error, not that a list of the policy
// is empty.
func TestServerEnvironment(t *testing.T) {
	p, err := policy.Get("default")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := apply.Server(p); err != nil {
		t.Skip("no server here: ", err)
	}
	t.Setenv("OSSL_KEYLOG", filepath.Join(t.TempDir(), "none", "keys"))
	_, _, _, err = apply.Server(p)
	var config *ossl.ConfigError
	if !errors.As(err, &config) || config.Field != "OSSL_KEYLOG" || strings.Contains(err.Error(), "policy") {
		t.Errorf("error %v, want one of OSSL_KEYLOG alone", err)
	}
}
