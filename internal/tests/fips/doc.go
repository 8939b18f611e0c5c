// Package fips tests FIPS mode: the configurations and peers that it refuses, the roots that it
// trusts, and that it verifies chains as crypto/x509 does.
package fips
