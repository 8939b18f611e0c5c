package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ossl-go/ossl/audit"
)

// answers are the statements of a tool, by fact. A fact that the tool doesn't test, or failed to
// test, is not there. The values "yes" and "no" are the most common.
type answers map[string]string

func yes(on bool) string {
	if on {
		return "yes"
	}
	return "no"
}

// The names of facts.
const (
	factOrder       = "order of suites in TLS 1.2"
	factGroups      = "classical groups"
	factPQ          = "post-quantum group"
	factEMS         = "extended_master_secret"
	factSecure      = "secure renegotiation"
	factClient      = "client's renegotiation"
	factCompression = "compression"
	factFallback    = "fallback refused"
	factID          = "resumption by ID"
	factTicket      = "resumption by ticket"
	factEarly       = "early data"
	factExpired     = "leaf expired"
	factName        = "name matches"
	factTrusted     = "chain trusted"
	factChainOrder  = "chain in order"
	factRoot        = "root sent"
	factKey         = "leaf's key"
	factSHA1        = "SHA-1 in the chain"
	factStapled     = "stapled"
)

var versions = []string{"SSL 2", "SSL 3", "TLS 1.0", "TLS 1.1", "TLS 1.2", "TLS 1.3"}

// classical are the groups that all three look for.
var classical = []string{"secp256r1", "secp384r1", "secp521r1", "x25519", "x448"}

// groupList returns the names of the classical groups, sorted, and "none" if there are none.
func groupList(names []string) string {
	var all []string
	for _, name := range names {
		name = strings.ToLower(name)
		if name == "prime256v1" {
			name = "secp256r1"
		}
		if slices.Contains(classical, name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return list(all)
}

func list(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// ourAnswers returns an audit's answers.
func ourAnswers(report *audit.Report) answers {
	a, f := answers{}, &report.Facts
	var groups []string
	groupsTested, pq := false, false
	for name, v := range f.Protocols.Versions {
		if v.State != audit.Tested {
			continue
		}
		a[name] = yes(v.Offered)
		if v.Offered && name != "SSL 2" {
			a["suites of "+name] = list(slices.Clone(v.Suites))
			a["partial "+name], a["inherits "+name] = yes(v.Partial != ""), yes(v.Inherits)
			groupsTested = true
		}
		groups = append(groups, v.Groups...)
		for _, g := range v.Groups {
			pq = pq || strings.Contains(g, "MLKEM")
		}
		if name == "TLS 1.2" && v.Offered && v.Order != "" {
			a[factOrder], _, _ = strings.Cut(v.Order, ",")
		}
	}
	if groupsTested {
		a[factGroups], a[factPQ] = groupList(groups), yes(pq)
	}
	for fact, s := range map[string]audit.Switch{
		factEMS: f.Options.ExtendedMaster, factSecure: f.Options.SecureRenegotiation, factClient: f.Options.ClientRenegotiation,
		factCompression: f.Options.Compression, factFallback: f.Options.Fallback,
	} {
		if s.State == audit.Tested {
			a[fact] = yes(s.On)
		}
	}
	if f.EarlyData.State == audit.Tested {
		a[factEarly] = yes(f.EarlyData.Accepted)
	}
	resumption(a, &f.Resumption)
	certificates(a, f, report.At)
	return a
}

func resumption(a answers, r *audit.ResumptionFacts) {
	if r.ID12.State == audit.Tested {
		a[factID] = yes(r.ID12.Hits > 0)
	}
	if r.Ticket12.State == audit.Tested || r.Ticket13.State == audit.Tested {
		a[factTicket] = yes(r.Ticket12.Hits > 0 || r.Ticket13.Hits > 0)
	}
}

func certificates(a answers, f *audit.Facts, at string) {
	if f.Certificates.State != audit.Tested || len(f.Certificates.Chains) == 0 {
		return
	}
	c := f.Certificates.Chains[0]
	if len(c.Certificates) == 0 || c.Certificates[0].Error != "" {
		return
	}
	leaf := c.Certificates[0]
	a[factExpired] = yes(leaf.NotAfter.Format("2006-01-02") < at)
	a[factName] = yes(c.NameError == "")
	a[factTrusted] = yes(c.Trusted)
	a[factChainOrder] = yes(c.InOrder)
	a[factRoot] = yes(c.Root)
	a[factKey] = c.Key
	sha1 := false
	for _, one := range c.Certificates {
		sha1 = sha1 || strings.Contains(one.Signature, "SHA1")
	}
	a[factSHA1] = yes(sha1)
	a[factStapled] = yes(c.Stapled)
}

// testsslAnswers returns the answers in testssl.sh's JSON.
func testsslAnswers(b []byte) (answers, error) {
	var lines []struct{ ID, Severity, Finding string }
	if err := json.Unmarshal(b, &lines); err != nil {
		return nil, err
	}
	a := answers{}
	suites := map[string][]string{}
	ids := map[string]string{"SSLv2": "SSL 2", "SSLv3": "SSL 3", "TLS1": "TLS 1.0", "TLS1_1": "TLS 1.1", "TLS1_2": "TLS 1.2",
		"TLS1_3": "TLS 1.3"}
	prefixes := map[string]string{
		"cipher-ssl3_": "SSL 3", "cipher-tls1_x": "TLS 1.0", "cipher-tls1_1_": "TLS 1.1", "cipher-tls1_2_": "TLS 1.2",
		"cipher-tls1_3_": "TLS 1.3",
	}
	for _, l := range lines {
		if version := ids[l.ID]; version != "" && l.Severity != "WARN" {
			a[version] = yes(!strings.Contains(l.Finding, "not offered"))
		}
		for prefix, version := range prefixes {
			if fields := strings.Fields(l.Finding); strings.HasPrefix(l.ID, prefix) && len(fields) > 0 {
				suites[version] = append(suites[version], fields[len(fields)-1])
			}
		}
		if l.Severity != "WARN" {
			testsslLine(a, l.ID, l.Severity, l.Finding)
		}
	}
	for version, all := range suites {
		a["suites of "+version] = list(all)
	}
	return a, nil
}

func testsslLine(a answers, id, severity, finding string) {
	supported := yes(!strings.Contains(finding, "not supported") && !strings.Contains(finding, "not offered") &&
		!strings.Contains(finding, "no resumption"))
	switch id {
	case "cipher_order-tls1_2":
		a[factOrder], _, _ = strings.Cut(finding, " ")
		if strings.HasPrefix(finding, "NOT a") {
			a[factOrder] = "client"
		}
	case "FS_ECDHE_curves":
		a[factGroups] = groupList(strings.Fields(finding))
	case "FS_KEMs":
		a[factPQ] = yes(!strings.HasPrefix(finding, "No KEMs"))
	case "TLS_extensions":
		a[factEMS] = yes(strings.Contains(finding, "extended master secret"))
	case "secure_renego":
		a[factSecure] = supported
	case "secure_client_renego":
		a[factClient] = yes(severity != "OK")
	case "CRIME_TLS":
		if finding == "TLS 1.3 only server" {
			return
		}
		a[factCompression] = yes(!strings.Contains(finding, "not vulnerable"))
	case "fallback_SCSV":
		if !strings.Contains(finding, "no protocol below") && !strings.Contains(finding, "only") {
			a[factFallback] = supported
		}
	case "sessionresumption_ID":
		a[factID] = supported
	case "sessionresumption_ticket":
		a[factTicket] = supported
	case "cert_expirationStatus":
		a[factExpired] = yes(strings.Contains(finding, "expired"))
	case "cert_trust":
		a[factName] = yes(strings.HasPrefix(finding, "Ok"))
	case "cert_chain_of_trust":
		a[factTrusted] = yes(strings.HasPrefix(finding, "passed"))
	case "certs_list_ordering_problem":
		a[factChainOrder] = yes(finding == "no")
	case "cert_keySize":
		a[factKey] = keyName(finding)
	case "cert_signatureAlgorithm":
		a[factSHA1] = yes(strings.Contains(finding, "SHA1"))
	case "OCSP_stapling":
		a[factStapled] = supported
	}
}

// keyName returns testssl.sh's "EC 256 bits (curve P-256)" and "RSA 2048 bits" as we write them.
func keyName(finding string) string {
	fields := strings.Fields(finding)
	switch {
	case len(fields) < 2:
		return finding
	case fields[0] == "EC":
		return fmt.Sprintf("ECDSA secp%sr1", fields[1])
	}
	return fields[0] + " " + fields[1]
}
