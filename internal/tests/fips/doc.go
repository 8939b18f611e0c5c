// Package fips tests FIPS mode: what it refuses, whom it trusts, and that it verifies chains as crypto/x509 does.
package fips
