package keys_test

import (
	"strings"
	"testing"

	"github.com/ossl-go/ossl/keys"
)

// URIs are shown without their secrets.
func TestShowURI(t *testing.T) {
	for uri, want := range map[string]string{
		"key.pem":               "key.pem",
		"file:/etc/key.pem":     "file:/etc/key.pem",
		"C:\\keys\\key.pem?x=1": "C:\\keys\\key.pem?x=1",
		"pkcs11:token=t;object=key;type=private;id=%01?pin-value=1234": "pkcs11:token=t;object=key;type=private;id=%01?pin-value=...",
		"pkcs11:token=t?pin-source=file:/etc/pin&module-name=p":        "pkcs11:token=t?pin-source=...&module-name=p",
		"pkcs11:token=t;pin-value=1234;object=k":                       "pkcs11:token=t;pin-value=...;object=k",
		"PKCS11:token=t?PIN-VALUE=1234":                                "PKCS11:token=t?PIN-VALUE=...",
		"pkcs11:token=t?pin%2Dvalue=1234":                              "pkcs11:token=t?pin%2Dvalue=...",
		"pkcs11:object=k pin-value=1234":                               "pkcs11:object=...",
		"pkcs11:1234":                                                  "pkcs11:...",
		"pkcs11:":                                                      "pkcs11:",
		"handle:0x81000001":                                            "handle:0x81000001",
		"tpm:key?password=1234":                                        "tpm:key?...",
		"other://user:1234@host/key":                                   "other:...",
		"pkcs11:token=t?pin-value=12&34":                               "pkcs11:token=t?pin-value=...&...",
		"pkcs11:token=t;object=a=b":                                    "pkcs11:token=t;object=a=b",
	} {
		if got := keys.ShowURI(uri); got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
		if strings.Contains(keys.ShowURI(uri), "1234") {
			t.Errorf("%s shows a PIN", uri)
		}
	}
}
