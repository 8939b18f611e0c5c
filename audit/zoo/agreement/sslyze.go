package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A part is the result of one of sslyze's plugins.
type part[T any] struct {
	Status string `json:"status"`
	Result *T     `json:"result"`
}

type sslyzeSuites struct {
	Supported bool `json:"is_tls_version_supported"`
	Accepted  []struct {
		Suite struct{ Name string } `json:"cipher_suite"`
	} `json:"accepted_cipher_suites"`
}

type sslyzeScan struct {
	SSL2        part[sslyzeSuites] `json:"ssl_2_0_cipher_suites"`
	SSL3        part[sslyzeSuites] `json:"ssl_3_0_cipher_suites"`
	TLS10       part[sslyzeSuites] `json:"tls_1_0_cipher_suites"`
	TLS11       part[sslyzeSuites] `json:"tls_1_1_cipher_suites"`
	TLS12       part[sslyzeSuites] `json:"tls_1_2_cipher_suites"`
	TLS13       part[sslyzeSuites] `json:"tls_1_3_cipher_suites"`
	Compression part[struct {
		On bool `json:"supports_compression"`
	}] `json:"tls_compression"`
	Early part[struct {
		On bool `json:"supports_early_data"`
	}] `json:"tls_1_3_early_data"`
	Fallback part[struct {
		On bool `json:"supports_fallback_scsv"`
	}] `json:"tls_fallback_scsv"`
	EMS part[struct {
		On bool `json:"supports_ems_extension"`
	}] `json:"tls_extended_master_secret"`
	Renegotiation part[struct {
		Secure bool `json:"supports_secure_renegotiation"`
		Client bool `json:"is_vulnerable_to_client_renegotiation_dos"`
	}] `json:"session_renegotiation"`
	Resumption part[struct {
		ID     string `json:"session_id_resumption_result"`
		Ticket string `json:"tls_ticket_resumption_result"`
	}] `json:"session_resumption"`
	Groups part[struct {
		Any  bool                    `json:"supports_ecdh_key_exchange"`
		List []struct{ Name string } `json:"supported_curves"`
	}] `json:"elliptic_curves"`
	Certificates part[sslyzeCertificates] `json:"certificate_info"`
}

type sslyzeCertificates struct {
	Deployments []struct {
		Received []struct {
			NotAfter time.Time `json:"not_valid_after"`
			Key      struct {
				Algorithm string `json:"algorithm"`
				Size      int    `json:"key_size"`
			} `json:"public_key"`
			Hash *struct{ Name string } `json:"signature_hash_algorithm"`
		} `json:"received_certificate_chain"`
		InOrder *bool `json:"received_chain_has_valid_order"`
		Anchor  *bool `json:"received_chain_contains_anchor_certificate"`
		Paths   []struct {
			OK bool `json:"was_validation_successful"`
		} `json:"path_validation_results"`
		OCSP json.RawMessage `json:"ocsp_response"`
	} `json:"certificate_deployments"`
}

// sslyzeAnswers returns the answers in sslyze's JSON.
func sslyzeAnswers(b []byte) (answers, error) {
	var all struct {
		Results []struct {
			Scan *sslyzeScan `json:"scan_result"`
		} `json:"server_scan_results"`
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	if len(all.Results) != 1 {
		return nil, fmt.Errorf("%w: results of %d servers", errors.ErrUnsupported, len(all.Results))
	}
	a, s := answers{}, all.Results[0].Scan
	if s == nil { // it could not connect with any version that it knows
		return a, nil
	}
	for i, p := range []part[sslyzeSuites]{s.SSL2, s.SSL3, s.TLS10, s.TLS11, s.TLS12, s.TLS13} {
		if p.Result == nil {
			continue
		}
		a[versions[i]] = yes(p.Result.Supported)
		var suites []string
		for _, one := range p.Result.Accepted {
			suites = append(suites, one.Suite.Name)
		}
		if p.Result.Supported && i > 0 {
			a["suites of "+versions[i]] = list(suites)
		}
	}
	s.switches(a)
	if r := s.Resumption.Result; r != nil {
		for fact, state := range map[string]string{factID: r.ID, factTicket: r.Ticket} {
			switch state {
			case "FULLY_SUPPORTED", "PARTIALLY_SUPPORTED":
				a[fact] = "yes"
			case "NOT_SUPPORTED":
				a[fact] = "no"
			}
		}
	}
	if g := s.Groups.Result; g != nil {
		var names []string
		for _, one := range g.List {
			names = append(names, one.Name)
		}
		a[factGroups] = groupList(names)
	}
	if c := s.Certificates.Result; c != nil {
		c.answer(a)
	}
	return a, nil
}

func (s *sslyzeScan) switches(a answers) {
	if s.Compression.Result != nil {
		a[factCompression] = yes(s.Compression.Result.On)
	}
	if s.Early.Result != nil {
		a[factEarly] = yes(s.Early.Result.On)
	}
	if s.Fallback.Result != nil {
		a[factFallback] = yes(s.Fallback.Result.On)
	}
	if s.EMS.Result != nil {
		a[factEMS] = yes(s.EMS.Result.On)
	}
	if r := s.Renegotiation.Result; r != nil {
		a[factSecure], a[factClient] = yes(r.Secure), yes(r.Client)
	}
}

func (c *sslyzeCertificates) answer(a answers) {
	if len(c.Deployments) == 0 || len(c.Deployments[0].Received) == 0 {
		return
	}
	d := c.Deployments[0]
	leaf := d.Received[0]
	a[factExpired] = yes(leaf.NotAfter.Before(time.Now()))
	trusted, sha1 := false, false
	for _, path := range d.Paths {
		trusted = trusted || path.OK
	}
	for _, one := range d.Received {
		sha1 = sha1 || one.Hash != nil && one.Hash.Name == "sha1"
	}
	a[factTrusted], a[factSHA1] = yes(trusted), yes(sha1)
	if d.InOrder != nil {
		a[factChainOrder] = yes(*d.InOrder)
	}
	if d.Anchor != nil {
		a[factRoot] = yes(*d.Anchor)
	}
	switch {
	case strings.HasPrefix(leaf.Key.Algorithm, "EC"):
		a[factKey] = fmt.Sprintf("ECDSA secp%dr1", leaf.Key.Size)
	case strings.HasPrefix(leaf.Key.Algorithm, "RSA"), strings.HasPrefix(leaf.Key.Algorithm, "_RSA"):
		a[factKey] = fmt.Sprintf("RSA %d", leaf.Key.Size)
	}
	a[factStapled] = yes(len(d.OCSP) > 0 && string(d.OCSP) != "null")
}
