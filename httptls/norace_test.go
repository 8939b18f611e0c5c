//go:build !race

package httptls_test

const raceEnabled = false
