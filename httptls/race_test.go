//go:build race

package httptls_test

const raceEnabled = true
