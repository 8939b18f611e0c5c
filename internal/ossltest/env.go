package ossltest

import (
	"crypto/tls"
	"os"
)

// RecordsByLibssl reports whether the environment leaves all records to libssl.
func RecordsByLibssl() bool { return os.Getenv("OSSL_RECORDS") == "libssl" }

// BreaksAtKeyUpdate reports whether libssl, if it has the records, loses its place in a record that
// has arrived in part when it sends a KeyUpdate: 1.1.1k does, 1.1.1w doesn't.
func BreaksAtKeyUpdate() bool { return !AtLeast("3.0") && Version() < "1.1.1w" }

// SealsRefusals reports whether TLS 1.3 clients protect the alert for a chain that Go refuses.
func SealsRefusals() bool { return AtLeast("3.0") }

// EnvSessions names an environment variable that, if set, makes all tests of connections run with
// sessions on: servers send tickets, and clients have a cache, so that the takeover waits for the
// first ticket or data. ci/matrix runs them so too.
const EnvSessions = "OSSL_TEST_SESSIONS"

// WithSessions turns sessions on in config, if the environment asks for it.
func WithSessions(config *tls.Config) *tls.Config {
	if os.Getenv(EnvSessions) == "" || config == nil || config.ClientSessionCache != nil || config.GetConfigForClient != nil {
		return config
	}
	config = config.Clone()
	config.SessionTicketsDisabled = false
	config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	return config
}
