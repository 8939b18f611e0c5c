package main

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/ossl-go/ossl"
)

// A library is the OpenSSL found on this host and what it can do.
type library struct {
	Version     string `json:"version"`
	VersionText string `json:"version_text"`
	Path        string `json:"path"`
	CryptoPath  string `json:"crypto_path"`
	PostQuantum bool   `json:"post_quantum_groups"`
	FIPS        bool   `json:"fips_module"`
	KernelTLS   bool   `json:"kernel_tls"`
}

// findLibrary loads the host's OpenSSL.
func findLibrary() (library, error) {
	info, err := ossl.Library()
	if err != nil {
		return library{}, fmt.Errorf("%w\n%s", err, whatToDo)
	}
	_, refused := ossl.NewContext(&tls.Config{
		ServerName:       "example.com",
		CurvePreferences: []tls.CurveID{tls.X25519MLKEM768},
	})
	return library{
		Version:     info.Version,
		VersionText: info.VersionText,
		Path:        info.Path,
		CryptoPath:  info.CryptoPath,
		PostQuantum: refused == nil,
		FIPS:        info.FIPS,
		KernelTLS:   info.KernelTLS,
	}, nil
}

// whatToDo follows the error that names what was tried.
const whatToDo = `Install OpenSSL 1.1.1, 3.x or 4.x (Debian, Ubuntu: apt-get install libssl3; Fedora: dnf install openssl-libs;
Alpine: apk add libssl3), or name a libssl by path or version: OSSL_LIBRARY=/opt/openssl/lib/libssl.so.3, OSSL_LIBRARY=3.`

// abilities says in a line what l can and can't do.
func (l library) abilities() string {
	var words []string
	for _, a := range []struct {
		what string
		has  bool
	}{
		{"post-quantum groups", l.PostQuantum},
		{"FIPS module", l.FIPS},
		{"kernel TLS", l.KernelTLS},
	} {
		answer := "no"
		if a.has {
			answer = "yes"
		}
		words = append(words, a.what+": "+answer)
	}
	return strings.Join(words, "   ")
}
