package main

import (
	"crypto/tls"
	"strings"

	"github.com/ossl-go/ossl"
)

// A library is the OpenSSL found on this host, and its abilities.
type library struct {
	Version     string `json:"version"`
	VersionText string `json:"version_text"`
	Path        string `json:"path"`
	CryptoPath  string `json:"crypto_path"`
	PostQuantum bool   `json:"post_quantum_groups"`
	FIPS        bool   `json:"fips_module"`
	// FIPSRequired names the setting that requires FIPS mode, FIPSModule the module in use then.
	FIPSRequired string `json:"fips_required,omitempty"`
	FIPSModule   string `json:"fips_by,omitempty"`
	// KernelTLS lists the versions for which the kernel can seal records.
	KernelTLS []string `json:"kernel_tls"`
	// Policy is the host's configuration of TLS.
	Policy policy `json:"host_policy"`
}

// findLibrary loads the host's OpenSSL.
func findLibrary() (library, error) {
	info, err := ossl.Library()
	if err != nil {
		return library{}, err
	}
	var module string
	if info.FIPSRequired != "" {
		ctx, err := ossl.NewContext(&tls.Config{})
		if err != nil {
			return library{}, err
		}
		module = ctx.FIPS().String()
	}
	_, refused := ossl.NewContext(&tls.Config{
		ServerName:       "example.com",
		CurvePreferences: []tls.CurveID{tls.X25519MLKEM768},
	}, ossl.WithoutHostPolicy())
	return library{
		Version:      info.Version,
		VersionText:  info.VersionText,
		Path:         info.Path,
		CryptoPath:   info.CryptoPath,
		PostQuantum:  refused == nil,
		FIPS:         info.FIPS,
		FIPSRequired: info.FIPSRequired,
		FIPSModule:   module,
		KernelTLS:    versionNames(ossl.KernelTLS()),
		Policy:       policyOf(info.HostPolicy),
	}, nil
}

// abilities returns a line that lists l's optional features.
func (l library) abilities() string {
	var words []string
	for _, a := range []struct {
		what string
		has  bool
	}{
		{"post-quantum groups", l.PostQuantum},
		{"FIPS module", l.FIPS},
	} {
		answer := "no"
		if a.has {
			answer = "yes"
		}
		words = append(words, a.what+": "+answer)
	}
	kernel := "no"
	if len(l.KernelTLS) > 0 {
		kernel = strings.Join(l.KernelTLS, ", ")
	}
	return strings.Join(append(words, "kernel TLS: "+kernel), "   ")
}

func versionNames(versions []uint16) []string {
	names := []string{} // not null
	for _, v := range versions {
		names = append(names, tls.VersionName(v))
	}
	return names
}
