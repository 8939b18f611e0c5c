package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"

	"github.com/ossl-go/ossl"
)

// defaultServerName is the name in the runner's certificates.
const defaultServerName = "test"

// Texts of the callbacks' own errors, for config.json.
var (
	errVerifyFail        = errors.New("bogoshim: chain refused, as requested")
	errFailCertCallback  = errors.New("bogoshim: no certificate, as requested")
	errFailOCSPCallback  = errors.New("bogoshim: OCSP response refused, as requested")
	errFailEarlyCallback = errors.New("bogoshim: no configuration, as requested")
)

// newContext makes the Context for the flags. It records events in seen.
func newContext(s *settings, seen *seen) (*ossl.Context, error) {
	config := &tls.Config{
		ServerName:             defaultServerName,
		SessionTicketsDisabled: s.noTicket,
	}
	if s.hostName != "" {
		config.ServerName = s.hostName
	}
	for _, set := range []func(*settings, *tls.Config) error{
		setVersions, setSuites, setALPN, setVerification, setClientCAs,
	} {
		if err := set(s, config); err != nil {
			return nil, err
		}
	}
	for _, id := range s.curves {
		config.CurvePreferences = append(config.CurvePreferences, tls.CurveID(id))
	}
	var opts []ossl.Option
	if prefs := schemes(s.verifyPrefs); prefs != nil {
		if s.server {
			added := slices.DeleteFunc(slices.Clone(serverSchemes), func(s tls.SignatureScheme) bool { return slices.Contains(prefs, s) })
			prefs = append(prefs, added...)
		}
		opts = append(opts, ossl.WithSignatureAlgorithms(prefs...))
	}
	if err := setCredentials(s, config, seen); err != nil {
		return nil, err
	}
	psk, err := setPSK(s, config)
	if err != nil {
		return nil, err
	}
	opts = append(opts, psk...)
	if !s.pskAlone(config) {
		opts = append(opts, seen.store.configure(s, config)...)
	}
	if seen.peer != nil {
		config.KeyLogWriter = &seen.peer.log
	}
	setHelloChecks(s, config)

	ctx, err := ossl.NewContext(config, opts...)
	var refused *ossl.ConfigError
	if errors.As(err, &refused) {
		return nil, unimplemented(refused.Error())
	}
	return ctx, err
}

func schemes(ids []uint16) []tls.SignatureScheme {
	var out []tls.SignatureScheme
	for _, id := range ids {
		out = append(out, tls.SignatureScheme(id))
	}
	return out
}

// setVersions ignores versions below TLS 1.2, which ossl refuses: tests that also allow those are
// still useful.
func setVersions(s *settings, config *tls.Config) error {
	config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS13
	if s.minVersion > tls.VersionTLS12 || s.noTLS12 {
		config.MinVersion = tls.VersionTLS13
	}
	if s.maxVersion != 0 {
		config.MaxVersion = min(s.maxVersion, config.MaxVersion)
	}
	if s.noTLS13 {
		config.MaxVersion = min(tls.VersionTLS12, config.MaxVersion)
	}
	if config.MaxVersion < config.MinVersion {
		return unimplemented("versions below TLS 1.2")
	}
	return nil
}

// setSuites allows all suites that OpenSSL has, not crypto/tls's default, since the runner uses
// them all.
func setSuites(s *settings, config *tls.Config) error {
	var names []string
	switch s.cipher {
	case "", "DEFAULT:!AES", "3DES", "AES128":
	default:
		if strings.ContainsAny(s.cipher, "[]!+@") {
			return unimplemented("-cipher with groups of equal preference")
		}
		names = strings.Split(s.cipher, ":")
	}
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		switch {
		case strings.Contains(suite.Name, "RC4"): // in no OpenSSL
		case s.cipher == "3DES" && !strings.Contains(suite.Name, "3DES"):
		case s.cipher != "3DES" && strings.Contains(suite.Name, "3DES"): // not in every OpenSSL
		case s.cipher == "DEFAULT:!AES" && strings.Contains(suite.Name, "AES"):
		case s.cipher == "AES128" && !strings.Contains(suite.Name, "AES_128"):
		case names != nil && !slices.Contains(names, suite.Name):
		default:
			config.CipherSuites = append(config.CipherSuites, suite.ID)
		}
	}
	return nil
}

// setPSK sets the pre-shared key. BoringSSL has them in TLS 1.2 alone.
func setPSK(s *settings, config *tls.Config) ([]ossl.Option, error) {
	switch {
	case s.psk == "":
		return nil, nil
	case len(s.psk) < 16:
		return nil, unimplemented("-psk of fewer than 16 bytes")
	case s.pskIdentity == "":
		return nil, unimplemented("-psk without -psk-identity")
	case s.resumeCount > 0:
		return nil, unimplemented("-psk with -resume-count")
	}
	psk := &ossl.PSK{Identity: []byte(s.pskIdentity), Key: []byte(s.psk)}
	opts := []ossl.Option{ossl.WithInsecurePSKWithoutDHE()}
	if s.server {
		opts = append(opts, ossl.WithPSKLookup(func(_ context.Context, identity []byte) (*ossl.PSK, error) {
			if string(identity) != s.pskIdentity {
				return nil, nil
			}
			return psk, nil
		}))
	} else {
		opts = append(opts, ossl.WithPSK(func(context.Context, string) (*ossl.PSK, error) { return psk, nil }))
	}
	if s.pskAlone(config) {
		config.CipherSuites = nil
		return opts, nil
	}
	return append(opts, ossl.WithPSKOrCertificate()), nil
}

// pskAlone reports whether a server has a pre-shared key and no certificate.
func (s *settings) pskAlone(config *tls.Config) bool {
	return s.server && s.psk != "" && len(config.Certificates) == 0 && config.GetCertificate == nil
}

func setALPN(s *settings, config *tls.Config) (err error) {
	if config.NextProtos, err = protocols(s.advertiseALPN); err != nil {
		return err
	}
	switch {
	case s.rejectALPN:
		config.NextProtos = []string{"a protocol that no test offers"}
	case s.declineALPN:
		config.NextProtos = nil
	case s.selectALPN != "":
		config.NextProtos = []string{s.selectALPN}
	}
	return nil
}

// setVerification enables verification of chains if the runner specifies the trusted certificates.
func setVerification(s *settings, config *tls.Config) error {
	pool := x509.NewCertPool()
	if s.trustCert != "" {
		pem, err := os.ReadFile(s.trustCert)
		if err != nil {
			return err
		}
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("no certificate in %s", s.trustCert)
		}
	}
	config.RootCAs = pool
	if s.requireAnyClientCert {
		config.ClientAuth = tls.RequireAnyClientCert
	}
	if s.verifyPeer {
		config.ClientAuth = tls.VerifyClientCertIfGiven
		config.ClientCAs = pool
	}
	if s.verifyPeer || s.requireAnyClientCert || s.customVerify && !s.server {
		// Also for the connections that it accepts: servers don't resume sessions that were made without it.
		config.VerifyPeerCertificate = func(chain [][]byte, _ [][]*x509.Certificate) error {
			if len(chain) == 0 || !s.verifyFail {
				return nil
			}
			return errVerifyFail
		}
	}
	if s.reverifyOnResume && s.verifyFail { // for a session's chain; VerifyPeerCertificate is only called for sent chains
		config.VerifyConnection = func(state tls.ConnectionState) error {
			if state.DidResume {
				return errVerifyFail
			}
			return nil
		}
	}
	if s.ocspCallback && !s.server {
		config.VerifyConnection = func(tls.ConnectionState) error {
			if s.failOCSPCallback {
				return errFailOCSPCallback
			}
			return nil
		}
	}
	return nil
}

// setClientCAs sets the authorities that a server names. A pool holds certificates, so one is made
// for each name.
func setClientCAs(s *settings, config *tls.Config) error {
	if s.useClientCAList == nil {
		return nil
	}
	config.ClientCAs = nil
	if *s.useClientCAList == "<NULL>" || *s.useClientCAList == "<EMPTY>" {
		return nil
	}
	names, err := hexNames(*s.useClientCAList)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	config.ClientCAs = x509.NewCertPool()
	for i, name := range names {
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), RawSubject: name}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			return err
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		config.ClientCAs.AddCert(cert)
	}
	return nil
}

// setHelloChecks sets a server's ClientHello callback if the flags need one. Otherwise there is
// none, as in most programs, and libssl alone reads the hello.
func setHelloChecks(s *settings, config *tls.Config) {
	callback := s.failEarlyCallback || s.earlyCallback || s.ddosCallback
	if !callback && s.expectAdvertisedALPN == "" && s.expectPeerVerifyPrefs == nil && !s.expectNoServerName {
		return
	}
	var chosen *tls.Config
	if s.ddosCallback { // BoringSSL has two callbacks, so there are two ways here: this one chooses another Context
		chosen = config.Clone()
	}
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if s.failEarlyCallback || s.failDDoSCallback {
			return nil, errFailEarlyCallback
		}
		if s.expectAdvertisedALPN != "" {
			want, err := protocols(s.expectAdvertisedALPN)
			if err != nil {
				return nil, err
			}
			if !slices.Equal(hello.SupportedProtos, want) {
				return nil, fmt.Errorf("offered protocols are %q, not %q", hello.SupportedProtos, want)
			}
		}
		if s.expectNoServerName && hello.ServerName != "" {
			return nil, fmt.Errorf("server name is %q, not empty", hello.ServerName)
		}
		return chosen, checkVerifyPrefs(s, hello.SignatureSchemes)
	}
}

func checkVerifyPrefs(s *settings, got []tls.SignatureScheme) error {
	if want := schemes(s.expectPeerVerifyPrefs); want != nil && !slices.Equal(got, want) {
		return fmt.Errorf("peer verifies %v, not %v", got, want)
	}
	return nil
}
