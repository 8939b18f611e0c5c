// Package hostpolicy tests that the policy in the host's openssl.cnf is honoured. A process reads
// the policy once, so that each test runs in a process of its own.
package hostpolicy
