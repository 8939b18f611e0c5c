package drivertest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/ossl-go/ossl/dbtls"
)

// startMariaDB starts a server with the users "app", who needs TLS, "mutual", who needs a certificate
// too, and "switched", whose plugin is not the server's default.
func startMariaDB(t *testing.T) *home {
	t.Helper()
	program := lookPath(t, "mariadbd")
	h := newHome(t)
	data := filepath.Join(h.dir, "data")
	h.run("mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	init := h.write("init.sql", []byte(`CREATE DATABASE app;
CREATE USER app@'%' IDENTIFIED BY 'secret' REQUIRE SSL;
GRANT ALL ON *.* TO app@'%';
CREATE USER mutual@'%' IDENTIFIED BY 'secret' REQUIRE SUBJECT '/CN=app';
GRANT ALL ON *.* TO mutual@'%';
CREATE USER switched@'%' IDENTIFIED VIA ed25519 USING PASSWORD('secret') REQUIRE SSL;
`))
	h.start(syscall.SIGTERM, program, "--no-defaults", "--datadir="+data, "--init-file="+init, "--skip-name-resolve",
		"--bind-address=127.0.0.1", fmt.Sprint("--port=", h.port), "--socket="+filepath.Join(h.dir, "socket"),
		"--plugin-load-add=auth_ed25519", "--ssl-cert="+h.cert, "--ssl-key="+h.key, "--ssl-ca="+h.roots,
		"--tls-version=TLSv1.2,TLSv1.3", "--innodb-flush-log-at-trx-commit=0")
	return h
}

func mysqlConfig(h *home, user string, dial dbtls.DialFunc) *mysql.Config {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName, config.Net, config.Addr = user, "secret", "app", "tcp", h.addr()
	config.DialFunc = dial
	return config
}

func openMySQL(t *testing.T, config *mysql.Config) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func status(t *testing.T, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, variable string) (value string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE '"+variable+"'").Scan(&variable, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestMySQL(t *testing.T) {
	h := startMariaDB(t)
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) {
			user := "app"
			if c.mutual {
				user = "mutual"
			}
			recorder := newRecorder(t, c)
			for range 2 {
				db := openMySQL(t, mysqlConfig(h, user, recorder.recorded(recorder.DialMySQL)))
				if version := status(t, db, "Ssl_version"); version != strings.Replace(tls.VersionName(c.version), " ", "v", 1) {
					t.Errorf("the server sees %q", version)
				}
				var length int
				if err := db.QueryRowContext(t.Context(), "SELECT length(?)", strings.Repeat("x", 1<<20)).Scan(&length); err != nil ||
					length != 1<<20 {
					t.Errorf("%d, %v", length, err)
				}
				db.Close()
			}
			recorder.check(t, c, 2, true)
		})
	}
	t.Run("another plugin", func(t *testing.T) {
		recorder := newRecorder(t, connections[2])
		config := mysqlConfig(h, "switched", recorder.DialMySQL)
		config.DBName = ""
		if status(t, openMySQL(t, config), "Ssl_version") == "" {
			t.Error("the server sees no TLS")
		}
	})
	t.Run("compression", func(t *testing.T) {
		recorder := newRecorder(t, connections[2])
		config := mysqlConfig(h, "app", recorder.DialMySQL)
		if err := config.Apply(mysql.EnableCompression(true)); err != nil {
			t.Fatal(err)
		}
		if db := openMySQL(t, config); status(t, db, "Compression") != "ON" || status(t, db, "Ssl_version") == "" {
			t.Error("the server sees no compression, or no TLS")
		}
	})
	t.Run("wrong password", func(t *testing.T) {
		config := mysqlConfig(h, "app", newRecorder(t, connections[2]).DialMySQL)
		config.Passwd = "wrong"
		var failure *mysql.MySQLError
		if err := openMySQL(t, config).PingContext(t.Context()); !errors.As(err, &failure) || failure.Number != 1045 {
			t.Error(err)
		}
	})
	t.Run("untrusted", func(t *testing.T) {
		recorder := newRecorder(t, connections[2], func(c *tls.Config) { c.RootCAs = x509.NewCertPool() })
		err := openMySQL(t, mysqlConfig(h, "app", recorder.DialMySQL)).PingContext(t.Context())
		if !errors.As(err, new(x509.UnknownAuthorityError)) {
			t.Errorf("the driver hides the reason: %v", err)
		}
	})
	t.Run("tls=true", func(t *testing.T) {
		config := mysqlConfig(h, "app", newRecorder(t, connections[2]).DialMySQL)
		config.TLSConfig = "true"
		if err := openMySQL(t, config).PingContext(t.Context()); !errors.Is(err, mysql.ErrNoTLS) {
			t.Error(err)
		}
	})
	t.Run("killed", func(t *testing.T) { testMySQLKilled(t, h) })
}

// database/sql replaces a connection that the server has closed before it is used again.
func testMySQLKilled(t *testing.T, h *home) {
	recorder := newRecorder(t, connections[2])
	config := mysqlConfig(h, "app", recorder.recorded(recorder.DialMySQL))
	db, other := openMySQL(t, config), openMySQL(t, mysqlConfig(h, "app", newRecorder(t, connections[2]).DialMySQL))
	var id int
	if err := db.QueryRowContext(t.Context(), "SELECT connection_id()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	if _, err := other.ExecContext(t.Context(), fmt.Sprint("KILL ", id)); err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0; { // the connection is closed before it leaves the list
		query := fmt.Sprint("SELECT count(*) FROM information_schema.processlist WHERE id = ", id)
		if err := other.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	var again int
	if err := db.QueryRowContext(t.Context(), "SELECT connection_id()").Scan(&again); err != nil || again == id {
		t.Errorf("connection %d after %d, %v", again, id, err)
	}
	if n := len(recorder.states()); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// MySQL's caching_sha2_password wants the password itself if the connection has TLS. The driver sends
// it only if it thinks so: with the network "unix", whose connections count as safe. Debian has no
// MySQL, so the server is a stand-in.
func TestMySQLCachingSHA2(t *testing.T) {
	for _, test := range []struct{ network, want string }{
		{"unix", "secret\x00"},
		{"tcp", "\x02"}, // a request for an RSA key, which MySQL takes for the password
	} {
		t.Run(test.network, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			got := make(chan string, 1)
			go func() {
				password, err := serveCachingSHA2(listener)
				got <- fmt.Sprint(password, err)
			}()
			recorder := newRecorder(t, connections[2])
			config := mysqlConfig(&home{}, "app", func(ctx context.Context, _, _ string) (net.Conn, error) {
				return recorder.DialMySQL(ctx, "tcp", listener.Addr().String())
			})
			config.Net, config.MaxAllowedPacket = test.network, 1<<20
			err = openMySQL(t, config).PingContext(t.Context())
			if sent := <-got; sent != test.want+fmt.Sprint(nil) || (err == nil) != (test.network == "unix") {
				t.Errorf("the driver sent %q; ping: %v", sent, err)
			}
		})
	}
}

// mysqlStandIn is the greeting of a MySQL server.
const mysqlStandIn = "\x0a8.0.40\x00\x01\x00\x00\x00abcdefgh\x00\xff\xff\x2d\x02\x00\xff\xdf\x15" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00ijklmnopqrst\x00caching_sha2_password\x00"

// serveCachingSHA2 returns the packet that a client sends in full authentication.
func serveCachingSHA2(listener net.Listener) (string, error) {
	raw, err := listener.Accept()
	if err != nil {
		return "", err
	}
	defer raw.Close()
	if err := writePacket(raw, 0, mysqlStandIn); err != nil {
		return "", err
	}
	if _, err := readPacket(raw, 1); err != nil {
		return "", err
	}
	conn := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{ids().server}})
	if _, err := readPacket(conn, 2); err != nil {
		return "", err
	}
	if err := writePacket(conn, 3, "\x01\x04"); err != nil { // perform full authentication
		return "", err
	}
	password, err := readPacket(conn, 4)
	if err != nil || password == "\x02" {
		return password, errors.Join(err, writePacket(conn, 5, "\xff\x15\x04#28000Access denied"))
	}
	if err := writePacket(conn, 5, "\x00\x00\x00\x02\x00\x00\x00"); err != nil {
		return "", err
	}
	if _, err := readPacket(conn, 0); err != nil { // a ping
		return "", err
	}
	return password, writePacket(conn, 1, "\x00\x00\x00\x02\x00\x00\x00")
}

func writePacket(w io.Writer, number byte, body string) error {
	_, err := io.WriteString(w, string([]byte{byte(len(body)), byte(len(body) >> 8), 0, number})+body)
	return err
}

func readPacket(r io.Reader, number byte) (string, error) {
	header := make([]byte, 4)
	if _, err := io.ReadFull(r, header); err != nil {
		return "", err
	}
	body := make([]byte, binary.LittleEndian.Uint16(header))
	if _, err := io.ReadFull(r, body); err != nil {
		return "", err
	}
	if header[3] != number {
		return "", fmt.Errorf("packet %d, want %d", header[3], number)
	}
	return string(body), nil
}

// TestMySQLContextEnds checks that the driver's Connect returns if its context is done while the
// server is silent in the handshake.
func TestMySQLContextEnds(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		defer cancel()
		conn, err := listener.Accept()
		if err != nil {
			served <- err
			return
		}
		defer conn.Close()
		err = writePacket(conn, 0, mysqlStandIn)
		if err == nil {
			_, err = readPacket(conn, 1)
		}
		cancel()
		_, _ = io.Copy(io.Discard, conn) // until the driver closes the connection
		served <- err
	}()
	config := mysqlConfig(&home{}, "app", newRecorder(t, connections[2]).DialMySQL)
	config.Addr = listener.Addr().String()
	if err := openMySQL(t, config).PingContext(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
