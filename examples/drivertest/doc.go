// Package drivertest tests dbtls with drivers and real servers: pgx and lib/pq with PostgreSQL,
// go-sql-driver/mysql with MariaDB, nats.go with NATS, net/smtp with aiosmtpd, go-ldap with slapd.
//
// It is in another module than dbtls so that the core requires no driver. ci/dbtls installs the
// servers and runs it. The tests start servers on free ports of 127.0.0.1 and stop them.
package drivertest
