package audit

// remedies are directives, by rule and product. A rule that isn't here, or a product, has the general
// remedy of its finding. What each directive needs is in the manual of the product, and in the files
// that "ossl config" writes.
var remedies = map[string]map[string]string{
	"version-missing":         noVersionRemedies,
	"tls13-missing":           noVersionRemedies,
	"signature-weak":          signatureRemedies,
	"signature-not-in-policy": signatureRemedies,
	"ems-missing": {
		"nginx":      "Run nginx with OpenSSL 1.1.0 or newer.",
		"apache":     "Run Apache with OpenSSL 1.1.0 or newer.",
		"haproxy":    "Run HAProxy with OpenSSL 1.1.0 or newer.",
		"lighttpd":   "Run lighttpd with OpenSSL 1.1.0 or newer.",
		"caddy":      "Update Caddy: it has the extension if it was built with Go 1.21 or newer.",
		"postgresql": "Run PostgreSQL with OpenSSL 1.1.0 or newer.",
		"go":         "Build the server with Go 1.21 or newer.",
	},
	"renegotiation-client": {
		"nginx":  "Update nginx: it refuses clients' renegotiation since 0.8.23.",
		"apache": "Update Apache: it refuses clients' renegotiation since 2.2.15.",
	},
	"compression-on": {
		"nginx":      "Update nginx: it turns compression off since 1.3.2.",
		"apache":     "Set SSLCompression off, and reload.",
		"haproxy":    "Run HAProxy with OpenSSL 1.1.0 or newer, whose compression is off.",
		"lighttpd":   "Set ssl.openssl.ssl-conf-cmd += ( \"Options\" => \"-Compression\" ), and restart.",
		"postgresql": "Update PostgreSQL: it turns compression off since 14.",
	},
	"resume-tls13": {
		"nginx": "Set ssl_session_tickets on; and ssl_session_cache shared:TLS:10m; and reload. Without a cache, and " +
			"without tickets, nginx resumes nothing.",
		"apache":   "Set SSLSessionTickets on and SSLSessionCache shmcb:/run/apache2/ssl(512000), and reload.",
		"haproxy":  "Remove no-tls-tickets from the bind options, and reload.",
		"lighttpd": "Remove -SessionTicket from Options in ssl.openssl.ssl-conf-cmd, and restart.",
		"go":       "Remove SessionTicketsDisabled from the tls.Config.",
	},
	"resume-none": {
		"caddy": "Remove the setting that turns session_tickets off from Caddy's JSON, and reload.",
		"go":    "Remove SessionTicketsDisabled from the tls.Config.",
	},
	"resume-tls12-id": {
		"nginx":    "Set ssl_session_cache shared:TLS:10m; and reload.",
		"apache":   "Set SSLSessionCache shmcb:/run/apache2/ssl(512000), and reload.",
		"haproxy":  "Raise tune.ssl.cachesize and tune.ssl.lifetime, and restart.",
		"lighttpd": "Set server.feature-flags += (\"ssl.session-cache\" => \"enable\"), and restart.",
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
	"ticket-rotation": {
		"nginx":    "Use nginx 1.23.2 or newer with a shared ssl_session_cache and no ssl_session_ticket_key, or reload it daily.",
		"apache":   "Reload Apache daily, or replace the SSLSessionTicketKeyFile daily.",
		"haproxy":  "Reload HAProxy daily, or replace the keys of tls-ticket-keys by set ssl tls-key.",
		"lighttpd": "Remove ssl.stek-file: lighttpd changes its own key every 8 hours.",
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

// noVersionRemedies are those of products with bounds, of which one is to be removed.
var noVersionRemedies = map[string]string{
	"haproxy":  "Remove no-tlsv13, no-tlsv12, ssl-max-ver and force-tlsv12 from the bind options, and reload.",
	"lighttpd": "Remove MaxProtocol from ssl.openssl.ssl-conf-cmd, and restart.",
}

var signatureRemedies = map[string]string{
	"caddy": "Caddy can't set the signature schemes: crypto/tls chooses by the key. Use an ECDSA key on P-256.",
	"postgresql": "PostgreSQL can't set the signature schemes: name those of the policy as SignatureAlgorithms in the openssl.cnf " +
		"that it reads.",
	"go": "crypto/tls chooses the scheme by the key: use an ECDSA key on P-256.",
}
