package drivertest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"testing"

	"github.com/go-ldap/ldap/v3"

	"github.com/ossl-go/ossl/dbtls"
)

// startLDAP starts slapd, which takes the password of "cn=app" over TLS only. It returns the ports of
// ldap and ldaps.
func startLDAP(t *testing.T, mutual bool) (plain, secure *home) {
	t.Helper()
	program := lookPath(t, "slapd")
	h := newHome(t)
	verify := "never"
	if mutual {
		verify = "demand"
	}
	config := h.write("slapd.conf", fmt.Appendf(nil, `pidfile %[1]s/pid
argsfile %[1]s/args
include /etc/ldap/schema/core.schema
TLSCertificateFile %[2]s
TLSCertificateKeyFile %[3]s
TLSCACertificateFile %[4]s
TLSVerifyClient %[5]s
security ssf=112
database ldif
suffix "dc=test"
directory %[1]s
rootdn "cn=app,dc=test"
rootpw secret
`, h.dir, h.cert, h.key, h.roots, verify))
	other := *h
	other.port = freePort(t)
	h.start(syscall.SIGTERM, program, "-d", "256", "-f", config, "-h", "ldap://"+h.addr()+" ldaps://"+other.addr())
	return h, &other
}

// slapd on GnuTLS resumes no sessions.
func TestLDAP(t *testing.T) {
	for _, mutual := range []bool{false, true} {
		plain, secure := startLDAP(t, mutual)
		for _, c := range connections {
			if c.mutual != mutual {
				continue
			}
			t.Run("StartTLS/"+c.name, func(t *testing.T) {
				recorder := newRecorder(t, c)
				testLDAP(t, plain, c, recorder.recorded(recorder.DialLDAP))
				testLDAP(t, plain, c, recorder.recorded(recorder.DialLDAP))
				recorder.check(t, c, 2, false)
			})
			t.Run("ldaps/"+c.name, func(t *testing.T) {
				recorder := newRecorder(t, c)
				testLDAP(t, secure, c, recorder.recorded(recorder.DialTLS))
				testLDAP(t, secure, c, recorder.recorded(recorder.DialTLS))
				recorder.check(t, c, 2, false)
			})
		}
		t.Run("untrusted "+strconv.FormatBool(mutual), func(t *testing.T) {
			stranger := newRecorder(t, connections[2], func(c *tls.Config) { c.RootCAs = x509.NewCertPool() })
			if _, err := stranger.DialLDAP(t.Context(), "tcp", plain.addr()); !errors.As(err, new(x509.UnknownAuthorityError)) {
				t.Error(err)
			}
		})
	}
}

func testLDAP(t *testing.T, h *home, c connection, dial dbtls.DialFunc) {
	t.Helper()
	raw, err := dial(t.Context(), "tcp", h.addr())
	if err != nil {
		t.Fatal(err)
	}
	conn := ldap.NewConn(raw, true)
	conn.Start()
	defer conn.Close()
	if err := conn.Bind("cn=app,dc=test", "secret"); err != nil {
		t.Fatal(err)
	}
	if err := conn.StartTLS(&tls.Config{}); err == nil {
		t.Error("go-ldap begins TLS in TLS")
	}
	who, err := conn.WhoAmI(nil)
	if err != nil || who.AuthzID != "dn:cn=app,dc=test" {
		t.Errorf("%v, %v", who, err)
	}
	if !c.mutual {
		return
	}
	// SASL EXTERNAL: the server takes the certificate's name.
	if err := conn.ExternalBind(); err != nil {
		t.Fatal(err)
	}
	if who, err := conn.WhoAmI(nil); err != nil || who.AuthzID != "dn:cn=app" {
		t.Errorf("%v, %v", who, err)
	}
}
