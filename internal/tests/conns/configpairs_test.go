//go:build cgo || ossl_nocgo

package conns

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// TestConfigurationPairs: a session or a verified chain that was made with one configuration doesn't let
// another one, which has the same cache of sessions or ticket keys, accept a peer that crypto/tls refuses.
// All pairs of some properties are tried, with -short a third, in two copies of a configuration, and in one that is
// changed.
func TestConfigurationPairs(t *testing.T) {
	type edit struct {
		name string
		set  func(*tls.Config)
	}
	deny := func(e edit) edit {
		return edit{e.name + ", VerifyPeerCertificate", func(c *tls.Config) {
			e.set(c)
			c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return errors.New("denied") }
		}}
	}
	nothing := edit{"nothing", func(*tls.Config) {}}
	late := edit{"late", func(c *tls.Config) { c.Time = func() time.Time { return time.Now().AddDate(200, 0, 0) } }}
	twin := tlstest.NewAuthorityOf(tlstest.P384, tlstest.CA().Cert.Subject.CommonName, nil, nil)
	renewed := tlstest.NewAuthority(tlstest.CA().Cert.Subject.CommonName, nil, nil) // with the same key
	others := edit{"other roots", func(c *tls.Config) { c.RootCAs = tlstest.OtherCA().Pool() }}
	insecure := edit{"InsecureSkipVerify", tlstest.InsecureSkipVerify}
	edits := map[tlstest.Role][]edit{
		tlstest.ClientRole: {nothing, deny(nothing), late, others, deny(others), insecure, deny(insecure),
			{"VerifyConnection", tlstest.DenyConn},
			{"roots of the same name", func(c *tls.Config) { c.RootCAs = twin.Pool() }},
			{"another name", func(c *tls.Config) { c.ServerName = tlstest.OtherName }},
		},
		tlstest.ServerRole: {nothing, {"VerifyConnection", tlstest.DenyConn}},
	}
	for i, pool := range []*x509.CertPool{tlstest.CA().Pool(), renewed.Pool(), twin.Pool()} {
		for _, mode := range []tls.ClientAuthType{tls.RequireAnyClientCert, tls.RequireAndVerifyClientCert} {
			e := edit{fmt.Sprintf("%v %d", mode, i), func(c *tls.Config) { c.ClientAuth, c.ClientCAs = mode, pool }}
			edits[tlstest.ServerRole] = append(edits[tlstest.ServerRole], e, deny(e))
		}
	}
	// Its issuer is certified by both authorities.
	cross, also := tlstest.NewAuthority("cross", tlstest.CA(), nil), tlstest.NewAuthority("cross", tlstest.OtherCA(), nil)
	cert := tlstest.New(tlstest.Options{Issuer: cross, Chain: []*x509.Certificate{cross.Cert, also.Cert}})

	type end = func(net.Conn, *tls.Config) tlstest.Conn
	ossls := map[tlstest.Role]end{
		tlstest.ClientRole: func(conn net.Conn, c *tls.Config) tlstest.Conn { return ossl.Client(conn, c) },
		tlstest.ServerRole: func(conn net.Conn, c *tls.Config) tlstest.Conn { return ossl.Server(conn, c) },
	}
	stds := map[tlstest.Role]end{tlstest.ClientRole: tlstest.Std.Client, tlstest.ServerRole: tlstest.Std.Server}
	versions := tlstest.Versions
	if testing.Short() {
		versions = versions[1:]
	}
	for _, version := range versions {
		for role, ours := range ossls {
			// run makes two connections with one configuration, and one with the other. It returns the numbers of those
			// that were accepted.
			run := func(ours end, inPlace bool, a, b edit) (accepted string) {
				cc, sc := tlstest.Resuming(version)
				sc.Certificates = []tls.Certificate{cert}
				sc.SetSessionTicketKeys([][32]byte{{1}})
				tlstest.SendCertificate(tlstest.ClientCert(tlstest.P256))(cc)
				own := map[tlstest.Role]*tls.Config{tlstest.ClientRole: cc, tlstest.ServerRole: sc}
				first, second := own[role].Clone(), own[role].Clone()
				a.set(first)
				b.set(second)
				for i, c := range []*tls.Config{first, first, second} {
					if c == second && inPlace {
						c = first
						c.RootCAs, c.ServerName, c.InsecureSkipVerify = second.RootCAs, second.ServerName, second.InsecureSkipVerify
						c.ClientAuth, c.ClientCAs, c.Time = second.ClientAuth, second.ClientCAs, second.Time
						c.VerifyPeerCertificate, c.VerifyConnection = second.VerifyPeerCertificate, second.VerifyConnection
					}
					own[role] = c
					endOf := func(r tlstest.Role) tlstest.End {
						end := stds[r]
						if r == role {
							end = ours
						}
						return func(conn net.Conn) tlstest.Conn { return end(conn, own[r]) }
					}
					if _, _, err := tlstest.TryVisit(endOf(tlstest.ClientRole), endOf(tlstest.ServerRole)); err == nil {
						accepted += fmt.Sprint(i)
					}
				}
				return accepted
			}
			t.Run(tlstest.VersionName(version)+"/"+string(role), func(t *testing.T) {
				for i, a := range edits[role] {
					for j, b := range edits[role] {
						if testing.Short() && (i+j)%3 != 0 {
							continue
						}
						std := run(stds[role], false, a, b)
						for _, inPlace := range []bool{false, true} {
							if got := run(ours, inPlace, a, b); strings.Trim(got, std) != "" {
								t.Errorf("%s, then %s, in place: %v: accepts %q, and crypto/tls %q", a.name, b.name, inPlace, got, std)
							}
						}
					}
				}
			})
		}
	}
}
