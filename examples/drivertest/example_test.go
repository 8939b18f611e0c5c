package drivertest

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"log"
	"net"
	"net/smtp"

	"github.com/go-ldap/ldap/v3"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/lib/pq"
	"github.com/nats-io/nats.go"
	"mellium.im/sasl"
	"mellium.im/xmpp"
	"mellium.im/xmpp/jid"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/dbtls"
)

// The programs of docs/DATABASES.md. They are compiled, and not run: no server has their names.

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func Example_pgx() {
	ctx := context.Background()
	dialer := &dbtls.Dialer{Context: must(ossl.NewContext(&tls.Config{ServerName: "db.example.org"}))}
	config := must(pgx.ParseConfig("host=db.example.org user=app dbname=app sslmode=disable"))
	config.DialFunc = dialer.DialPostgres
	conn := must(pgx.ConnectConfig(ctx, config))
	defer conn.Close(ctx)
	var version string
	if err := conn.QueryRow(ctx, "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&version); err != nil {
		log.Fatal(err)
	}
	fmt.Println(version)
}

func Example_pgxDirect() {
	dialer := &dbtls.Dialer{Context: must(ossl.NewContext(&tls.Config{
		ServerName: "db.example.org", NextProtos: []string{"postgresql"},
	}))}
	config := must(pgx.ParseConfig("host=db.example.org user=app dbname=app sslmode=disable"))
	config.DialFunc = dialer.DialPostgresDirect
	conn := must(pgx.ConnectConfig(context.Background(), config))
	defer conn.Close(context.Background())
}

func Example_pq() {
	dialer := &dbtls.Dialer{Context: must(ossl.NewContext(&tls.Config{}))}
	connector := must(pq.NewConnector("host=db.example.org user=app dbname=app sslmode=disable"))
	connector.Dialer(dbtls.DialFunc(dialer.DialPostgres))
	db := sql.OpenDB(connector)
	defer db.Close()
	fmt.Println(db.Ping())
}

func Example_mysql() {
	dialer := &dbtls.Dialer{Context: must(ossl.NewContext(&tls.Config{}))}
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName, config.Addr = "app", "secret", "app", "db.example.org:3306"
	config.Net = "unix" // tells the driver that the connection is safe for passwords
	config.DialFunc = func(ctx context.Context, _, addr string) (net.Conn, error) {
		return dialer.DialMySQL(ctx, "tcp", addr)
	}
	db := sql.OpenDB(must(mysql.NewConnector(config)))
	defer db.Close()
	fmt.Println(db.Ping())
}

func Example_nats() {
	dialer := &dbtls.Dialer{Context: must(ossl.NewContext(&tls.Config{ServerName: "nats.example.org"}))}
	conn := must(nats.Connect("tls://nats.example.org", nats.SetCustomDialer(dbtls.DialFunc(dialer.DialNATS))))
	defer conn.Close()
	fmt.Println(conn.Publish("subject", []byte("hello")))
}

func Example_smtp() {
	dialer := &dbtls.Dialer{Context: must(ossl.NewContext(&tls.Config{}))}
	conn := must(dialer.DialSMTP(context.Background(), "tcp", "mail.example.org:587"))
	client := must(smtp.NewClient(conn, "mail.example.org"))
	defer client.Close()
	auth := smtp.PlainAuth("", "app", "secret", "mail.example.org")
	if err := client.Auth(dbtls.SMTPAuth(conn, auth)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(client.Mail("app@example.org"))
}

func Example_ldap() {
	dialer := &dbtls.Dialer{Context: must(ossl.NewContext(&tls.Config{}))}
	raw := must(dialer.DialLDAP(context.Background(), "tcp", "ldap.example.org:389"))
	conn := ldap.NewConn(raw, true)
	conn.Start()
	defer conn.Close()
	fmt.Println(conn.Bind("cn=app,dc=example,dc=org", "secret"))
}

func Example_xmpp() {
	tlsContext := must(ossl.NewContext(&tls.Config{ServerName: "example.org", NextProtos: []string{"xmpp-client"}}))
	conn := must(tlsContext.Dial("tcp", "xmpp.example.org:5223"))
	defer conn.Close()
	address := jid.MustParse("app@example.org")
	features := []xmpp.StreamFeature{xmpp.SASL("", "secret", sasl.ScramSha256Plus), xmpp.BindResource()}
	session := must(xmpp.NewSession(context.Background(), address.Domain(), address, conn, xmpp.Secure,
		xmpp.NewNegotiator(func(*xmpp.Session, *xmpp.StreamConfig) xmpp.StreamConfig {
			return xmpp.StreamConfig{Features: features}
		})))
	fmt.Println(session.LocalAddr())
}
