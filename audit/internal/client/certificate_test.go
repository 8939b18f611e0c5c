package client_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/ossl-go/ossl/audit/internal/client"
	"github.com/ossl-go/ossl/audit/internal/testcert"
)

// secp256k1DER is a certificate of "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:secp256k1 -nodes
// -subj /CN=localhost -addext subjectAltName=DNS:localhost -days 36500".
const secp256k1DER = "" +
	"3082019230820138a0030201020214755cf861c1e6b80458c2a3578e8ce7e330f88305300a06082a8648ce3d0403023014311230100603" +
	"5504030c096c6f63616c686f73743020170d3236313132363134353333395a180f32313236313130323134353333395a30143112301006" +
	"035504030c096c6f63616c686f73743056301006072a8648ce3d020106052b8104000a03420004fe0b0e70ba758f47764886a9d20e72e0" +
	"8feaa1d29e501f340fc6242e79919bdbc4700b75d977d2cc6badacded2b82fb7ed1926a257de7a5caf73fb375e9145a2a3693067301d06" +
	"03551d0e041604149f73950ab938cf2c9921dab7a0b89a96fa42ba60301f0603551d230418301680149f73950ab938cf2c9921dab7a0b8" +
	"9a96fa42ba60300f0603551d130101ff040530030101ff30140603551d11040d300b82096c6f63616c686f7374300a06082a8648ce3d04" +
	"03020348003045022100e10561404022eb63601222285366a20ecaeeba3e46878bc7a7748ef58b18c670022042c1165a05a26519e822e3" +
	"33379a9b971fe777aa93f41dd040f26a695dc126b7"

// TestParseCertificate: certificates that crypto/x509 refuses keep their names, days, keys and signatures.
func TestParseCertificate(t *testing.T) {
	issuer := testcert.Root(testcert.Template{CA: true})
	good := issuer.Issue(testcert.Template{})
	t.Run("malformed", func(t *testing.T) {
		bad := good.Malformed(issuer)
		c, strict := client.ParseCertificate(bad.Raw)
		if c == nil || strict == nil {
			t.Fatalf("got %v, %v", c, strict)
		}
		if err := c.CheckSignatureFrom(issuer.Certificate); err != nil {
			t.Error(err)
		}
		if err := c.VerifyHostname("localhost"); err != nil {
			t.Error(err)
		}
		if !c.NotAfter.Equal(good.NotAfter) || c.SerialNumber.Sign() >= 0 || !bytes.Equal(c.Raw, bad.Raw) {
			t.Errorf("%v, serial number %v", c.NotAfter, c.SerialNumber)
		}
	})
	t.Run("another curve", func(t *testing.T) {
		der, err := hex.DecodeString(secp256k1DER)
		if err != nil {
			t.Fatal(err)
		}
		c, strict := client.ParseCertificate(der)
		if c == nil || strict == nil || c.PublicKey != nil || c.VerifyHostname("localhost") != nil {
			t.Errorf("got %v, %v", c, strict)
		}
	})
	t.Run("sound", func(t *testing.T) {
		if c, err := client.ParseCertificate(good.Raw); err != nil || !c.Equal(good.Certificate) {
			t.Error(err)
		}
	})
	t.Run("hopeless", func(t *testing.T) {
		for _, der := range [][]byte{nil, {0x30, 0}, good.Raw[:len(good.Raw)/2]} {
			if c, err := client.ParseCertificate(der); c != nil || err == nil {
				t.Errorf("%x is parsed", der)
			}
		}
	})
}

// FuzzParseCertificate: no bytes make it panic.
func FuzzParseCertificate(f *testing.F) {
	issuer := testcert.Root(testcert.Template{CA: true})
	f.Add(issuer.Issue(testcert.Template{}).Malformed(issuer).Raw)
	f.Fuzz(func(t *testing.T, der []byte) {
		c, err := client.ParseCertificate(der)
		if c == nil && err == nil {
			t.Error("neither a certificate nor an error")
		}
	})
}
