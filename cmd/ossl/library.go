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
	// FIPSUnknown is the reason why it is unknown whether there is one.
	FIPSRequired string `json:"fips_required,omitempty"`
	FIPSUnknown  string `json:"fips_unknown,omitempty"`
	FIPSModule   string `json:"fips_by,omitempty"`
	// KernelTLS lists the versions for which the kernel can seal records.
	KernelTLS []string `json:"kernel_tls"`
	// Shards is the number of parts that a Context has: ossl.WithShards.
	Shards int `json:"shards"`
	// Policy is the host's TLS configuration.
	Policy policy `json:"host_policy"`
	// Problems are the reasons why connections fail on this host. Empty if there are none.
	Problems []string `json:"problems"`

	err    error  // the first problem
	object string // versionResult.Object
}

// findLibrary loads the host's OpenSSL. An error means that there is none; the reasons why
// connections would fail with it are in Problems.
func findLibrary() (library, error) {
	info, err := ossl.Library()
	if err != nil {
		none := library{KernelTLS: []string{}}
		none.note(err)
		return none, err
	}
	_, refused := ossl.NewContext(&tls.Config{CurvePreferences: []tls.CurveID{tls.X25519MLKEM768}}, ossl.WithoutHostPolicy())
	lib := library{
		Version:      info.Version,
		VersionText:  info.VersionText,
		object:       info.Object,
		Path:         info.Path,
		CryptoPath:   info.CryptoPath,
		PostQuantum:  refused == nil,
		FIPS:         info.FIPS,
		FIPSRequired: info.FIPSRequired,
		KernelTLS:    versionNames(ossl.KernelTLS()),
		Shards:       info.Shards,
		Policy:       policyOf(info.HostPolicy),
		Problems:     []string{}, // not null
	}
	if info.FIPSUnknown != nil {
		lib.FIPSUnknown = info.FIPSUnknown.Error()
	}
	ctx, err := ossl.NewContext(&tls.Config{})
	if err == nil {
		if info.FIPSRequired != "" {
			lib.FIPSModule = ctx.FIPS().String()
		}
		return lib, nil
	}
	lib.note(err)
	if policyErr := info.HostPolicy.Err; policyErr != nil && policyErr.Error() != err.Error() {
		lib.note(policyErr)
	}
	return lib, nil
}

// note records a problem.
func (l *library) note(err error) {
	l.Problems = append(l.Problems, strings.TrimPrefix(err.Error(), "ossl: "))
	if l.err == nil {
		l.err = err
	}
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
