//go:build cgo

package ossl_test

import (
	"crypto/tls"
	"os"
)

// envSessions, if set, has all tests of connections run with sessions on: servers send tickets, and clients have a cache, so that
// the takeover waits for the first ticket or data. ci/matrix runs them so too.
const envSessions = "OSSL_TEST_SESSIONS"

// withSessions turns sessions on in config, if the environment asks for it.
func withSessions(config *tls.Config) *tls.Config {
	if os.Getenv(envSessions) == "" || config == nil || config.ClientSessionCache != nil || config.GetConfigForClient != nil {
		return config
	}
	config = config.Clone()
	config.SessionTicketsDisabled = false
	config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	return config
}
