//go:build (cgo || ossl_nocgo) && linux

package hostpolicy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/libssl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
	"github.com/ossl-go/ossl/session"
)

const (
	alertHandshakeFailure = 40
	alertBadCertificate   = 42
	alertProtocolVersion  = 70
)

var without = ossl.WithoutHostPolicy()

// TestHostPolicy runs each test under its policy, honoured and ignored, in both roles.
func TestHostPolicy(t *testing.T) {
	for _, test := range []struct {
		name, commands string
		check          func(t *testing.T)
	}{
		{"minimum", "MinProtocol = TLSv1.3\n", policyMinimum},
		{"no TLS 1.2", "Protocol = ALL,-TLSv1.2\n", policyMinimum},
		{"maximum", "MaxProtocol = TLSv1.2\n", policyMaximum},
		{"no TLS 1.3", "Protocol = -TLSv1.3\n", policyMaximum},
		{"nothing left", "MaxProtocol = TLSv1.1\n", policyNothingLeft},
		{"ciphers", "CipherString = ECDHE+AES256:!ECDHE-ECDSA-AES256-CCM\n", policyCiphers},
		{"ciphers that crypto/tls lacks", "CipherString = ECDHE-ECDSA-AES256-CCM\n", policyNoCiphers},
		{"suites", "Ciphersuites = TLS_AES_256_GCM_SHA384\n", policySuites},
		{"suites that crypto/tls lacks", "Ciphersuites = TLS_AES_128_CCM_SHA256\n", policyNoSuites},
		{"groups", "Groups = P-384\n", policyGroups},
		{"curves", "Curves = P-384\n", policyGroups},
		{"nothing of what the library lacks", "CipherString = DEFAULT:@SECLEVEL=2\nGroups = P-384\n", policyBlamesLibrary},
		{"signatures", "SignatureAlgorithms = rsa_pss_rsae_sha512:RSA+SHA512\n", policySignatures},
		{"signatures of clients", "ClientSignatureAlgorithms = rsa_pss_rsae_sha384\n", policyClientSignatures},
		{"level 3", "CipherString = DEFAULT:@SECLEVEL=3\n", policyLevel3},
		{"level 4", "CipherString = DEFAULT:@SECLEVEL=4\n", policyLevel4},
		{"level 1", "CipherString = DEFAULT:@SECLEVEL=1\n", policyLevel1},
		{"Suite B", "CipherString = SUITEB128\n", policySuiteB},
		{"no tickets", "Options = -SessionTicket\n", policyNoTickets},
		{"no tickets of TLS 1.3", "NumTickets = 0\n", policyNumTickets},
		{"padding", "RecordPadding = 512\n", policyPadding},
		{"options that restrict", "Options = -EncryptThenMac,-MiddleboxCompat\n", policyRestrictingOptions},
		{"options that weaken", "Options = AllowNoDHEKEX,Compression,-ServerPreference,-NoRenegotiation\n", policyWeakeningOptions},
		{"Debian's, once", "MinProtocol = TLSv1.2\nCipherString = DEFAULT@SECLEVEL=2\n", policyChangesNothing},
		{"what decides nothing", "VerifyMode = Peer,Request\nOptions = Bugs,-Compression\n", policyChangesNothing},
	} {
		t.Run(test.name, func(t *testing.T) { ossltest.UnderPolicy(t, ossltest.PolicyMain+test.commands, test.check) })
	}
	t.Run("none", func(t *testing.T) { ossltest.UnderPolicy(t, "", policyNone) })
}

// policyNone: without a policy, options have their plain meaning.
func policyNone(t *testing.T) {
	p := hostPolicy(t)
	want := ossl.HostPolicy{ConfigFile: p.ConfigFile, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13, SecurityLevel: 2}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("%+v", p)
	}
	small := tlstest.SpecimenNamed("RSA-1024").Cert(tlstest.ServerRole)
	with := func(c *tls.Config) { c.Certificates = []tls.Certificate{small} }
	if _, err := ossl.NewContext(plainServer(with)); err == nil {
		t.Error("RSA-1024 at the default level")
	}
	mustContext(t, plainServer(with), ossl.WithSecurityLevel(1))
	// A level that is named applies to peers, too; TLS 1.2, because 1.1.1 doesn't protect the alert
	// in TLS 1.3.
	rsa := goServer(tlstest.Certificates(tlstest.ServerCert(tlstest.RSA2048)))
	meet(contextClient(t, tlstest.Only(tls.VersionTLS12), ossl.WithSecurityLevel(2)), rsa).works(t)
	meet(contextClient(t, tlstest.Only(tls.VersionTLS12), ossl.WithSecurityLevel(3)), rsa).fails(t, alertBadCertificate)
	meet(contextClient(t, tlstest.Only(tls.VersionTLS12)), goServer(with)).works(t) // as crypto/tls
	policyChangesNothing(t)
}

// policyChangesNothing: the offer is the same with and without the policy.
func policyChangesNothing(t *testing.T) {
	honoured, a := offer(t, contextClient(t, asItIs))
	ignored, b := offer(t, contextClient(t, asItIs, without))
	if !slices.Equal(honoured.CipherSuites, ignored.CipherSuites) ||
		!slices.Equal(honoured.SupportedCurves, ignored.SupportedCurves) ||
		!slices.Equal(honoured.SignatureSchemes, ignored.SignatureSchemes) ||
		!slices.Equal(honoured.SupportedVersions, ignored.SupportedVersions) || len(a) != len(b) {
		t.Errorf("%+v\n%+v", honoured, ignored)
	}
	for _, version := range tlstest.Versions {
		meet(contextClient(t, tlstest.Only(version)), contextServer(t, tlstest.Only(version))).works(t)
		meet(contextClient(t, tlstest.Only(version), without), contextServer(t, tlstest.Only(version), without)).works(t)
	}
}

func policyMinimum(t *testing.T) {
	old := tlstest.Only(tls.VersionTLS12)
	meet(contextClient(t, asItIs), goServer(old)).fails(t, alertProtocolVersion)
	meet(goClient(old), contextServer(t, asItIs)).fails(t, alertProtocolVersion)
	// A floor below the policy's doesn't contradict it.
	floor := func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }
	meet(contextClient(t, floor), goServer(old)).fails(t, alertProtocolVersion)
	meet(goClient(old), contextServer(t, floor)).fails(t, alertProtocolVersion)
	for _, m := range []*meeting{
		meet(contextClient(t, floor), goServer()), meet(goClient(), contextServer(t, floor)),
	} {
		if m.works(t); m.client.Version != tls.VersionTLS13 {
			t.Errorf("version %#x", m.client.Version)
		}
	}
	refuses(t, "MaxVersion", plainClient(old))
	refuses(t, "MaxVersion", plainServer(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }))
	for _, m := range []*meeting{
		meet(contextClient(t, asItIs, without), goServer(old)), meet(goClient(old), contextServer(t, asItIs, without)),
	} {
		if m.works(t); m.client.Version != tls.VersionTLS12 {
			t.Errorf("ignored: version %#x", m.client.Version)
		}
	}
	// A configuration that a callback chooses is held to the policy as well.
	chosen := plainServer(old)
	server := contextServer(t, func(c *tls.Config) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
	})
	m := meet(goClient(), server)
	if e := new(ossl.ConfigError); !errors.As(m.serverErr, &e) || e.Field != "MaxVersion" {
		t.Errorf("GetConfigForClient: %v", m.serverErr)
	}
	// So are the functions without options.
	if _, err := ossl.Listen("tcp", "127.0.0.1:0", chosen); err == nil {
		t.Error("Listen goes past the policy")
	}
	if p := hostPolicy(t); p.MinVersion != tls.VersionTLS13 || p.MaxVersion != tls.VersionTLS13 || p.CipherSuites != nil {
		t.Errorf("%+v", p)
	}
}

func policyMaximum(t *testing.T) {
	for _, m := range []*meeting{
		meet(contextClient(t, asItIs), goServer()), meet(goClient(), contextServer(t, asItIs)),
		meet(contextClient(t, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS13 }), goServer()),
	} {
		if m.works(t); m.client.Version != tls.VersionTLS12 {
			t.Errorf("version %#x", m.client.Version)
		}
	}
	latest := tlstest.Only(tls.VersionTLS13)
	meet(contextClient(t, asItIs), goServer(latest)).fails(t, alertProtocolVersion)
	meet(goClient(latest), contextServer(t, asItIs)).fails(t, alertProtocolVersion)
	refuses(t, "MinVersion", plainClient(latest))
	refuses(t, "MinVersion", plainServer(latest))
	// A hybrid is for TLS 1.3 alone, which the policy takes away, so the library need not have it.
	mustContext(t, plainClient(tlstest.Curves(tls.X25519MLKEM768, tls.CurveP256)))
	for _, m := range []*meeting{
		meet(contextClient(t, asItIs, without), goServer()), meet(goClient(), contextServer(t, asItIs, without)),
	} {
		if m.works(t); m.client.Version != tls.VersionTLS13 {
			t.Errorf("ignored: version %#x", m.client.Version)
		}
	}
}

func policyNothingLeft(t *testing.T) {
	refuses(t, "HostPolicy", plainClient())
	refuses(t, "HostPolicy", plainServer())
	info, err := ossl.Library()
	if err != nil || info.HostPolicy.Err == nil || !strings.Contains(info.HostPolicy.String(), "MaxProtocol = TLSv1.1") {
		t.Errorf("%v, %v", info.HostPolicy, err)
	}
	meet(contextClient(t, asItIs, without), contextServer(t, asItIs, without)).works(t)
}

func policyCiphers(t *testing.T) {
	weak, strong := []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}
	old := func(ids []uint16) func(*tls.Config) {
		return func(c *tls.Config) { c.MaxVersion, c.CipherSuites = tls.VersionTLS12, ids }
	}
	hello, _ := offer(t, contextClient(t, asItIs))
	for _, id := range hello.CipherSuites {
		if name := tls.CipherSuiteName(id); strings.Contains(name, "ECDHE") && !strings.Contains(name, "AES_256") {
			t.Errorf("offers %s", name)
		}
	}
	meet(contextClient(t, asItIs), goServer(old(weak))).fails(t, alertHandshakeFailure)
	meet(goClient(old(weak)), contextServer(t, asItIs)).fails(t, alertHandshakeFailure)
	for _, m := range []*meeting{
		meet(contextClient(t, asItIs), goServer(old(strong))), meet(goClient(old(strong)), contextServer(t, asItIs)),
	} {
		if m.works(t); m.client.CipherSuite != strong[0] {
			t.Errorf("suite %s", tls.CipherSuiteName(m.client.CipherSuite))
		}
	}
	meet(contextClient(t, asItIs), goServer()).works(t) // the policy doesn't concern TLS 1.3
	mustContext(t, plainClient(tlstest.Suites(strong...)))
	refuses(t, "CipherSuites", plainClient(tlstest.Suites(append(strong, weak...)...)))
	refuses(t, "CipherSuites", plainServer(old(weak)))
	meet(contextClient(t, asItIs, without), goServer(old(weak))).works(t)
	meet(goClient(old(weak)), contextServer(t, asItIs, without)).works(t)
}

// policyNoCiphers has a policy whose only cipher is never asked for, which leaves TLS 1.3.
func policyNoCiphers(t *testing.T) {
	old := tlstest.Only(tls.VersionTLS12)
	for _, m := range []*meeting{meet(contextClient(t, asItIs), goServer()), meet(goClient(), contextServer(t, asItIs))} {
		if m.works(t); m.client.Version != tls.VersionTLS13 {
			t.Errorf("version %#x", m.client.Version)
		}
	}
	meet(contextClient(t, asItIs), goServer(old)).fails(t, alertProtocolVersion)
	meet(goClient(old), contextServer(t, asItIs)).fails(t, alertProtocolVersion)
	refuses(t, "CipherSuites", plainClient(old))
}

func policySuites(t *testing.T) {
	const want = tls.TLS_AES_256_GCM_SHA384
	for _, m := range []*meeting{
		meet(contextClient(t, asItIs), goServer()), meet(goClient(), contextServer(t, asItIs)),
		meet(contextClient(t, asItIs, ossl.WithTLS13CipherSuites(want)), goServer()),
	} {
		if m.works(t); m.client.CipherSuite != want {
			t.Errorf("suite %s", tls.CipherSuiteName(m.client.CipherSuite))
		}
	}
	meet(contextClient(t, tlstest.Only(tls.VersionTLS12)), goServer()).works(t)
	weak := ossl.WithTLS13CipherSuites(tls.TLS_AES_128_GCM_SHA256)
	refuses(t, "WithTLS13CipherSuites", plainClient(), weak)
	m := meet(contextClient(t, asItIs, weak, without), contextServer(t, asItIs, without)).works(t)
	if m.client.CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
		t.Errorf("ignored: suite %s", tls.CipherSuiteName(m.client.CipherSuite))
	}
}

// policyNoSuites has a policy whose only suite is never asked for, which leaves TLS 1.2.
func policyNoSuites(t *testing.T) {
	for _, m := range []*meeting{
		meet(contextClient(t, asItIs), goServer()), meet(goClient(), contextServer(t, asItIs)),
	} {
		if m.works(t); m.client.Version != tls.VersionTLS12 {
			t.Errorf("version %#x", m.client.Version)
		}
	}
	refuses(t, "MinVersion", plainClient(tlstest.Only(tls.VersionTLS13)))
	ccm := ossl.WithTLS13CipherSuites(0x1304)
	if m := meet(contextClient(t, asItIs, ccm), contextServer(t, asItIs, ccm)).works(t); m.client.CipherSuite != 0x1304 {
		t.Errorf("suite %#x", m.client.CipherSuite)
	}
}

func policyGroups(t *testing.T) {
	for _, m := range []*meeting{
		meet(contextClient(t, asItIs), goServer()), meet(goClient(), contextServer(t, asItIs)),
		meet(contextClient(t, tlstest.Curves(tls.CurveP384)), goServer()),
	} {
		if m.works(t); m.client.CurveID != tls.CurveP384 {
			t.Errorf("group %v", m.client.CurveID)
		}
	}
	other := tlstest.Curves(tls.X25519)
	meet(contextClient(t, asItIs), goServer(other)).fails(t, alertHandshakeFailure)
	meet(goClient(other), contextServer(t, asItIs)).fails(t, alertHandshakeFailure)
	refuses(t, "CurvePreferences", plainClient(tlstest.Curves(tls.CurveP384, tls.X25519)))
	meet(contextClient(t, asItIs, without), goServer(other)).works(t)
	meet(goClient(other), contextServer(t, asItIs, without)).works(t)
	if p := hostPolicy(t); !slices.Equal(p.Groups, []tls.CurveID{tls.CurveP384}) || p.SignatureSchemes != nil {
		t.Errorf("%+v", p)
	}
}

// policyBlamesLibrary: if the library lacks an ID that the configuration names, the error doesn't
// blame the policy, without which it is the same.
func policyBlamesLibrary(t *testing.T) {
	hybrid := tlstest.Curves(tls.X25519MLKEM768, tls.CurveP384)
	for _, c := range []struct {
		name   string
		config *tls.Config
		opts   []ossl.Option
	}{
		{"suite", plainClient(tlstest.Suites(tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA)), nil},
		{"no suite of TLS 1.2", plainClient(tlstest.Suites(tls.TLS_AES_128_GCM_SHA256), tlstest.Only(tls.VersionTLS12)), nil},
		{"suite of TLS 1.3", plainClient(), []ossl.Option{ossl.WithTLS13CipherSuites(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)}},
		{"signature", plainClient(), []ossl.Option{ossl.WithSignatureAlgorithms(0x0999)}},
		{"group", plainClient(hybrid), []ossl.Option{ossl.WithAllNamed()}},
	} {
		if c.name == "group" && libssl.HasGroup(tls.X25519MLKEM768, false) {
			continue
		}
		_, honoured := ossl.NewContext(c.config, c.opts...)
		_, ignored := ossl.NewContext(c.config, append(c.opts, without)...)
		if honoured == nil || ignored == nil || honoured.Error() != ignored.Error() {
			t.Errorf("%s: %v; without the policy: %v", c.name, honoured, ignored)
		}
	}
	mustContext(t, plainClient(hybrid, tlstest.Only(tls.VersionTLS12))) // a hybrid is for TLS 1.3
}

// requested returns the signature algorithms of a server's CertificateRequest.
func requested(t *testing.T, opts ...ossl.Option) (schemes []tls.SignatureScheme) {
	t.Helper()
	server := contextServer(t, func(c *tls.Config) {
		c.ClientAuth = tls.RequestClientCert
		c.Certificates = []tls.Certificate{tlstest.ServerCert(tlstest.RSA2048)}
	}, opts...)
	meet(goClient(func(c *tls.Config) {
		c.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			schemes = info.SignatureSchemes
			return &tls.Certificate{}, nil
		}
	}), server).works(t)
	return schemes
}

func policySignatures(t *testing.T) {
	want := []tls.SignatureScheme{tls.PSSWithSHA512, tls.PKCS1WithSHA512}
	rsa := tlstest.Certificates(tlstest.ServerCert(tlstest.RSA2048))
	hello, _ := offer(t, contextClient(t, asItIs))
	if got := slices.Clone(hello.SignatureSchemes); !sameElements(got, want) {
		t.Errorf("offers %v", got)
	}
	if got := requested(t); !sameElements(got, want) {
		t.Errorf("asks for %v", got)
	}
	meet(contextClient(t, asItIs), goServer(rsa)).works(t)
	meet(goClient(), contextServer(t, rsa)).works(t)
	if m := meet(contextClient(t, asItIs), goServer()); m.clientErr == nil { // an ECDSA certificate
		t.Error("ECDSA is accepted")
	}
	if m := meet(goClient(), contextServer(t, asItIs)); m.clientErr == nil {
		t.Error("ECDSA is used")
	}
	refuses(t, "WithSignatureAlgorithms", plainClient(), ossl.WithSignatureAlgorithms(tls.PSSWithSHA512, tls.PSSWithSHA256))
	// A certificate's own list does not evade the policy.
	limited := tlstest.ServerCert(tlstest.RSA2048)
	limited.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.PSSWithSHA256}
	if _, err := ossl.NewContext(plainServer(tlstest.Certificates(limited))); err == nil {
		t.Error("a certificate is for another algorithm")
	}
	limited.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.PSSWithSHA256, tls.PSSWithSHA512}
	meet(goClient(), contextServer(t, tlstest.Certificates(limited))).works(t)
	meet(contextClient(t, asItIs, without), goServer()).works(t)
	meet(goClient(), contextServer(t, asItIs, without)).works(t)
}

func policyClientSignatures(t *testing.T) {
	if got := requested(t); !slices.Equal(got, []tls.SignatureScheme{tls.PSSWithSHA384}) {
		t.Errorf("asks for %v", got)
	}
	all := requested(t, without)
	if len(all) < 5 {
		t.Errorf("ignored: asks for %v", all)
	}
	hello, _ := offer(t, contextClient(t, asItIs))
	ignored, _ := offer(t, contextClient(t, asItIs, without))
	if !slices.Equal(hello.SignatureSchemes, ignored.SignatureSchemes) {
		t.Errorf("offers %v, and without %v", hello.SignatureSchemes, ignored.SignatureSchemes)
	}
	asks := goServer(func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool() })
	meet(contextClient(t, tlstest.Certificates(tlstest.ClientCert(tlstest.RSA2048))), asks).works(t)
	limited := tlstest.ClientCert(tlstest.RSA2048)
	limited.SupportedSignatureAlgorithms = []tls.SignatureScheme{tls.PSSWithSHA256}
	if _, err := ossl.NewContext(plainClient(tlstest.Certificates(limited))); err == nil {
		t.Error("a certificate is for another algorithm")
	}
	ecdsa := tlstest.Certificates(tlstest.ClientCert(tlstest.P256))
	if m := meet(contextClient(t, ecdsa), asks); m.serverErr == nil {
		t.Error("a client signs with ECDSA")
	}
	meet(contextClient(t, ecdsa, without), asks).works(t)
}

func policyLevel3(t *testing.T) {
	rsa := tlstest.Certificates(tlstest.ServerCert(tlstest.RSA2048))
	refuses(t, "Certificates", plainServer(rsa))
	refuses(t, "WithSecurityLevel", plainServer(), ossl.WithSecurityLevel(2))
	mustContext(t, plainServer(), ossl.WithSecurityLevel(3))
	meet(contextClient(t, asItIs), contextServer(t, asItIs)).works(t)
	// TLS 1.2, because 1.1.1 doesn't protect the alert in TLS 1.3, which crypto/tls treats as a
	// damaged record.
	meet(contextClient(t, tlstest.Only(tls.VersionTLS12)), goServer(rsa)).fails(t, alertBadCertificate)
	meet(contextClient(t, tlstest.Only(tls.VersionTLS12), without), goServer(rsa)).works(t)
	asks := func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, tlstest.CA().Pool() }
	weak := tlstest.Certificates(tlstest.ClientCert(tlstest.RSA2048))
	meet(goClient(weak), contextServer(t, asks)).fails(t, alertBadCertificate)
	meet(goClient(tlstest.Certificates(tlstest.ClientCert(tlstest.P256))), contextServer(t, asks)).works(t)
	meet(goClient(weak), contextServer(t, asks, without)).works(t)
	if p := hostPolicy(t); p.SecurityLevel != 3 || p.Groups == nil || p.CipherSuites == nil {
		t.Errorf("%+v", p)
	}
}

// policyLevel4: the level leaves out groups, suites and algorithms that nothing else forbids.
func policyLevel4(t *testing.T) {
	hello, _ := offer(t, contextClient(t, asItIs))
	if slices.Contains(hello.SupportedCurves, tls.X25519) || slices.Contains(hello.CipherSuites, tls.TLS_AES_128_GCM_SHA256) {
		t.Errorf("%+v", hello)
	}
	refuses(t, "CurvePreferences", plainClient(tlstest.Curves(tls.X25519)))
	refuses(t, "CipherSuites", plainClient(tlstest.Suites(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)))
	refuses(t, "WithSignatureAlgorithms", plainClient(), ossl.WithSignatureAlgorithms(tls.ECDSAWithP256AndSHA256))
	refuses(t, "WithTLS13CipherSuites", plainClient(), ossl.WithTLS13CipherSuites(tls.TLS_AES_128_GCM_SHA256))
	hello, _ = offer(t, contextClient(t, asItIs, without))
	if !slices.Contains(hello.SupportedCurves, tls.X25519) || !slices.Contains(hello.CipherSuites, tls.TLS_AES_128_GCM_SHA256) {
		t.Errorf("ignored: %+v", hello)
	}
}

// policyLevel1: a policy that asks for less than the default does not get it unless it is asked for
// here too.
func policyLevel1(t *testing.T) {
	small := tlstest.Certificates(tlstest.SpecimenNamed("RSA-1024").Cert(tlstest.ServerRole))
	if _, err := ossl.NewContext(plainServer(small)); err == nil {
		t.Error("RSA-1024 at the default level")
	}
	mustContext(t, plainServer(small), ossl.WithSecurityLevel(1))
	policyChangesNothing(t)
}

func policySuiteB(t *testing.T) {
	hello, _ := offer(t, contextClient(t, asItIs))
	if !sameElements(hello.SupportedCurves, []tls.CurveID{tls.CurveP256, tls.CurveP384}) ||
		!sameElements(hello.SignatureSchemes, []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384}) {
		t.Errorf("%+v", hello)
	}
	for _, version := range tlstest.Versions {
		meet(contextClient(t, tlstest.Only(version)), contextServer(t, tlstest.Only(version))).works(t)
	}
	refuses(t, "CurvePreferences", plainClient(tlstest.Curves(tls.X25519)))
	hello, _ = offer(t, contextClient(t, asItIs, without))
	if !slices.Contains(hello.SupportedCurves, tls.X25519) || !slices.Contains(hello.SignatureSchemes, tls.PSSWithSHA256) ||
		!slices.Contains(hello.CipherSuites, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256) {
		t.Errorf("ignored: %+v", hello)
	}
}

// resumes reports whether a crypto/tls client resumes with a server.
func resumes(t *testing.T, version uint16, opts ...ossl.Option) bool {
	t.Helper()
	server := contextServer(t, func(c *tls.Config) { c.SessionTicketsDisabled = false }, opts...)
	client := goClient(tlstest.Only(version), func(c *tls.Config) { c.ClientSessionCache = tls.NewLRUClientSessionCache(1) })
	meet(client, server).works(t)
	return meet(client, server).works(t).client.DidResume
}

func policyNoTickets(t *testing.T) {
	ring, err := session.NewRing(session.NewTicketKey())
	if err != nil {
		t.Fatal(err)
	}
	tickets := func(c *tls.Config) { c.SessionTicketsDisabled = false }
	refuses(t, "WithTicketKeys", plainServer(tickets), ossl.WithTicketKeys(ring))
	if !resumes(t, tls.VersionTLS13, ossl.WithSessionCache(session.NewCache(8)), ossl.WithTLS13Tickets()) {
		t.Error("not resumed from the cache")
	}
	keyed := plainServer(tickets)
	keyed.SetSessionTicketKeys([][32]byte{{1}})
	refuses(t, "SessionTicketKey", keyed)
	keyed.SessionTicketsDisabled = true
	mustContext(t, keyed)
	for _, version := range tlstest.Versions {
		if resumes(t, version) || !resumes(t, version, without) {
			t.Errorf("%#x: resumes %t, and %t without", version, resumes(t, version), resumes(t, version, without))
		}
	}
	if !hostPolicy(t).NoSessionTickets {
		t.Error("NoSessionTickets is false")
	}
}

func policyNumTickets(t *testing.T) {
	if resumes(t, tls.VersionTLS13) || !resumes(t, tls.VersionTLS13, without) {
		t.Error("TLS 1.3")
	}
	if !resumes(t, tls.VersionTLS12) {
		t.Error("TLS 1.2, which it is not about")
	}
}

// policyPadding: libssl keeps the records, and pads them.
func policyPadding(t *testing.T) {
	longest := func(m *meeting, role tlstest.Role) (n int) {
		records, _ := tlstest.SplitRecords(m.works(t).recording.Bytes(role))
		return len(records[len(records)-2].Payload) // before close_notify
	}
	if n := longest(meet(goClient(), contextServer(t, asItIs)), tlstest.ServerRole); n < 512 {
		t.Errorf("a record of %d bytes", n)
	}
	if n := longest(meet(goClient(), contextServer(t, asItIs, without)), tlstest.ServerRole); n > 100 {
		t.Errorf("ignored: a record of %d bytes", n)
	}
	refuses(t, "WithRecordPath", plainClient(), ossl.WithRecordPath(ossl.RecordsDirect))
}

// hasExtension reports whether a ClientHello has an extension with this content.
func hasExtension(hello []byte, number uint16, content ...byte) bool {
	n := len(content)
	return bytes.Contains(hello, append([]byte{byte(number >> 8), byte(number), byte(n >> 8), byte(n)}, content...))
}

const encryptThenMAC, extendedMasterSecret, pskModes = 22, 23, 45

func policyRestrictingOptions(t *testing.T) {
	_, honoured := offer(t, contextClient(t, asItIs))
	_, ignored := offer(t, contextClient(t, asItIs, without))
	if hasExtension(honoured, encryptThenMAC) || !hasExtension(ignored, encryptThenMAC) {
		t.Error("EncryptThenMac")
	}
	// The session ID of a TLS 1.3 hello is empty except for the sake of middleboxes: RFC 8446,
	// appendix D.4.
	if honoured[43] != 0 || ignored[43] != 32 {
		t.Errorf("MiddleboxCompat: session IDs of %d and %d bytes", honoured[43], ignored[43])
	}
	// There is no ChangeCipherSpec either, not even before the alert that refuses a server.
	for i, opts := range [][]ossl.Option{nil, {without}} {
		m := meet(contextClient(t, tlstest.DenyConn, opts...), goServer(asItIs))
		records, _ := tlstest.SplitRecords(m.recording.Bytes(tlstest.ClientRole))
		sent := tlstest.Shape(records)
		if ccs := slices.Contains(sent, "0x303, type 20: 01"); ccs != (i == 1) && ossltest.SealsRefusals() {
			t.Errorf("MiddleboxCompat, %d options: %q", len(opts), sent)
		}
		if m.clientErr == nil || ossltest.SealsRefusals() && sent[len(sent)-1] != "0x303, 19 bytes" {
			t.Errorf("%v: %q", m.clientErr, sent)
		}
	}
}

func policyWeakeningOptions(t *testing.T) {
	for _, opts := range [][]ossl.Option{nil, {without}} {
		_, hello := offer(t, contextClient(t, asItIs, opts...))
		if !hasExtension(hello, pskModes, 1, 1) || !hasExtension(hello, extendedMasterSecret) {
			t.Errorf("%d options: %x", len(opts), hello)
		}
		suites := hello[43+1+32:] // behind a session ID of 32 bytes
		if methods := suites[2+int(suites[0])<<8+int(suites[1]):][:2]; !bytes.Equal(methods, []byte{1, 0}) {
			t.Errorf("compression methods %x", methods)
		}
	}
	policyChangesNothing(t)
}

func sameElements[E comparable](a, b []E) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(e E) bool { return !slices.Contains(b, e) })
}
