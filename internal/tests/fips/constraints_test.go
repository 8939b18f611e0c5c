//go:build cgo || ossl_nocgo

package fips

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// Kinds of names that are not DNS names, and constraints of theirs.
func emails(list ...string) func(*template) { return func(c *template) { c.EmailAddresses = list } }
func onlyEmails(list ...string) func(*template) {
	return func(c *template) { c.PermittedEmailAddresses = list }
}
func noEmails(list ...string) func(*template) {
	return func(c *template) { c.ExcludedEmailAddresses = list }
}
func onlyURIs(list ...string) func(*template) {
	return func(c *template) { c.PermittedURIDomains = list }
}
func noURIs(list ...string) func(*template) {
	return func(c *template) { c.ExcludedURIDomains = list }
}
func uris(list ...string) func(*template) {
	return func(c *template) {
		for _, text := range list {
			u, err := url.Parse(text)
			if err != nil {
				panic(err)
			}
			c.URIs = append(c.URIs, u)
		}
	}
}

func network(text string) []*net.IPNet {
	_, n, err := net.ParseCIDR(text)
	if err != nil {
		panic(err)
	}
	return []*net.IPNet{n}
}
func onlyIPs(text string) func(*template) {
	return func(c *template) { c.PermittedIPRanges = network(text) }
}
func noIPs(text string) func(*template) {
	return func(c *template) { c.ExcludedIPRanges = network(text) }
}
func pathLength(n int) func(*template) {
	return func(c *template) { c.MaxPathLen, c.MaxPathLenZero = n, n == 0 }
}
func authority(c *template) {
	ca(c)
	c.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
}

// constraintCases are chains with name constraints and path lengths in which libcrypto's judgement may
// differ from crypto/x509's.
var constraintCases = []chainCase{
	{name: "NC, leading dot in a name", root: and(ca, permitted("test")), mid: ca,
		leaf: and(tlsLeaf, names(".test", "server.test"))},
	{name: "NC, empty label", root: and(ca, permitted("test")), mid: ca, leaf: and(tlsLeaf, names("a..test", "server.test"))},
	{name: "NC, blank in a name", root: and(ca, permitted("test")), mid: ca, leaf: and(tlsLeaf, names("a b.test", "server.test"))},
	{name: "NC of another kind, bad name", root: and(ca, onlyEmails("test")), mid: ca,
		leaf: and(tlsLeaf, names(".test", "server.test"))},
	{name: "NC excluded elsewhere, bad name", root: and(ca, excluded("other")), mid: ca,
		leaf: and(tlsLeaf, names(".test", "server.test"))},
	{name: "NC, a bad name in mid", root: and(ca, permitted("test")), mid: and(ca, names(".test")), leaf: tlsLeaf},
	{name: "NC, a forbidden name in mid", root: and(ca, permitted("test")), mid: and(ca, names("other")), leaf: tlsLeaf},
	{name: "NC permits all", root: and(ca, permitted("")), mid: ca, leaf: tlsLeaf},
	{name: "NC excludes all", root: and(ca, excluded("")), mid: ca, leaf: tlsLeaf},
	{name: "NC with another case", root: and(ca, permitted("TEST")), mid: ca, leaf: and(tlsLeaf, names("Server.Test"))},
	{name: "NC in two", root: and(ca, permitted("test")), mid: and(ca, permitted("other")), leaf: tlsLeaf},
	{name: "NC in two that agree", root: and(ca, permitted("test")), mid: and(ca, permitted("server.test")), leaf: tlsLeaf},
	{name: "NC excluded below", root: and(ca, permitted("test")), mid: and(ca, excluded("server.test")), leaf: tlsLeaf},
	{name: "NC of a part of a label", root: and(ca, permitted("erver.test")), mid: ca, leaf: tlsLeaf},
	{name: "NC email, no at", root: and(ca, onlyEmails("test")), mid: ca, leaf: and(tlsLeaf, emails("a.test"))},
	{name: "NC email, two dots", root: and(ca, onlyEmails("test")), mid: ca, leaf: and(tlsLeaf, emails("a..b@test"))},
	{name: "NC email, empty", root: and(ca, onlyEmails("test")), mid: ca, leaf: and(tlsLeaf, emails(""))},
	{name: "NC email, no local part", root: and(ca, onlyEmails("test")), mid: ca, leaf: and(tlsLeaf, emails("@test"))},
	{name: "NC email, host", root: and(ca, onlyEmails("test")), mid: ca, leaf: and(tlsLeaf, emails("a@test"))},
	{name: "NC email, mailbox", root: and(ca, onlyEmails("a@test")), mid: ca, leaf: and(tlsLeaf, emails("a@test"))},
	{name: "NC email, another mailbox", root: and(ca, onlyEmails("a@test")), mid: ca, leaf: and(tlsLeaf, emails("b@test"))},
	{name: "NC email, mailbox excluded", root: and(ca, noEmails("a@test")), mid: ca, leaf: and(tlsLeaf, emails("a@test"))},
	{name: "NC email, bad one under DNS constraints", root: and(ca, permitted("test")), mid: ca, leaf: and(tlsLeaf, emails("bad"))},
	{name: "NC URI", root: and(ca, onlyURIs("test")), mid: ca, leaf: and(tlsLeaf, uris("https://test/"))},
	{name: "NC URI, another", root: and(ca, onlyURIs("test")), mid: ca, leaf: and(tlsLeaf, uris("https://other/"))},
	{name: "NC URI, excluded", root: and(ca, noURIs("test")), mid: ca, leaf: and(tlsLeaf, uris("https://test/"))},
	{name: "NC URI, excluded with a port", root: and(ca, noURIs("test")), mid: ca, leaf: and(tlsLeaf, uris("https://test:8443/"))},
	{name: "NC URI, no host", root: and(ca, onlyURIs("test")), mid: ca, leaf: and(tlsLeaf, uris("urn:x:y"))},
	{name: "NC URI, no host, under DNS constraints", root: and(ca, permitted("test")), mid: ca, leaf: and(tlsLeaf, uris("urn:x:y"))},
	{name: "NC URI, an address", root: and(ca, noURIs("test")), mid: ca, leaf: and(tlsLeaf, uris("https://192.0.2.1/"))},
	{name: "NC IP permitted", root: and(ca, onlyIPs("192.0.2.0/24")), mid: ca, leaf: and(tlsLeaf, address(net.IP{192, 0, 2, 1}))},
	{name: "NC IP of the other family", root: and(ca, onlyIPs("2001:db8::/32")), mid: ca,
		leaf: and(tlsLeaf, address(net.IP{192, 0, 2, 1}))},
	{name: "NC IPv6 excluded", root: and(ca, noIPs("2001:db8::/32")), mid: ca,
		leaf: and(tlsLeaf, address(net.ParseIP("2001:db8::1")))},
	{name: "self-issued and path length", root: ca, mid: and(authority, pathLength(0)), further: authority, selfIssued: true,
		leaf: tlsLeaf},
	{name: "path length of two", root: and(ca, pathLength(1)), mid: ca, further: authority, leaf: tlsLeaf},
	{name: "path length that suffices", root: and(ca, pathLength(2)), mid: ca, further: authority, leaf: tlsLeaf},
	{name: "self-issued with a forbidden name", root: and(ca, permitted("test")), mid: authority,
		further: and(authority, names("other")), selfIssued: true, leaf: tlsLeaf},
	{name: "self-issued with a permitted name", root: and(ca, permitted("test")), mid: authority,
		further: and(authority, names("a.test")), selfIssued: true, leaf: tlsLeaf},
	{name: "NC in further", root: ca, mid: ca, further: and(ca, permitted("other")), leaf: tlsLeaf},
	{name: "NC in root, three below", root: and(ca, excluded("server.test")), mid: ca, further: ca, leaf: tlsLeaf},
}

// TestFIPSValidityEnds: the bounds of a validity belong to it, as for crypto/x509, whichever certificate
// of the chain has them.
func TestFIPSValidityEnds(t *testing.T) {
	ossltest.NeedFIPS(t)
	start := time.Now().Truncate(time.Second).Add(-time.Hour)
	end := start.Add(2 * time.Hour)
	limited := func(c *template) { c.NotBefore, c.NotAfter = start, end }
	wide := func(c *template) { c.NotBefore, c.NotAfter = start.Add(-time.Hour), end.Add(time.Hour) }
	pick := func(is bool) func(*template) {
		if is {
			return limited
		}
		return wide
	}
	for i, of := range []string{"leaf", "intermediate", "root"} {
		c := chainCase{name: "ends " + of, root: and(ca, pick(i == 2)), mid: and(ca, pick(i == 1)), leaf: and(tlsLeaf, pick(i == 0))}
		cert, anchor := c.issue(t)
		peer := tlstest.StdServer(tlstest.ServerConfig(onlyFIPSGroups, tlstest.Certificates(cert)))
		for _, at := range []struct {
			time time.Time
			good bool
		}{
			{start.Add(-time.Second), false}, {start.Add(-1), false}, {start, true}, {start.Add(1), true}, {start.Add(time.Second), true},
			{end.Add(-time.Second), true}, {end.Add(-1), true}, {end, true}, {end.Add(1), false}, {end.Add(time.Second), false},
		} {
			set := func(c *tls.Config) { c.ServerName, c.Time = tlstest.ServerName, func() time.Time { return at.time } }
			std := tlstest.ClientConfig(onlyFIPSGroups, set, func(c *tls.Config) { c.RootCAs = poolOf(anchor) })
			_, _, want := tlstest.TryVisit(tlstest.StdClient(std), peer)
			ctx, err := ossl.NewContext(tlstest.ClientConfig(onlyFIPSGroups, set, ossltest.Approved), ossl.WithFIPS(),
				ossl.WithRoots(ossl.Roots{Certificates: []*x509.Certificate{anchor}}))
			if err != nil {
				t.Fatal(err)
			}
			_, _, got := tlstest.TryVisit(ossltest.ClientOf(ctx), peer)
			if (want == nil) != at.good || (got == nil) != at.good {
				t.Errorf("%s, %v after the end: crypto/tls: %v; in FIPS mode: %v", of, at.time.Sub(end), want, got)
			}
		}
	}
}
