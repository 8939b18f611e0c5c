package main

import (
	"fmt"
	"net"
	"strconv"

	"github.com/ossl-go/ossl/audit"
	ossl "github.com/ossl-go/ossl/policy"
)

// policyNamed returns a policy, or nil for the default one.
func policyNamed(name string) (*ossl.Policy, error) {
	if name != "fast-and-safe" {
		return nil, fmt.Errorf("unknown policy %q", name)
	}
	return nil, nil
}

// parseTarget parses HOST or HOST:PORT.
func parseTarget(text string) (audit.Target, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = text, "443"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return audit.Target{}, fmt.Errorf("target %q: port %q is not a number of 1 to 65535", text, port)
	}
	t := audit.Target{Host: host, Port: uint16(n), Protocol: "tls"}
	if n == 443 || n == 8443 {
		t.Protocol = "https"
	}
	return t, nil
}
