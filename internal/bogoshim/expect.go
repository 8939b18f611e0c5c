package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/ossl-go/ossl"
)

// seen holds facts about a connection that its state doesn't contain.
type seen struct {
	credential int      // the index of the one that signed
	peer       *witness // nil unless the flags need it
	store      *store
	resumes    bool // this is not the first connection
}

// check compares the open connection's state with the flags' expectations.
func check(s *settings, c *ossl.Conn, seen *seen) error {
	state := c.ConnectionState()
	for _, expect := range []func(*settings, *tls.ConnectionState) error{
		expectNames, expectParameters, expectHelloRetry,
	} {
		if err := expect(s, &state); err != nil {
			return err
		}
	}
	if err := expectPeer(s, &state, string(c.PSKIdentity())); err != nil {
		return err
	}
	if err := checkSession(s, &state, seen); err != nil {
		return err
	}
	if want := s.expectSelectedCredential; want != nil && seen.credential != *want {
		return fmt.Errorf("credential %d was used, not %d", seen.credential, *want)
	}
	if seen.peer != nil {
		switch got, err := seen.peer.signature(); {
		case err != nil:
			return err
		case got != s.expectPeerSignature:
			return fmt.Errorf("the peer signed with %#04x, not %#04x", got, s.expectPeerSignature)
		}
	}
	if s.expectExtendedMasterSecret && !hasExtendedMasterSecret(c) {
		return errors.New("no extended master secret")
	}
	return nil
}

func expectNames(s *settings, state *tls.ConnectionState) error {
	want := s.expectALPN
	if s.server {
		want = s.selectALPN
	}
	if state.NegotiatedProtocol != want {
		return fmt.Errorf("protocol is %q, not %q", state.NegotiatedProtocol, want)
	}
	if s.expectServerName != "" && state.ServerName != s.expectServerName {
		return fmt.Errorf("server name is %q, not %q", state.ServerName, s.expectServerName)
	}
	return nil
}

func expectParameters(s *settings, state *tls.ConnectionState) error {
	for _, p := range []struct {
		what      string
		got, want uint16
	}{
		{"version", state.Version, s.expectVersion},
		{"group", uint16(state.CurveID), s.expectCurveID},
		{"suite", state.CipherSuite, s.expectCipher},
	} {
		if p.want != 0 && p.got != p.want {
			return fmt.Errorf("%s is %#04x, not %#04x", p.what, p.got, p.want)
		}
	}
	return nil
}

// expectHelloRetry reads a field that tls.ConnectionState has from Go 1.26 on.
func expectHelloRetry(s *settings, state *tls.ConnectionState) error {
	if !s.expectHRR && !s.expectNoHRR {
		return nil
	}
	field := reflect.ValueOf(state).Elem().FieldByName("HelloRetryRequest")
	if !field.IsValid() {
		return unimplemented("HelloRetryRequest in this version of Go")
	}
	if field.Bool() != s.expectHRR {
		return fmt.Errorf("HelloRetryRequest is %v", field.Bool())
	}
	return nil
}

// expectPeer checks by what the peer has authenticated itself.
func expectPeer(s *settings, state *tls.ConnectionState, identity string) error {
	switch {
	case identity == "":
		return expectCertificates(s, state)
	case identity != s.pskIdentity:
		return fmt.Errorf("bogoshim: the pre-shared key is %q, not %q", identity, s.pskIdentity)
	case len(state.PeerCertificates) > 0:
		return errors.New("bogoshim: a certificate with a pre-shared key")
	}
	return nil
}

func expectCertificates(s *settings, state *tls.ConnectionState) error {
	if (!s.server || s.requireAnyClientCert) && len(state.PeerCertificates) == 0 {
		return errors.New("no certificate from the peer")
	}
	if s.expectVerifyResult && len(state.PeerCertificates) > 0 && len(state.VerifiedChains) == 0 {
		return errors.New("the peer's chain was not verified")
	}
	if s.expectOCSPResponse != nil && !bytes.Equal(state.OCSPResponse, s.expectOCSPResponse) {
		return fmt.Errorf("OCSP response is %x, not %x", state.OCSPResponse, s.expectOCSPResponse)
	}
	if s.expectSCTs != nil {
		want, err := splitSCTs(s.expectSCTs)
		if err != nil {
			return err
		}
		if got := state.SignedCertificateTimestamps; !slices.EqualFunc(got, want, bytes.Equal) {
			return fmt.Errorf("timestamps are %x, not %x", got, want)
		}
	}
	if s.expectPeerCertFile != "" {
		want, err := loadChain(s.expectPeerCertFile)
		if err != nil {
			return err
		}
		var got [][]byte
		for _, cert := range state.PeerCertificates {
			got = append(got, cert.Raw)
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			return fmt.Errorf("the peer's chain of %d is not the one of %d in %s", len(got), len(want), s.expectPeerCertFile)
		}
	}
	return nil
}
