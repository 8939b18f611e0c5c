package drivertest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/ossl-go/ossl/dbtls"
)

// startPostgres starts a server that takes the password of "app", and the certificate of "app" for
// the database "mutual", and nothing without TLS.
func startPostgres(t *testing.T, program string) *home {
	t.Helper()
	h := newHome(t)
	password, data := h.write("password", []byte("secret\n")), filepath.Join(h.dir, "data")
	initdb := []string{filepath.Join(filepath.Dir(program), "initdb"), "-D", data, "-U", "app", "--pwfile=" + password,
		"-A", "scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C"}
	if tree, _, ok := strings.Cut(program, "/usr/lib/postgresql/17/"); ok && tree != "" { // of ci/openssl-versions -servers
		initdb = append([]string{tree + "/run"}, initdb...)
	}
	h.run(initdb[0], initdb[1:]...)
	h.ready = func() bool {
		pid, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
		return err == nil && bytes.Contains(pid, []byte("ready"))
	}
	hba := h.write("hba.conf", []byte("hostssl template1 app 127.0.0.1/32 cert\nhostssl all app 127.0.0.1/32 scram-sha-256\n"))
	h.start(syscall.SIGINT, program, "-D", data, "-c", "hba_file="+hba, "-c", "listen_addresses=127.0.0.1",
		"-c", fmt.Sprint("port=", h.port), "-c", "unix_socket_directories=", "-c", "fsync=off",
		"-c", "ssl=on", "-c", "ssl_cert_file="+h.cert, "-c", "ssl_key_file="+h.key, "-c", "ssl_ca_file="+h.roots)
	return h
}

// postgresDSN is for a driver without TLS. The client's certificate opens template1.
func postgresDSN(h *home, c connection) string {
	database := "postgres"
	if c.mutual {
		database = "template1"
	}
	return fmt.Sprintf("host=127.0.0.1 port=%d user=app password=secret dbname=%s sslmode=disable", h.port, database)
}

// sslView asks the server for the TLS parameters of the connection that runs the query.
const sslView = "SELECT ssl, version, coalesce(client_dn, '') FROM pg_stat_ssl WHERE pid = pg_backend_pid()"

func checkSSLView(t *testing.T, c connection, ssl bool, version, client string) {
	t.Helper()
	want := ""
	if c.mutual {
		want = "/CN=app"
	}
	if !ssl || version != strings.Replace(tls.VersionName(c.version), " ", "v", 1) || client != want {
		t.Errorf("the server sees TLS %v, %s, client %q", ssl, version, client)
	}
}

// PostgreSQL resumes no sessions.
func TestPgx(t *testing.T) {
	h := startPostgres(t, lookPath(t, "postgres"))
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) {
			recorder := newRecorder(t, c)
			config, err := pgx.ParseConfig(postgresDSN(h, c))
			if err != nil {
				t.Fatal(err)
			}
			config.DialFunc = pgconn.DialFunc(recorder.recorded(recorder.DialPostgres))
			for range 2 {
				conn, err := pgx.ConnectConfig(t.Context(), config)
				if err != nil {
					t.Fatal(err)
				}
				var ssl bool
				var version, client string
				if err := conn.QueryRow(t.Context(), sslView).Scan(&ssl, &version, &client); err != nil {
					t.Fatal(err)
				}
				checkSSLView(t, c, ssl, version, client)
				var length int
				if err := conn.QueryRow(t.Context(), "SELECT length($1)", strings.Repeat("x", 1<<20)).Scan(&length); err != nil ||
					length != 1<<20 {
					t.Errorf("%d, %v", length, err)
				}
				if err := conn.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			recorder.check(t, c, 2, false)
		})
	}
	t.Run("cancel", func(t *testing.T) { testPgxCancel(t, h) })
	t.Run("channel binding", func(t *testing.T) { testPgxChannelBinding(t, h) })
	t.Run("untrusted", func(t *testing.T) {
		recorder := newRecorder(t, connections[2], func(c *tls.Config) { c.RootCAs = x509.NewCertPool() })
		config, err := pgx.ParseConfig(postgresDSN(h, connections[2]))
		if err != nil {
			t.Fatal(err)
		}
		config.DialFunc = recorder.DialPostgres
		if _, err := pgx.ConnectConfig(t.Context(), config); !errors.As(err, new(x509.UnknownAuthorityError)) {
			t.Error(err)
		}
	})
	t.Run("name", func(t *testing.T) { testPgxName(t, h) })
}

// runs waits until the server runs a query with pg_sleep, which another connection sees.
func runs(t *testing.T, db *sql.DB) {
	t.Helper()
	for ctx, n := t.Context(), 0; n == 0; {
		const query = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'"
		if err := db.QueryRowContext(ctx, query).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
}

func openPQ(t *testing.T, dsn string, dial dbtls.DialFunc) *sql.DB {
	t.Helper()
	connector, err := pq.NewConnector(dsn)
	if err != nil {
		t.Fatal(err)
	}
	connector.Dialer(dial)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

// A request to cancel a query goes over a connection of its own, with TLS too.
func testPgxCancel(t *testing.T, h *home) {
	c := connections[2]
	recorder := newRecorder(t, c)
	config, err := pgx.ParseConfig(postgresDSN(h, c))
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = pgconn.DialFunc(recorder.recorded(recorder.DialPostgres))
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	result := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "SELECT pg_sleep(600)")
		result <- err
	}()
	other := newRecorder(t, c)
	runs(t, openPQ(t, postgresDSN(h, c), other.DialPostgres))
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
		t.Error(err)
	}
	var failure *pgconn.PgError
	if err := <-result; !errors.As(err, &failure) || failure.Code != "57014" {
		t.Errorf("the query was not cancelled: %v", err)
	}
	recorder.check(t, c, 2, false)
}

// pgx binds SCRAM to crypto/tls's connections only. If it must, it refuses others.
func testPgxChannelBinding(t *testing.T, h *home) {
	config, err := pgx.ParseConfig(postgresDSN(h, connections[2]) + " channel_binding=require")
	if err != nil {
		t.Fatal(err)
	}
	recorder := newRecorder(t, connections[2])
	config.DialFunc = recorder.DialPostgres
	if _, err := pgx.ConnectConfig(t.Context(), config); err == nil || !strings.Contains(err.Error(), "channel binding") {
		t.Error(err)
	}
}

// pgx dials addresses, so the name must be the Dialer's, or the configuration's.
func testPgxName(t *testing.T, h *home) {
	dsn := strings.Replace(postgresDSN(h, connections[2]), "host=127.0.0.1", "host=localhost", 1)
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
	recorder := newRecorder(t, connections[2])
	recorder.ServerName = "localhost"
	config.DialFunc = recorder.DialPostgres
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil { // dials the address too
		t.Error(err)
	}
	conn.Close(t.Context())
}

// PostgreSQL 17 takes direct TLS, and a connection that asks for TLS first.
func TestPostgres17(t *testing.T) {
	servers := os.Getenv("OSSL_SERVERS")
	if servers == "" {
		t.Skip("OSSL_SERVERS doesn't name the folder of ci/openssl-versions -servers, which has PostgreSQL 17")
	}
	program, err := filepath.Glob(filepath.Join(servers, "servers-trixie/usr/lib/postgresql/17/bin/postgres"))
	if err != nil || len(program) != 1 {
		t.Fatalf("%q, %v", program, err)
	}
	h := startPostgres(t, program[0])
	for _, c := range connections {
		for name, dial := range map[string]func(*dbtls.Dialer) dbtls.DialFunc{
			"direct":     func(d *dbtls.Dialer) dbtls.DialFunc { return d.DialPostgresDirect },
			"SSLRequest": func(d *dbtls.Dialer) dbtls.DialFunc { return d.DialPostgres },
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				recorder := newRecorder(t, c, func(c *tls.Config) { c.NextProtos = []string{"postgresql"} })
				config, err := pgx.ParseConfig(postgresDSN(h, c))
				if err != nil {
					t.Fatal(err)
				}
				config.DialFunc = pgconn.DialFunc(recorder.recorded(dial(recorder.Dialer)))
				for range 2 {
					conn, err := pgx.ConnectConfig(t.Context(), config)
					if err != nil {
						t.Fatal(err)
					}
					var ssl bool
					var version, client string
					if err := conn.QueryRow(t.Context(), sslView).Scan(&ssl, &version, &client); err != nil {
						t.Fatal(err)
					}
					checkSSLView(t, c, ssl, version, client)
					conn.Close(t.Context())
				}
				recorder.check(t, c, 2, false)
			})
		}
	}
	// Without ALPN, the server closes a direct connection.
	if _, err := newRecorder(t, connections[2]).DialPostgresDirect(t.Context(), "tcp", h.addr()); err == nil {
		t.Error("a direct connection without ALPN")
	}
}

func TestPQ(t *testing.T) {
	h := startPostgres(t, lookPath(t, "postgres"))
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) {
			recorder := newRecorder(t, c)
			db := openPQ(t, postgresDSN(h, c), recorder.recorded(recorder.DialPostgres))
			var ssl bool
			var version, client string
			if err := db.QueryRowContext(t.Context(), sslView).Scan(&ssl, &version, &client); err != nil {
				t.Fatal(err)
			}
			checkSSLView(t, c, ssl, version, client)
			recorder.check(t, c, 1, false)
		})
	}
	t.Run("cancel", func(t *testing.T) {
		c := connections[2]
		recorder, other := newRecorder(t, c), newRecorder(t, c)
		db := openPQ(t, postgresDSN(h, c), recorder.recorded(recorder.DialPostgres))
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() {
			_, err := db.ExecContext(ctx, "SELECT pg_sleep(600)")
			result <- err
		}()
		runs(t, openPQ(t, postgresDSN(h, c), other.DialPostgres))
		cancel()
		if err := <-result; err == nil || !strings.Contains(err.Error(), "cancel") {
			t.Errorf("the query was not cancelled: %v", err)
		}
		recorder.check(t, c, 2, false)
	})
	t.Run("connect_timeout", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		recorder := newRecorder(t, connections[2])
		dsn := fmt.Sprintf("host=127.0.0.1 port=%d user=app sslmode=disable connect_timeout=1", listener.Addr().(*net.TCPAddr).Port)
		db := openPQ(t, dsn, recorder.DialPostgres)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := db.PingContext(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Error(err)
		}
	})
}
