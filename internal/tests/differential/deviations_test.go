//go:build cgo || ossl_nocgo

package differential

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ossl-go/ossl/internal/ossltest"
	"github.com/ossl-go/ossl/internal/tlstest"
)

// A deviation is a difference to crypto/tls that libssl forces, or that this package makes on
// purpose. docs/COMPATIBILITY.md quotes the table. Any difference without a row here fails the
// suite.
type deviation struct {
	// Cases are names of subtests, without "TestDifferential"; Where names the end that observes
	// it, as "ossl client"; Field names the field that differs; Std and Ossl are its values with
	// crypto/tls and with ossl. All are regular expressions; empty means anything.
	Cases, Where, Field, Std, Ossl string
	// From and Before limit it to libssl versions, such as "3.0" and "3.5"; empty means no limit.
	From, Before string
	// Libssl and Own limit it to a record path.
	Libssl, Own bool
	// Reason is the row's text in the documentation.
	Reason string

	seen *atomic.Int64
}

func (d *deviation) applies(name string, p tlstest.Pairing, where, field, want, got string) bool {
	return matches(d.Cases, name) && matches(d.Where, where) && matches(d.Field, field) && matches(d.Std, want) &&
		matches(d.Ossl, got) && (d.inVersion() || d.Libssl && (untilTickets(where) || leftToLibssl(name)) && d.onPath(true))
}

func (d *deviation) inVersion() bool {
	return d.onPath(ossltest.RecordsByLibssl())
}

func (d *deviation) onPath(libssl bool) bool {
	return (d.From == "" || ossltest.AtLeast(d.From)) && (d.Before == "" || !ossltest.AtLeast(d.Before)) &&
		(!d.Libssl || libssl) && (!d.Own || !libssl)
}

// untilTickets reports whether libssl has a client's records until a ticket or data comes.
func untilTickets(where string) bool {
	return os.Getenv(ossltest.EnvSessions) != "" && where == "ossl client"
}

// leftToLibssl reports whether libssl keeps the records of a case's connections: in FIPS mode, TLS
// 1.2 records.
func leftToLibssl(name string) bool { return ossltest.InFIPS && strings.Contains(name, "TLS1.2") }

// patterns are the table's regular expressions, compiled: each is matched thousands of times.
var patterns sync.Map

func matches(pattern, s string) bool {
	if pattern == "" {
		return true
	}
	re, ok := patterns.Load(pattern)
	if !ok {
		re, _ = patterns.LoadOrStore(pattern, regexp.MustCompile("^(?:"+pattern+")$"))
	}
	return re.(*regexp.Regexp).MatchString(s)
}

func init() {
	for i := range deviations {
		deviations[i].seen = new(atomic.Int64)
	}
}

// checkStale fails a test if a row of the table that applies only to this test was not needed: a
// row must be removed when its difference disappears. Each differential test defers it.
func checkStale(t *testing.T) {
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") || t.Failed() || testing.Short() {
		return // not all cases have run, or the failure may be why
	}
	prefix := strings.TrimPrefix(t.Name(), "TestDifferential") + "/"
	for _, d := range deviations {
		if strings.HasPrefix(d.Cases, prefix) && d.inVersion() && d.seen.Load() == 0 {
			t.Errorf("nothing deviates any more as this row of the table says: %s %s: %s", d.Cases, d.Where, d.Reason)
		}
	}
}

// These are regular expressions that match from beginning to end.
const (
	failsHere  = `local error: tls: .*|other|tls\.RecordHeaderError.*` // an error of one's own
	failsThere = `remote error: tls: .*`                               // a peer's alert
	nothing    = `()`
)

var deviations = []deviation{
	{
		Cases: `.*\bTLS1\.3/.*`, Where: `std server`, Field: `Handshake|Talk`,
		Std: failsThere, Ossl: `local error: tls: bad record MAC`,
		Reason: "A TLS 1.3 libssl client takes its sending keys only with its own flight. The alert for a fault in the server's " +
			"flight is the one that crypto/tls sends, but goes out unprotected, and a crypto/tls server takes it for a " +
			"damaged record. Refusals of the server's chain, and by callbacks, are protected with OpenSSL 3.0 and later, " +
			"unless the server's flight is incomplete.",
	},
	{
		Cases: `.*\bTLS1\.3/.*`, Where: `std server`, Field: `Alerts`, Std: `(1/90)?`, Ossl: `(1/90 )?2/20`,
		Reason: "Follows from the unprotected alert of a TLS 1.3 libssl client: a crypto/tls server answers it with " +
			"bad_record_mac.",
	},
	{
		Cases: `.*`, Field: `Handshake|Talk|Again|Read`, Std: `io\.EOF|ok`, Ossl: `io\.ErrUnexpectedEOF`,
		Reason: "After the handshake the end of the transport without close_notify is io.ErrUnexpectedEOF, on purpose: it may be " +
			"an attack.",
	},
	{
		Cases: `(Garbage|Records|Hello|PlainAlerts)/.*`, Where: `ossl .*`, Field: `Handshake|Talk|Again|Read|Write`,
		Std: failsHere + `|` + failsThere, Ossl: failsHere,
		Reason: "libssl parses messages: if several alerts fit a malformed message, it may send another one than crypto/tls.",
	},
	{
		Cases: `(Garbage|Records|Hello|PlainAlerts)/.*`, Where: `ossl .*`, Field: `Alerts`,
		Std: `(2/\d+)?`, Ossl: `2/\d+`,
		Reason: "libssl parses messages: see above.",
	},
	{
		Cases: `AfterHandshake/.*`, Where: `ossl .*`, Field: `Handshake|Talk|Again|Read|Write`, Libssl: true,
		Std: failsHere + `|` + failsThere, Ossl: failsHere,
		Reason: "libssl parses messages: see above.",
	},
	{
		Cases: `AfterHandshake/.*/(ClientHello|ServerHello|Finished|Certificate.*|(40_)?HelloRequests?|unknown.*|40_NewSessionTickets)`,
		Own:   true,
		Where: `ossl .*`, Std: failsHere + `|\[type 21 .*`, Ossl: `local error: tls: unexpected message|\[type 21 020a\]`,
		Reason: "After the handshake a message of a wrong type is unexpected, even if it is malformed; crypto/tls parses it " +
			"first.",
	},
	{
		Cases: `CertificateSize/.*/over`, Field: `Alerts`, Std: `2/80`, Ossl: `2/47`,
		Reason: "A Certificate message of more than 256 KB gets illegal_parameter from libssl, internal_error from crypto/tls.",
	},
	{
		Cases: `CertificateSize/.*/over`, Field: `Handshake|Talk`, Std: failsThere, Ossl: `remote error: tls: illegal parameter`,
		Reason: "A Certificate message of more than 256 KB: see above.",
	},
	{
		Cases: `MLDSARefused/TLS1\.2/.*/server`, From: "3.5", Field: `Handshake|Alerts`,
		Std: `2/80|remote error: tls: internal error`, Ossl: `2/40|remote error: tls: handshake failure`,
		Reason: "A server that has only ML-DSA certificates answers a TLS 1.2 client with handshake_failure, crypto/tls with " +
			"internal_error.",
	},
	{
		Cases: `AfterHandshake/TLS1\.3/.*/(KeyUpdates_with_data_between|15_KeyUpdates_requested)`,
		Own:   true, Where: `ossl .*`, Field: `Sent`,
		Std: `\[(type 22 1800000100 )+type 23\]`, Ossl: `\[(type 22 1800000100 )+type 23\]`,
		Reason: "One KeyUpdate answers all requests that came before it is sent (RFC 8446, section 4.6.3); crypto/tls answers " +
			"each.",
	},
	{
		Cases: `AfterHandshake/TLS1\.3/.*/KeyUpdate_of_an_unknown_kind`, Where: `ossl .*`,
		Std:    `local error: tls: error decoding message|\[type 21 0232\]`,
		Ossl:   `local error: tls: illegal parameter|\[type 21 022f\]`,
		Reason: "A KeyUpdate of an unknown kind gets illegal_parameter (RFC 8446, section 4.6.3); crypto/tls sends decode_error.",
	},
	{
		Cases: `AfterHandshake/.*`, Own: true, Where: `ossl .*`, Field: `Sent`,
		Std: `\[type 21 \w+ type 21 \w+\]`, Ossl: `\[type 21 \w+\]`,
		Reason: "Each alert ends the connection; after some alerts crypto/tls reads on and sends another one.",
	},
	{
		Cases: `AfterHandshake/.*`, Where: `ossl .*`, Field: `Sent`, Libssl: true, Std: `\[type 21 .*`, Ossl: `\[type 21 .*`,
		Reason: "libssl parses messages: see above.",
	},
	{
		Cases: `(Records|Hello)/.*`, Where: `std .*`, Field: `Handshake|Talk`,
		Std: failsHere + `|` + failsThere, Ossl: failsThere + `|` + failsHere,
		Reason: "libssl parses messages: see above. The peer sees the other alert.",
	},
	{
		Cases: `(Records|Hello)/.*`, Where: `std .*`, Field: `Alerts`, Std: `2/\d+`, Ossl: nothing,
		Reason: "libssl parses messages: see above. The peer has been told already.",
	},
	{
		Cases: `AfterHandshake/.*`, Where: `ossl .*`, Field: `Again`, Std: `ok|io\.EOF|` + failsHere, Ossl: failsHere,
		Reason: "A connection stays failed after each error of its own; after some errors crypto/tls reads on.",
	},
	{
		Cases: `SealedAlerts/.*`, Where: `ossl .*`, Field: `Write`, Libssl: true, Std: `ok`, Ossl: failsThere + `|io\.EOF`,
		Reason: "A fatal alert ends both directions in libssl; crypto/tls can still write to the peer that sent it.",
	},
	{
		Cases: `SealedAlerts/.*`, Where: `ossl .*`, Field: `Sent`, Libssl: true, Std: `\[type 23\]`, Ossl: `\[\]`,
		Reason: "A fatal alert ends both directions in libssl: see above.",
	},
	{
		Cases: `PlainAlerts/server/.*`, Where: `ossl server`, Field: `Handshake|Again|Read`, Std: `io\.EOF`,
		Ossl:   `local error: tls: unexpected message`,
		Reason: "Any alert in place of the ClientHello is an unexpected message for libssl.",
	},
	{
		Cases: `Records/.*/server/stray_warning/0`, Field: `Handshake|Talk|Heard|State|Name|Alerts`,
		Ossl:   nothing + `|2/10|` + failsThere + `|` + failsHere,
		Reason: "An alert in place of the ClientHello is an unexpected message for libssl: see above.",
	},
	{
		Cases: `Records/TLS1\.3/server/stray_warning/.*`, Std: failsHere + `|` + failsThere + `|` + nothing + `|2/20`,
		Reason: "A TLS 1.3 libssl server accepts unprotected warnings during the handshake, since libssl clients send such " +
			"alerts.",
	},
	{
		Cases:  `(Garbage|Records)/.*(empty_(handshake_)?record|empty_handshake_records|HelloRequest)s?(/.*)?`,
		Std:    failsHere + `|` + failsThere + `|` + nothing + `|2/\d+|0 bytes ""|\[type 21 .*`,
		Reason: "libssl skips empty handshake records, and a client HelloRequests during the handshake; crypto/tls refuses both.",
	},
	{
		Cases: `AfterHandshake/.*(empty_(handshake_)?record|empty_handshake_records|HelloRequest)s?(/.*)?`, Libssl: true,
		Std:    failsHere + `|` + failsThere + `|` + nothing + `|2/\d+|0 bytes ""|\[type 21 .*`,
		Reason: "libssl skips empty handshake records: see above.",
	},
	{
		Cases:  `(Garbage|Records|AfterHandshake)/TLS1\.3/.*ChangeCipherSpec.*`,
		Ossl:   failsHere + `|` + failsThere + `|` + nothing + `|2/10|0 bytes ""|\[type 21 020a\]`,
		Reason: "After a TLS 1.3 handshake libssl refuses ChangeCipherSpec, as RFC 8446, section 5, asks; crypto/tls ignores it.",
	},
	{
		Cases: `AfterHandshake/TLS1\.3/.*/(40_(KeyUpdates|NewSessionTickets)|20_NewSessionTickets_and).*`, Where: `ossl .*`,
		Libssl: true, Std: failsHere + `|0 bytes ""|\[type 21 020a\]|\[\]`,
		Reason: "The connection fails at the 17th KeyUpdate or ticket in a row without an alert, since libssl sends none on demand.",
	},
	{
		Cases: `AfterHandshake/TLS1\.3/.*/(padding_over_the_limit|padding_up_to_a_record's_end|largest_record_with_padding)`,
		Where: `ossl .*`, Libssl: true,
		Std:    failsHere + `|0 bytes ""|\[type 21 0216\]`,
		Ossl:   `ok|io\.EOF|\d+ bytes .*|\[type 23\]|tls: protocol is shutdown`,
		Reason: "libssl does not count padding: an inner plaintext may fill the record, with 2^14+240 bytes.",
	},
	{
		Cases: `Garbage/.*/version_2\.0`, Where: `ossl .*`, Field: `Alerts`, Std: `2/50`, Ossl: nothing,
		Reason: "libssl sends no alert to a peer whose first record has another major version than 3.",
	},
	{
		Cases: `Records/TLS1\.2/server/duplicate/0`, Where: `std client`, Field: `Alerts`, Ossl: `2/70`, Before: "3.2",
		Reason: "Alerts before the version is agreed go out in a record of version 3.1, which crypto/tls doesn't expect of a " +
			"server.",
	},
	{
		Cases: `VerifyCallbacks/TLS1\.2/.*`, Where: `ossl server`, Field: `Calls`, Std: `TLSUnique=12 bytes`, Ossl: `TLSUnique=0 bytes`,
		Reason: "VerifyConnection gets no TLSUnique before it is known; crypto/tls passes 12 zero bytes.",
	},
	{
		Cases: `AfterHandshake/TLS1\.2/server/ClientHello`, Where: `ossl server`, Libssl: true,
		Reason: "A ClientHello on an open TLS 1.2 connection gets the warning no_renegotiation before it is parsed.",
	},
	{
		Cases: `PlainAlerts/.*/level_[03]/.*`, Where: `ossl .*`,
		Reason: "libssl answers an alert of an unknown level with illegal_parameter, crypto/tls with unexpected_message.",
	},
	{
		Cases: `SealedAlerts/.*/level_[03]/.*`, Where: `ossl .*`, Libssl: true,
		Reason: "An alert with a level that there is not is answered with illegal_parameter: see above.",
	},
	{
		Cases: `PlainAlerts/.*/level_1/100`, Where: `ossl .*`, Ossl: failsHere + `|6 bytes .*|2/40|\[type 21 0228\]`,
		Reason: "For libssl the warning no_renegotiation, which neither side has reason to send, ends the connection; crypto/tls " +
			"ignores it.",
	},
	{
		Cases: `SealedAlerts/.*/level_1/100`, Where: `ossl .*`, Ossl: failsHere + `|6 bytes .*|2/40|\[type 21 0228\]`, Libssl: true,
		Reason: "libssl takes no_renegotiation for the end: see above.",
	},
	{
		Cases: `Defaults/.*`, Field: `State`, Std: `CurveID=4588`, Ossl: `CurveID=29`, Before: "3.5",
		Reason: "X25519MLKEM768 needs OpenSSL 3.5.",
	},
	{
		Cases: `Group/TLS1\.2/(24|25|29)/P256`, Ossl: failsHere + `|` + failsThere + `|` + nothing + `|2/\d+`,
		Reason: "In TLS 1.2 the list of groups also limits the curves of ECDSA certificates (RFC 8422, section 5.1): list the " +
			"certificate's curve too.",
	},
	{
		Cases: `(Certificates/.*/(garbage_.*|key_that_doesn't_match|RSA-1024))`, Where: `.*`,
		Ossl: failsHere + `|` + failsThere + `|io\.EOF|` + nothing + `|2/(42|50|80|20)`,
		Reason: "Certificates and keys are loaded when they are configured: if one doesn't parse, doesn't match or is weaker than " +
			"the security level, the configuration is refused and there is no handshake.",
	},
	{
		Cases: `.*/TLS1\.2/(server|client)/key_that_doesn't_match.*`, Where: `ossl client`, Field: `Alerts`, Std: `2/47`, Ossl: `2/51|`,
		Reason: "A bad signature in ServerKeyExchange gets decrypt_error from libssl, illegal_parameter from crypto/tls.",
	},
	{
		Cases: `.*/TLS1\.2/(server|client)/key_that_doesn't_match.*`, Where: `std server`, Field: `Handshake`,
		Std: `remote error: tls: illegal parameter`, Ossl: `remote error: tls: error decrypting message`,
		Reason: "A bad signature in ServerKeyExchange gets decrypt_error from libssl: see above.",
	},
	{
		Cases: `(VerifyCallbacks|Test(VerificationNeverFailsOpen|ConnVerification))/TLS1\.3/.*none_sent.*`,
		Where: `ossl server`, Field: `Alerts`,
		Std: `2/42`, Ossl: `2/116`,
		Reason: "A TLS 1.3 libssl server that refuses a client without a certificate sends certificate_required, also if a " +
			"callback refuses it.",
	},
	{
		Cases: `(VerifyCallbacks|Test(VerificationNeverFailsOpen|ConnVerification))/TLS1\.3/.*none_sent.*`,
		Where: `.* client`, Field: `Talk`,
		Std: `remote error: tls: bad certificate`, Ossl: `remote error: tls: certificate required`,
		Reason: "A TLS 1.3 libssl server that refuses a client without a certificate sends certificate_required: see above.",
	},
	{
		Cases: `UnknownKey/TLS1\.3/client/SM2|Chains/TLS1\.3/.*EC_.*`, Where: `ossl server`, Field: `Alerts`, Std: `2/50`, Ossl: `2/42`,
		Reason: "A TLS 1.3 libssl server that refuses a certificate that crypto/x509 can't parse sends bad_certificate, not " +
			"decode_error.",
	},
	{
		Cases: `UnknownKey/TLS1\.3/client/SM2|Chains/TLS1\.3/.*EC_.*`, Where: `.* client`, Field: `Talk`,
		Std: `remote error: tls: error decoding message`, Ossl: `remote error: tls: bad certificate`,
		Reason: "A TLS 1.3 libssl server sends bad_certificate for a certificate that can't be parsed: see above.",
	},
	{
		Cases: `VerifyCallbacks/TLS1\.3/.*none_asked_for|` +
			`Test(VerificationNeverFailsOpen|ConnVerification)/TLS1\.3/server/.*VerifyConnection.*,_none`,
		Where: `.* client`, Field: `Handshake|Talk|State`,
		Std: `ok|remote error: tls: bad certificate|Version=.*`, Ossl: `remote error: tls: bad certificate|` + nothing,
		Reason: "A TLS 1.3 server that asks for no certificate calls VerifyConnection before its first flight, while it can send " +
			"any alert, not after the client's: the client learns of a refusal in its handshake, not in its first Read.",
	},
	{
		Cases: `VerifyCallbacks/TLS1\.2/.*`, Where: `ossl client`, Field: `Calls`, Std: `CurveID=0`, Ossl: `CurveID=\d+`,
		Reason: "A TLS 1.2 client's VerifyConnection gets the group, which crypto/tls fills in later.",
	},
	{
		Cases: `Deadlines/.*`, Where: `(std|ossl) .*`, Field: `Talk|Alerts`, Std: `local error: tls: bad record MAC|2/20`,
		Ossl: `ok|io\.ErrUnexpectedEOF|` + nothing,
		Reason: "After a Write that timed out nothing more is sent; crypto/tls still sends close_notify, which the peer can't " +
			"decrypt.",
	},
	{
		Cases: `Selection/.*/no_certificate`, Ossl: failsHere + `|io\.EOF|` + nothing,
		Reason: "A server without any certificate is refused when it is configured; crypto/tls sends unrecognized_name to each " +
			"client.",
	},
}
