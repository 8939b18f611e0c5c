package drivertest

import (
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"
	"github.com/xdg-go/scram"

	"github.com/ossl-go/ossl"
)

// startSCRAM starts slapd with Cyrus SASL's SCRAM, the account uid=app and a channel binding.
func startSCRAM(t *testing.T, binding string) *home {
	t.Helper()
	program := lookPath(t, "slapd")
	if plugin, _ := filepath.Glob("/usr/lib/*/sasl2/libscram.so"); plugin == nil {
		t.Skip("libsasl2-modules is not installed")
	}
	h := newHome(t)
	config := h.write("slapd.conf", fmt.Appendf(nil, `pidfile %[1]s/pid
argsfile %[1]s/args
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
TLSCertificateFile %[2]s
TLSCertificateKeyFile %[3]s
TLSCACertificateFile %[4]s
security ssf=112
sasl-host localhost
sasl-cbinding %[5]s
authz-regexp "uid=([^,]*),cn=.*,cn=auth" "uid=$1,dc=test"
password-hash {CLEARTEXT}
database ldif
suffix "dc=test"
directory %[1]s
rootdn "cn=root,dc=test"
rootpw secret
`, h.dir, h.cert, h.key, h.roots, binding))
	h.start(syscall.SIGTERM, program, "-d", "256", "-f", config, "-h", "ldaps://"+h.addr())
	conn, err := ldap.DialURL("ldaps://"+h.addr(), ldap.DialWithTLSConfig(&tls.Config{RootCAs: ids().roots}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Bind("cn=root,dc=test", "secret"); err != nil {
		t.Fatal(err)
	}
	add := func(dn string, attributes map[string][]string) {
		request := ldap.NewAddRequest(dn, nil)
		for name, values := range attributes {
			request.Attribute(name, values)
		}
		if err := conn.Add(request); err != nil {
			t.Fatal(err)
		}
	}
	add("dc=test", map[string][]string{"objectClass": {"domain"}, "dc": {"test"}})
	add("uid=app,dc=test", map[string][]string{"objectClass": {"inetOrgPerson"}, "uid": {"app"}, "cn": {"app"}, "sn": {"app"},
		"userPassword": {"secret"}})
	return h
}

// bindSCRAM authenticates by SCRAM: RFC 4511, section 4.2. go-ldap, which has no SCRAM, may have the connection then.
func bindSCRAM(conn net.Conn, mechanism string, scram *scram.ClientConversation) error {
	challenge := ""
	for id := int64(1); ; id++ {
		answer, err := scram.Step(challenge)
		if err != nil {
			return err
		}
		sasl := ber.Encode(ber.ClassContext, ber.TypeConstructed, 3, nil, "")
		sasl.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, mechanism, ""))
		sasl.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, answer, ""))
		bind := ber.Encode(ber.ClassApplication, ber.TypeConstructed, 0, nil, "")
		bind.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, 3, ""))
		bind.AppendChild(ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, "", ""))
		bind.AppendChild(sasl)
		request := ber.NewSequence("")
		request.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, id, ""))
		request.AppendChild(bind)
		if _, err := conn.Write(request.Bytes()); err != nil {
			return err
		}
		response, err := ber.ReadPacket(conn)
		if err != nil {
			return err
		}
		err = ldap.GetLDAPError(response)
		if err != nil && !ldap.IsErrorWithCode(err, ldap.LDAPResultSaslBindInProgress) {
			return err
		}
		challenge = ""
		for _, child := range response.Children[1].Children {
			if child.ClassType == ber.ClassContext && child.Tag == 7 { // serverSaslCreds
				challenge = child.Data.String()
			}
		}
		if err == nil { // with the server's proof that it knows the password
			_, err = scram.Step(challenge)
			return err
		}
	}
}

// slapd's bindings have a name of its own, and begin with the name that others have.
func slapdBinding(conn *ossl.Conn, kind string) (scram.ChannelBinding, error) {
	data, err := conn.ChannelBinding(kind)
	return scram.ChannelBinding{Type: "ldap", Data: append([]byte(kind+":"), data...)}, err
}

// TestLDAPSCRAM binds SCRAM to connections with slapd.
func TestLDAPSCRAM(t *testing.T) {
	for _, test := range []struct {
		kind, setting string
		version       uint16
	}{
		{"tls-unique", "tls-unique", tls.VersionTLS12},
		{"tls-server-end-point", "tls-endpoint", tls.VersionTLS12},
		{"tls-server-end-point", "tls-endpoint", tls.VersionTLS13},
	} {
		t.Run(test.kind+"/"+tls.VersionName(test.version), func(t *testing.T) {
			h := startSCRAM(t, test.setting)
			if err := logInLDAP(t, h.addr(), test.kind, test.version); err != nil {
				t.Error(err)
			}
			if err := logInLDAP(t, h.addr(), "", test.version); err != nil {
				t.Errorf("without a binding: %v", err)
			}
			if test.kind != "tls-unique" {
				return
			}
			between := relay(t, h)
			if err := logInLDAP(t, between, test.kind, test.version); err == nil {
				t.Error("someone who has the server's key was not noticed")
			}
			if err := logInLDAP(t, between, "", test.version); err != nil {
				t.Errorf("without a binding, through someone who has the server's key: %v", err)
			}
		})
	}
}

// logInLDAP authenticates a connection with a channel binding, or with none if kind is empty.
func logInLDAP(t *testing.T, addr, kind string, version uint16) error {
	t.Helper()
	ctx, err := ossl.NewContext(&tls.Config{RootCAs: ids().roots, MinVersion: version, MaxVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ctx.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(20 * time.Second))
	client, err := scram.SHA256.NewClient("app", "secret", "")
	if err != nil {
		t.Fatal(err)
	}
	mechanism, conversation := "SCRAM-SHA-256", client.NewConversation()
	if kind != "" {
		binding, err := slapdBinding(raw, kind)
		if err != nil {
			t.Fatal(err)
		}
		mechanism, conversation = "SCRAM-SHA-256-PLUS", client.NewConversationWithChannelBinding(binding)
	}
	if err := bindSCRAM(raw, mechanism, conversation); err != nil {
		return err
	}
	if !conversation.Valid() {
		t.Error("the server has proven nothing")
	}
	conn := ldap.NewConn(raw, true)
	conn.Start()
	defer conn.Close()
	if who, err := conn.WhoAmI(nil); err != nil || who.AuthzID != "dn:uid=app,dc=test" {
		t.Errorf("%v, %v", who, err)
	}
	return nil
}
