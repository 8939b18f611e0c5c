package main

import "strings"

// generation returns the index of the limit in a target that applies to a libssl: 0 for 3.0, 1 for
// 3.5 and later, -1 if there are no targets.
func generation(version string) int {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	switch {
	case major == "3" && minor == "0":
		return 0
	case major == "3" && len(minor) == 1 && minor >= "5", major >= "4" && len(major) == 1:
		return 1
	}
	return -1
}

// A target is a limit for each generation of libssl.
type target struct {
	match map[string]string // keys that the benchmark's name has
	base  string
	limit [2]float64
	asStd bool // the limit is crypto/tls's value
}

// In all targets both sides are ossl, and the group is X25519 if the name has one.
var both = map[string]string{"server": "ossl", "client": "ossl", "impl": "ossl", "kex": "X25519"}

// timeTargets are the highest ratios of ossl's time to crypto/tls's.
var timeTargets = []target{
	handshakeTarget("P256", "false", "hit", 1.45, 1.15),
	handshakeTarget("P256", "false", "off", 1.75, 1.4),
	handshakeTarget("P256", "true", "hit", 1.5, 1.2),
	handshakeTarget("P256", "true", "off", 1.8, 1.5),
	handshakeTarget("RSA2048", "false", "hit", 0.8, 0.7),
	handshakeTarget("RSA2048", "false", "off", 0.8, 0.7),
	{base: "Latency", match: map[string]string{"record": "libssl"}, limit: [2]float64{1.45, 1.35}},
	{base: "Latency", match: map[string]string{"record": "direct"}, limit: [2]float64{1.12, 1.0}},
}

func handshakeTarget(cert, mutual, chainCache string, limits ...float64) target {
	return target{
		base:  "Handshake",
		match: map[string]string{"cert": cert, "mutual": mutual, "chaincache": chainCache},
		limit: [2]float64(limits),
	}
}

// throughputTargets are the lowest ratios of ossl's throughput to crypto/tls's.
var throughputTargets = []target{
	{base: "Bulk", match: map[string]string{"write": "1MB", "record": "libssl"}, limit: [2]float64{0.95, 1.45}},
	{base: "Bulk", match: map[string]string{"write": "1MB", "record": "direct"}, limit: [2]float64{1.15, 2.0}},
	{base: "Bulk", match: map[string]string{"write": "16KB", "record": "direct"}, limit: [2]float64{1.05, 1.8}},
}

// countTargets are the highest sums of the values of some of ossl's units.
var countTargets = []struct {
	target
	label string
	units []string
}{
	{target{base: "Connections", limit: [2]float64{60, 60}}, "Go allocations of a connection, both ends", []string{"allocs/op"}},
	{target{base: "Connections", limit: [2]float64{12, 12}}, "crossings of a connection, both ends", []string{"crossings/op"}},
	{target{base: "Latency", limit: [2]float64{4, 4}}, "crossings of a round trip, both ends", []string{"crossings/op"}},
	{
		target{base: "Latency", match: map[string]string{"record": "direct"}},
		"Go allocations of a round trip, both ends", []string{"allocs/op"},
	},
	{
		target{base: "IdleMemory", match: map[string]string{"record": "libssl"}, limit: [2]float64{16 << 10, 24 << 10}},
		"idle connection, server: bytes of Go and C heap", []string{"go-B/conn", "c-B/conn"},
	},
	{
		target{base: "IdleMemory", match: map[string]string{"record": "direct"}, asStd: true},
		"idle connection, server: resident bytes", []string{"rss-B/conn"},
	},
}

func (t target) matches(n name) bool {
	if n.base() != t.base {
		return false
	}
	for k, v := range both {
		if got := n.key(k); got != "" && got != v {
			return false
		}
	}
	for k, v := range t.match {
		if n.key(k) != v {
			return false
		}
	}
	return true
}

// limitFor returns the limit for n in targets.
func limitFor(targets []target, n name, generation int) (float64, bool) {
	if generation < 0 {
		return 0, false
	}
	for _, t := range targets {
		if t.matches(n) {
			return t.limit[generation], true
		}
	}
	return 0, false
}
