package main

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// settings are the values of the runner's flags, under similar names.
type settings struct {
	// The protocol between runner and shim.
	port                  int
	shimID                uint64
	ipv6                  bool
	isHandshakerSupported bool
	unimplementedLog      string // ci/bogo's own flag: a file for the causes of unimplemented tests

	// The configuration.
	server                 bool
	minVersion, maxVersion uint16
	noTLS12, noTLS13       bool
	cipher                 string
	curves, verifyPrefs    []uint16
	trustCert, hostName    string
	credentials            []*credential // -new-x509-credential
	credential             credential    // the one without that flag
	psk, pskIdentity       string
	noTicket               bool
	verifyPeer             bool
	requireAnyClientCert   bool
	verifyFail             bool
	customVerify           bool
	failCertCallback       bool
	failEarlyCallback      bool
	earlyCallback          bool
	ddosCallback           bool
	failDDoSCallback       bool
	useClientCAList        *string
	advertiseALPN          string
	selectALPN             string
	declineALPN            bool
	rejectALPN             bool
	expectAdvertisedALPN   string
	resumeCount            int
	sessionCache           bool // ci/bogo's own flag: servers have a session cache
	renewTicket            bool
	skipTicket             bool
	reverifyOnResume       bool
	oldClientCertCallback  bool
	ocspCallback           bool
	failOCSPCallback       bool
	declineOCSPCallback    bool

	// Operations.
	async                      bool
	implicitHandshake          bool
	handshakeTwice             bool
	noOpExtraHandshake         bool
	shimWritesFirst            bool
	shimShutsDown              bool
	checkCloseNotify           bool
	writeDifferentRecordSizes  bool
	readSize                   int
	exportKeyingMaterial       int
	exportLabel, exportContext string
	useExportContext           bool
	useExporterBetweenReads    bool
	tlsUnique                  bool

	// Expectations.
	expectVersion              uint16
	expectALPN                 string
	expectServerName           string
	expectNoServerName         bool
	expectCurveID              uint16
	expectCipher               uint16
	expectHRR, expectNoHRR     bool
	expectOCSPResponse         []byte
	expectSCTs                 []byte
	expectPeerCertFile         string
	expectPeerVerifyPrefs      []uint16
	expectClientCAList         *string
	expectSelectedCredential   *int
	expectVerifyResult         bool
	expectPeerSignature        uint16
	expectExtendedMasterSecret bool
	expectSessionMiss          bool
	expectNoSession            bool
	expectTicketRenewal        bool
	expectSessionID            bool
	expectNoSessionID          bool
}

// credential is a certificate with its key and their properties.
type credential struct {
	certFile, keyFile string
	signingPrefs      []uint16
	ocspResponse      []byte
	scts              []byte
	mustMatchIssuer   bool
}

// flags maps the flags that the shim knows to their effects. A flag's value comes from next. A flag
// that is not here is unimplemented, and so is every test that needs it.
var flags = map[string]func(s *settings, next func() string) error{
	"-port":                    number(func(s *settings) *int { return &s.port }),
	"-shim-id":                 number(func(s *settings) *uint64 { return &s.shimID }),
	"-ipv6":                    boolean(func(s *settings) *bool { return &s.ipv6 }),
	"-is-handshaker-supported": boolean(func(s *settings) *bool { return &s.isHandshakerSupported }),
	"-unimplemented-log":       text(func(s *settings) *string { return &s.unimplementedLog }),
	"-with-session-cache":      boolean(func(s *settings) *bool { return &s.sessionCache }),

	"-server":       boolean(func(s *settings) *bool { return &s.server }),
	"-min-version":  number(func(s *settings) *uint16 { return &s.minVersion }),
	"-max-version":  number(func(s *settings) *uint16 { return &s.maxVersion }),
	"-no-tls1":      nothing, // never supported
	"-no-tls11":     nothing,
	"-no-tls12":     boolean(func(s *settings) *bool { return &s.noTLS12 }),
	"-no-tls13":     boolean(func(s *settings) *bool { return &s.noTLS13 }),
	"-cipher":       text(func(s *settings) *string { return &s.cipher }),
	"-curves":       list(func(s *settings) *[]uint16 { return &s.curves }),
	"-verify-prefs": list(func(s *settings) *[]uint16 { return &s.verifyPrefs }),
	"-trust-cert":   text(func(s *settings) *string { return &s.trustCert }),
	"-host-name":    text(func(s *settings) *string { return &s.hostName }),
	"-new-x509-credential": func(s *settings, _ func() string) error {
		s.credentials = append(s.credentials, &credential{})
		return nil
	},
	"-cert-file":                      text(func(s *settings) *string { return &s.current().certFile }),
	"-key-file":                       text(func(s *settings) *string { return &s.current().keyFile }),
	"-signing-prefs":                  list(func(s *settings) *[]uint16 { return &s.current().signingPrefs }),
	"-ocsp-response":                  bytesOf(func(s *settings) *[]byte { return &s.current().ocspResponse }),
	"-signed-cert-timestamps":         bytesOf(func(s *settings) *[]byte { return &s.current().scts }),
	"-psk":                            text(func(s *settings) *string { return &s.psk }),
	"-psk-identity":                   text(func(s *settings) *string { return &s.pskIdentity }),
	"-no-ticket":                      boolean(func(s *settings) *bool { return &s.noTicket }),
	"-verify-peer":                    boolean(func(s *settings) *bool { return &s.verifyPeer }),
	"-require-any-client-certificate": boolean(func(s *settings) *bool { return &s.requireAnyClientCert }),
	"-verify-fail":                    boolean(func(s *settings) *bool { return &s.verifyFail }),
	"-use-custom-verify-callback":     boolean(func(s *settings) *bool { return &s.customVerify }),
	"-fail-cert-callback":             boolean(func(s *settings) *bool { return &s.failCertCallback }),
	"-fail-early-callback":            boolean(func(s *settings) *bool { return &s.failEarlyCallback }),
	"-use-early-callback":             boolean(func(s *settings) *bool { return &s.earlyCallback }),
	"-install-ddos-callback":          boolean(func(s *settings) *bool { return &s.ddosCallback }),
	"-fail-ddos-callback":             boolean(func(s *settings) *bool { return &s.failDDoSCallback }),
	"-use-client-ca-list":             optional(func(s *settings) **string { return &s.useClientCAList }),
	"-advertise-alpn":                 text(func(s *settings) *string { return &s.advertiseALPN }),
	"-select-alpn":                    text(func(s *settings) *string { return &s.selectALPN }),
	"-decline-alpn":                   boolean(func(s *settings) *bool { return &s.declineALPN }),
	"-reject-alpn":                    boolean(func(s *settings) *bool { return &s.rejectALPN }),
	"-expect-advertised-alpn":         text(func(s *settings) *string { return &s.expectAdvertisedALPN }),
	"-resume-count":                   number(func(s *settings) *int { return &s.resumeCount }),
	"-use-ticket-callback":            nothing, // the shim always has its own keys
	"-renew-ticket":                   boolean(func(s *settings) *bool { return &s.renewTicket }),
	"-skip-ticket":                    boolean(func(s *settings) *bool { return &s.skipTicket }),
	"-reverify-on-resume":             boolean(func(s *settings) *bool { return &s.reverifyOnResume }),
	"-must-match-issuer":              boolean(func(s *settings) *bool { return &s.current().mustMatchIssuer }),
	"-use-old-client-cert-callback":   boolean(func(s *settings) *bool { return &s.oldClientCertCallback }),
	"-use-ocsp-callback":              boolean(func(s *settings) *bool { return &s.ocspCallback }),
	"-fail-ocsp-callback":             boolean(func(s *settings) *bool { return &s.failOCSPCallback }),
	"-decline-ocsp-callback":          boolean(func(s *settings) *bool { return &s.declineOCSPCallback }),
	"-set-ocsp-in-callback":           nothing, // GetCertificate always sets it
	// Clients always ask for both, as in crypto/tls.
	"-enable-ocsp-stapling":          nothing,
	"-enable-signed-cert-timestamps": nothing,

	"-async":                        boolean(func(s *settings) *bool { return &s.async }),
	"-implicit-handshake":           boolean(func(s *settings) *bool { return &s.implicitHandshake }),
	"-handshake-twice":              boolean(func(s *settings) *bool { return &s.handshakeTwice }),
	"-no-op-extra-handshake":        boolean(func(s *settings) *bool { return &s.noOpExtraHandshake }),
	"-shim-writes-first":            boolean(func(s *settings) *bool { return &s.shimWritesFirst }),
	"-shim-shuts-down":              boolean(func(s *settings) *bool { return &s.shimShutsDown }),
	"-check-close-notify":           boolean(func(s *settings) *bool { return &s.checkCloseNotify }),
	"-write-different-record-sizes": boolean(func(s *settings) *bool { return &s.writeDifferentRecordSizes }),
	"-read-size":                    number(func(s *settings) *int { return &s.readSize }),
	"-export-keying-material":       number(func(s *settings) *int { return &s.exportKeyingMaterial }),
	"-export-label":                 text(func(s *settings) *string { return &s.exportLabel }),
	"-export-context":               text(func(s *settings) *string { return &s.exportContext }),
	"-use-export-context":           boolean(func(s *settings) *bool { return &s.useExportContext }),
	"-use-exporter-between-reads":   boolean(func(s *settings) *bool { return &s.useExporterBetweenReads }),
	"-tls-unique":                   boolean(func(s *settings) *bool { return &s.tlsUnique }),

	"-expect-version":                number(func(s *settings) *uint16 { return &s.expectVersion }),
	"-expect-alpn":                   text(func(s *settings) *string { return &s.expectALPN }),
	"-expect-server-name":            text(func(s *settings) *string { return &s.expectServerName }),
	"-expect-no-server-name":         boolean(func(s *settings) *bool { return &s.expectNoServerName }),
	"-expect-curve-id":               number(func(s *settings) *uint16 { return &s.expectCurveID }),
	"-expect-cipher":                 number(func(s *settings) *uint16 { return &s.expectCipher }),
	"-expect-hrr":                    boolean(func(s *settings) *bool { return &s.expectHRR }),
	"-expect-no-hrr":                 boolean(func(s *settings) *bool { return &s.expectNoHRR }),
	"-expect-ocsp-response":          bytesOf(func(s *settings) *[]byte { return &s.expectOCSPResponse }),
	"-expect-signed-cert-timestamps": bytesOf(func(s *settings) *[]byte { return &s.expectSCTs }),
	"-expect-peer-cert-file":         text(func(s *settings) *string { return &s.expectPeerCertFile }),
	"-expect-peer-verify-pref":       list(func(s *settings) *[]uint16 { return &s.expectPeerVerifyPrefs }),
	"-expect-client-ca-list":         optional(func(s *settings) **string { return &s.expectClientCAList }),
	"-expect-selected-credential": func(s *settings, next func() string) error {
		s.expectSelectedCredential = new(int)
		return set(s.expectSelectedCredential, next())
	},
	"-expect-peer-signature-algorithm": number(func(s *settings) *uint16 { return &s.expectPeerSignature }),
	"-expect-verify-result":            boolean(func(s *settings) *bool { return &s.expectVerifyResult }),
	"-expect-extended-master-secret":   boolean(func(s *settings) *bool { return &s.expectExtendedMasterSecret }),
	"-expect-session-miss":             boolean(func(s *settings) *bool { return &s.expectSessionMiss }),
	"-expect-no-session":               boolean(func(s *settings) *bool { return &s.expectNoSession }),
	"-expect-ticket-renewal":           boolean(func(s *settings) *bool { return &s.expectTicketRenewal }),
	"-expect-session-id":               boolean(func(s *settings) *bool { return &s.expectSessionID }),
	"-expect-no-session-id":            boolean(func(s *settings) *bool { return &s.expectNoSessionID }),
}

// A test is the result of parsing the flags.
type test struct {
	initial settings // of the first connection
	resume  settings // of later ones
}

// prefixes begin flags for one kind of connection only; other flags apply to all. Flags with
// -on-retry- apply to connections that continue after 0-RTT data was rejected. There are none, so
// such flags must be known but have no effect.
var prefixes = map[string]func(t *test) []*settings{
	"-on-initial-": func(t *test) []*settings { return []*settings{&t.initial} },
	"-on-resume-":  func(t *test) []*settings { return []*settings{&t.resume} },
	"-on-retry-":   func(*test) []*settings { return []*settings{{}} },
}

// parseFlags parses the command line. It returns a test even with an error, since that names the
// log.
func parseFlags(args []string) (*test, error) {
	t := &test{}
	for len(args) > 0 {
		name, to := args[0], []*settings{&t.initial, &t.resume}
		args = args[1:]
		for prefix, choose := range prefixes {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				name, to = "-"+rest, choose(t)
			}
		}
		apply := flags[name]
		if apply == nil {
			return t, unimplemented(name)
		}
		rest := args
		for _, s := range to { // each parses the same value
			args = rest
			missing := false
			next := func() string {
				if missing = len(args) == 0; missing {
					return ""
				}
				value := args[0]
				args = args[1:]
				return value
			}
			err := apply(s, next)
			if missing {
				return t, fmt.Errorf("flag %s has no value", name)
			}
			if err != nil {
				return t, fmt.Errorf("flag %s: %w", name, err)
			}
		}
	}
	return t, errors.Join(t.initial.checkCombinations(), t.resume.checkCombinations())
}

// checkCombinations returns an error for flags that are unimplemented in some roles only.
func (s *settings) checkCombinations() error {
	if !s.server {
		return nil
	}
	for _, c := range s.credentials {
		if c.mustMatchIssuer { // a client's always has to; a server ignores the client's authorities
			return unimplemented("-must-match-issuer of a server")
		}
	}
	return nil
}

// current returns the credential that credential flags apply to.
func (s *settings) current() *credential {
	if n := len(s.credentials); n > 0 {
		return s.credentials[n-1]
	}
	return &s.credential
}

type apply = func(s *settings, next func() string) error

func nothing(*settings, func() string) error { return nil }

func boolean(field func(*settings) *bool) apply {
	return func(s *settings, _ func() string) error {
		*field(s) = true
		return nil
	}
}

func text(field func(*settings) *string) apply {
	return func(s *settings, next func() string) error {
		*field(s) = next()
		return nil
	}
}

func optional(field func(*settings) **string) apply {
	return func(s *settings, next func() string) error {
		value := next()
		*field(s) = &value
		return nil
	}
}

func number[N int | uint16 | uint64](field func(*settings) *N) apply {
	return func(s *settings, next func() string) error { return set(field(s), next()) }
}

func set[N int | uint16 | uint64](n *N, value string) error {
	_, err := fmt.Sscan(value, n)
	return err
}

func list(field func(*settings) *[]uint16) apply {
	return func(s *settings, next func() string) error {
		n, err := strconv.ParseUint(next(), 10, 16)
		*field(s) = append(*field(s), uint16(n))
		return err
	}
}

func bytesOf(field func(*settings) *[]byte) apply {
	return func(s *settings, next func() string) (err error) {
		*field(s), err = base64.StdEncoding.DecodeString(next())
		return err
	}
}

// hexNames parses a list of DER names in hexadecimal.
func hexNames(list string) ([][]byte, error) {
	var names [][]byte
	for part := range strings.SplitSeq(list, ",") {
		name, err := hex.DecodeString(part)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// protocols parses a list of ALPN names in wire format: each is preceded by its length in one byte.
func protocols(wire string) ([]string, error) {
	var names []string
	for len(wire) > 0 {
		n := int(wire[0])
		if n >= len(wire) {
			return nil, fmt.Errorf("malformed list of protocols %q", wire)
		}
		names = append(names, wire[1:1+n])
		wire = wire[1+n:]
	}
	return names, nil
}
