package audit

// remedies are directives, by rule and product. A rule that isn't here, or a product, has the general
// remedy of its finding. What each directive needs is in the manual of the product, and in the files
// that "ossl config" writes.
var remedies = map[string]map[string]string{
	"version-old": {
		"nginx":      "Set ssl_protocols TLSv1.2 TLSv1.3; in every server block of this address, and reload.",
		"apache":     "Set SSLProtocol -all +TLSv1.2 +TLSv1.3, and reload.",
		"haproxy":    "Set ssl-default-bind-options ssl-min-ver TLSv1.2, and reload.",
		"lighttpd":   "Set ssl.openssl.ssl-conf-cmd += (\"MinProtocol\" => \"TLSv1.2\"), and restart.",
		"caddy":      "Set protocols tls1.2 tls1.3 in the site's tls block, and reload.",
		"postgresql": "Set ssl_min_protocol_version = 'TLSv1.2', and reload.",
		"go":         "Set MinVersion: tls.VersionTLS12 in the tls.Config.",
	},
	"tls13-missing": {
		"nginx":      "Set ssl_protocols TLSv1.2 TLSv1.3; and reload. nginx before 1.23.4 leaves out TLS 1.3 by default.",
		"apache":     "Set SSLProtocol -all +TLSv1.2 +TLSv1.3, and reload.",
		"haproxy":    "Remove no-tlsv13 and ssl-max-ver from the bind options, and reload.",
		"lighttpd":   "Remove MaxProtocol from ssl.openssl.ssl-conf-cmd, and restart.",
		"caddy":      "Set protocols tls1.2 tls1.3 in the site's tls block, and reload.",
		"postgresql": "Remove ssl_max_protocol_version, and reload.",
		"go":         "Remove MaxVersion from the tls.Config.",
	},
	"suite-weak":          suiteRemedies,
	"suite-not-in-policy": suiteRemedies,
	"suite-order": {
		"nginx":      "Set ssl_prefer_server_ciphers on; and order ssl_ciphers as the policy does, and reload.",
		"apache":     "Set SSLHonorCipherOrder on and order SSLCipherSuite as the policy does, and reload.",
		"haproxy":    "Order ssl-default-bind-ciphers as the policy does, remove prefer-client-ciphers, and reload.",
		"lighttpd":   "Order CipherString in ssl.openssl.ssl-conf-cmd as the policy does, and restart.",
		"postgresql": "Set ssl_prefer_server_ciphers = on, order ssl_ciphers as the policy does, and reload.",
		"go":         "crypto/tls orders the suites itself. A server on ossl has the order of its configuration.",
	},
	"group-retry":       groupRemedies,
	"group-missing":     groupRemedies,
	"group-weak":        groupRemedies,
	"group-postquantum": postQuantumRemedies,
	"resume-tls13": {
		"nginx": "Set ssl_session_tickets on; and ssl_session_cache shared:TLS:10m; and reload. Without a cache, and " +
			"without tickets, nginx resumes nothing.",
		"apache":     "Set SSLSessionTickets on and SSLSessionCache shmcb:/run/apache2/ssl(512000), and reload.",
		"haproxy":    "Remove no-tls-tickets from the bind options, and reload.",
		"lighttpd":   "Remove -SessionTicket from Options in ssl.openssl.ssl-conf-cmd, and restart.",
		"postgresql": "PostgreSQL resumes no sessions, by design. Keep connections open in a pool.",
		"go":         "Remove SessionTicketsDisabled from the tls.Config.",
	},
	"resume-tls12-id": {
		"nginx":    "Set ssl_session_cache shared:TLS:10m; and ssl_session_timeout 1d; and reload.",
		"apache":   "Set SSLSessionCache shmcb:/run/apache2/ssl(512000), and reload.",
		"haproxy":  "Raise tune.ssl.cachesize and tune.ssl.lifetime, and restart.",
		"lighttpd": "Set server.feature-flags += (\"ssl.session-cache\" => \"enable\"), and restart.",
		"caddy":    "Caddy has no sessions by ID: crypto/tls has none. Clients with tickets resume.",
		"go":       "crypto/tls has no sessions by ID. A server on ossl with a session cache has.",
	},
	"resume-tls12-ticket": {
		"nginx":    "Set ssl_session_tickets on; and reload.",
		"apache":   "Set SSLSessionTickets on, and reload.",
		"haproxy":  "Remove no-tls-tickets from the bind options, and reload.",
		"lighttpd": "Remove -SessionTicket from Options in ssl.openssl.ssl-conf-cmd, and restart.",
		"go":       "Remove SessionTicketsDisabled from the tls.Config.",
	},
	"resume-fleet": {
		"nginx":    "Give all servers the same files by ssl_session_ticket_key, and replace them often.",
		"apache":   "Give all servers the same SSLSessionTicketKeyFile, and replace it often.",
		"haproxy":  "Give all servers the same tls-ticket-keys file, and replace it often.",
		"lighttpd": "Give all servers the same ssl.stek-file, and replace it often.",
		"caddy":    "Give all servers the same storage: Caddy shares its ticket keys there.",
		"go":       "Give all servers the same keys by Config.SetSessionTicketKeys.",
	},
	"early-data-on": {
		"nginx":   "Set ssl_early_data off; and reload, unless what is behind nginx refuses early requests with 425.",
		"haproxy": "Remove allow-0rtt from the bind line, and reload, unless the backend refuses early requests with 425.",
	},
	"early-data-replay": {
		"nginx": "Set ssl_early_data off; and reload. Or pass Early-Data ($ssl_early_data) to the application, and let it answer " +
			"425 Too Early to all that changes something. (Options AntiReplay keeps nginx with a shared cache from resuming " +
			"any TLS 1.3 session.)",
		"haproxy": "Remove allow-0rtt from the bind line, or wait with http-request wait-for-handshake, and reload.",
	},
	"alpn-h2": {
		"nginx":    "Set http2 on; (before nginx 1.25.1: listen 443 ssl http2;) and reload.",
		"apache":   "Set Protocols h2 http/1.1 with the event MPM and mod_http2, and reload.",
		"haproxy":  "Add alpn h2,http/1.1 to the bind line, and reload.",
		"lighttpd": "Remove server.h2proto from server.feature-flags, and restart.",
	},
	"certificate-compression": {
		"nginx":   "Set ssl_certificate_compression on; and reload. It needs nginx 1.29.1 and OpenSSL 3.2.",
		"haproxy": "Set tune.ssl.certificate-compression auto, and restart. It needs OpenSSL 3.2.",
	},
}

var suiteRemedies = map[string]string{
	"nginx":      "Name the policy's suites in ssl_ciphers, and those of TLS 1.3 in ssl_conf_command Ciphersuites, and reload.",
	"apache":     "Name the policy's suites in SSLCipherSuite, and those of TLS 1.3 in SSLCipherSuite TLSv1.3, and reload.",
	"haproxy":    "Name the policy's suites in ssl-default-bind-ciphers and ssl-default-bind-ciphersuites, and reload.",
	"lighttpd":   "Name the policy's suites as CipherString and Ciphersuites in ssl.openssl.ssl-conf-cmd, and restart.",
	"caddy":      "Name the policy's suites of TLS 1.2 as ciphers in the site's tls block, and reload.",
	"postgresql": "Name the policy's suites in ssl_ciphers, from version 18 on those of TLS 1.3 in ssl_tls13_ciphers, and reload.",
	"go":         "Name the policy's suites of TLS 1.2 as CipherSuites in the tls.Config.",
}

var groupRemedies = map[string]string{
	"nginx":    "Set ssl_ecdh_curve to the policy's groups, X25519 among the first, and reload.",
	"apache":   "Set SSLOpenSSLConfCmd Groups to the policy's groups, X25519 among the first, and reload.",
	"haproxy":  "Set ssl-default-bind-curves to the policy's groups, X25519 among the first, and reload.",
	"lighttpd": "Set Groups in ssl.openssl.ssl-conf-cmd to the policy's groups, X25519 among the first, and restart.",
	"caddy":    "Set curves in the site's tls block to the policy's groups, X25519 among the first, and reload.",
	"postgresql": "From PostgreSQL 18 on, set ssl_groups = 'X25519:prime256v1'. Before, ssl_ecdh_curve takes one curve, and " +
		"X25519 can't be it: update PostgreSQL.",
	"go": "Set CurvePreferences in the tls.Config to the policy's groups, or leave it out.",
}

var postQuantumRemedies = map[string]string{
	"nginx":      "Run nginx with OpenSSL 3.5 or newer, and begin ssl_ecdh_curve with X25519MLKEM768.",
	"apache":     "Run Apache with OpenSSL 3.5 or newer, and begin SSLOpenSSLConfCmd Groups with X25519MLKEM768.",
	"haproxy":    "Run HAProxy with OpenSSL 3.5 or newer, and begin ssl-default-bind-curves with X25519MLKEM768.",
	"lighttpd":   "Run lighttpd with OpenSSL 3.5 or newer, and begin Groups in ssl.openssl.ssl-conf-cmd with X25519MLKEM768.",
	"caddy":      "Update Caddy to a release that has x25519mlkem768, and remove curves from the site's tls block.",
	"postgresql": "Update to PostgreSQL 18 with OpenSSL 3.5 or newer, and begin ssl_groups with X25519MLKEM768.",
	"go":         "Build the server with Go 1.24 or newer, and leave CurvePreferences out of the tls.Config.",
}
