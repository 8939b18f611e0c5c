// Package dbtls dials servers whose protocols change to TLS in the middle of a connection, and
// returns connections on OpenSSL: for drivers of databases, and for clients of mail servers,
// directories and message brokers.
//
// A [Dialer]'s methods have the signature that drivers' hooks for dialing have. The driver is
// configured not to use TLS itself:
//
//	tlsContext, err := ossl.NewContext(&tls.Config{ServerName: "db.example.org"})
//	...
//	dialer := &dbtls.Dialer{Context: tlsContext}
//	config, err := pgx.ParseConfig("host=db.example.org user=app sslmode=disable")
//	...
//	config.DialFunc = dialer.DialPostgres
//
// docs/DATABASES.md has such programs for pgx, lib/pq, go-sql-driver/mysql, nats.go, net/smtp and
// go-ldap.
//
// # Security
//
// There is no way to go on without TLS: if the server doesn't offer it, or refuses it, dialing
// fails. A connection is returned to the driver, or, with MySQL, sends the driver's first bytes,
// only once the handshake has verified the server by the rules of the [ossl.Context].
//
// A server sends nothing between its consent to TLS and its part of the handshake. Bytes that
// arrive there are refused with [ErrPlaintext], and never reach the driver: a client that took them
// for a part of the encrypted session would let others inject answers (CVE-2011-0411,
// CVE-2021-23222).
//
// The dialogue before TLS can be read and changed by others. So SMTP and LDAP clients see nothing
// of it, NATS clients see an INFO without the servers that it lists, and MySQL clients see the
// server's greeting, as they do with their own TLS.
package dbtls
