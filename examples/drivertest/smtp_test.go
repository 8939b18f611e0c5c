package drivertest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"net/smtp"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ossl-go/ossl/dbtls"
)

//go:embed testdata/smtpd.py
var smtpd []byte

// startSMTP starts aiosmtpd, with STARTTLS or TLS at once, which wants the password of "app".
func startSMTP(t *testing.T, c connection, mode string) *home {
	t.Helper()
	python := lookPath(t, "/usr/bin/python3") // the one that Debian's packages are for
	if err := exec.Command(python, "-c", "import aiosmtpd").Run(); err != nil {
		t.Skip("aiosmtpd is not installed")
	}
	h := newHome(t)
	h.start(syscall.SIGTERM, python, h.write("smtpd.py", smtpd), mode, strconv.Itoa(h.port), h.cert, h.key, h.roots,
		strings.TrimPrefix(c.name[:len("TLS 1.x")], "TLS "), strconv.FormatBool(c.mutual))
	return h
}

func TestSMTP(t *testing.T) {
	for mode, dial := range map[string]func(*dbtls.Dialer) dbtls.DialFunc{
		"starttls": func(d *dbtls.Dialer) dbtls.DialFunc { return d.DialSMTP },
		"tls":      func(d *dbtls.Dialer) dbtls.DialFunc { return d.DialTLS },
	} {
		for _, c := range connections {
			t.Run(mode+"/"+c.name, func(t *testing.T) {
				h := startSMTP(t, c, mode)
				recorder := newRecorder(t, c)
				for range 2 {
					sendMail(t, h, recorder.recorded(dial(recorder.Dialer)))
				}
				recorder.check(t, c, 2, true)
			})
		}
	}
}

func sendMail(t *testing.T, h *home, dial dbtls.DialFunc) {
	t.Helper()
	conn, err := dial(t.Context(), "tcp", h.addr())
	if err != nil {
		t.Fatal(err)
	}
	client, err := smtp.NewClient(conn, "mail.test")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Auth(dbtls.SMTPAuth(conn, smtp.PlainAuth("", "app", "secret", "mail.test"))); err != nil {
		t.Fatal(err)
	}
	if ok, _ := client.Extension("STARTTLS"); ok {
		t.Error("the server offers STARTTLS again")
	}
	if err := errors.Join(client.Mail("a@test"), client.Rcpt("b@test")); err != nil {
		t.Fatal(err)
	}
	body, err := client.Data()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := body.Write([]byte("Subject: hello\r\n\r\nhello\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(body.Close(), client.Quit()); err != nil {
		t.Error(err)
	}
}

// net/smtp's own check stands without SMTPAuth, and a stranger gets nothing.
func TestSMTPFaults(t *testing.T) {
	c := connections[2]
	h := startSMTP(t, c, "starttls")
	recorder := newRecorder(t, c)
	conn, err := recorder.DialSMTP(t.Context(), "tcp", h.addr())
	if err != nil {
		t.Fatal(err)
	}
	client, err := smtp.NewClient(conn, "mail.test")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Auth(smtp.PlainAuth("", "app", "secret", "mail.test")); err == nil {
		t.Error("PlainAuth sends the password")
	}
	stranger := newRecorder(t, c, func(c *tls.Config) { c.RootCAs = x509.NewCertPool() })
	if _, err := stranger.DialSMTP(context.Background(), "tcp", h.addr()); !errors.As(err, new(x509.UnknownAuthorityError)) {
		t.Error(err)
	}
}
