//go:build !race && !asan

package ossl_test

const raceEnabled = false
