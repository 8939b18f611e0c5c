//go:build !race

package ossl_test

const raceEnabled = false
