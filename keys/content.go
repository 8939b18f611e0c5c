package keys

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/asn1"
	"io"
	"os"
	"strings"
)

// maxKeyFile is the size of the files in bytes that are looked into when OpenSSL could not load them.
const maxKeyFile = 1 << 18

// contentOf returns the content of a file that OpenSSL could not load, or nil. The caller clears it.
func contentOf(uri string) []byte {
	name := strings.TrimPrefix(uri, "file:")
	if schemeOf(uri) == "file" && strings.HasPrefix(name, "//") { // an authority: RFC 8089
		_, path, _ := strings.Cut(name[2:], "/")
		name = "/" + path
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() { // to open a pipe would wait for a writer
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	text := make([]byte, maxKeyFile)
	n, _ := io.ReadFull(file, text)
	if n == maxKeyFile {
		clear(text)
		return nil
	}
	return text[:n]
}

// allRead reports whether n objects are all that a file has: OpenSSL 3.0 and later try to decode text
// behind the last PEM block too, and report an error.
func allRead(uri string, n int) bool {
	text := contentOf(uri)
	defer clear(text)
	blocks, err := DecodePEM(text)
	for _, block := range blocks {
		clear(block.Bytes)
	}
	return err == nil && n > 0 && len(blocks) == n
}

// oldCiphers are the algorithms by which passphrases encrypt keys, and which OpenSSL 3.0 and later
// have in the provider "legacy": RFC 7292, appendix C; RFC 8018, appendix A.3. In DER.
var oldCiphers = []struct {
	der  []byte
	name string
}{
	{[]byte("\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x01"), "RC4"},
	{[]byte("\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x02"), "RC4"},
	{[]byte("\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x05"), "RC2"},
	{[]byte("\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x06"), "RC2"},
	{[]byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x03"), "DES"}, // pbeWithMD5AndDES-CBC
	{[]byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0a"), "DES"}, // pbeWithSHA1AndDES-CBC
	{[]byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x06"), "RC2"}, // pbeWithMD5AndRC2-CBC
	{[]byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0b"), "RC2"}, // pbeWithSHA1AndRC2-CBC
	{[]byte("\x06\x08\x2a\x86\x48\x86\xf7\x0d\x03\x02"), "RC2"},     // of PBES2
	{[]byte("\x06\x05\x2b\x0e\x03\x02\x07"), "DES"},                 // of PBES2
}

// oldCipherIn returns the old cipher under which a file's content is, or "".
func oldCipherIn(uri string) string {
	text := contentOf(uri)
	defer clear(text)
	if blocks, err := DecodePEM(text); err == nil && len(blocks) > 0 {
		var all []byte
		for _, block := range blocks {
			if strings.HasPrefix(block.Headers["DEK-Info"], "DES-CBC,") {
				return "DES"
			}
			if strings.HasPrefix(block.Type, "ENCRYPTED") {
				all = append(all, block.Bytes...)
			}
		}
		text = all
	}
	for _, cipher := range oldCiphers {
		if bytes.Contains(text, cipher.der) {
			return cipher.name
		}
	}
	return ""
}

// kindOf names the kind of a public key in DER that crypto/x509 doesn't parse, or returns "".
func kindOf(der []byte) string {
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &info); err != nil {
		return ""
	}
	switch oid := info.Algorithm.Algorithm.String(); oid {
	case "1.2.840.113549.1.1.10":
		return "RSA-PSS (id-RSASSA-PSS); a plain RSA key signs with RSA-PSS too"
	case "1.3.101.113":
		return "Ed448"
	case "1.3.101.111":
		return "X448, which doesn't sign"
	case "1.2.840.10040.4.1":
		return "DSA"
	case "1.2.840.10045.2.1":
		parameters := info.Algorithm.Parameters
		if parameters.Tag == asn1.TagSequence {
			return "ECDSA with explicit parameters; openssl pkey -ec_param_enc named_curve names the curve"
		}
		var curve asn1.ObjectIdentifier
		if _, err := asn1.Unmarshal(parameters.FullBytes, &curve); err != nil {
			return ""
		}
		name := curve.String()
		switch {
		case strings.HasPrefix(name, "1.3.36.3.3.2.8.1.1."):
			name = "brainpool"
		case name == "1.3.132.0.10":
			name = "secp256k1"
		case name == "1.2.156.10197.1.301":
			return "SM2"
		}
		return "ECDSA on the curve " + name + "; ossl has P-256, P-384 and P-521"
	}
	return ""
}
