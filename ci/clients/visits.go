package main

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ossl-go/ossl"
	"github.com/ossl-go/ossl/internal/tlstest"
)

const httpRequest = "GET / HTTP/1.1\r\nHost: " + serverName + "\r\nConnection: close\r\n\r\n"

// caFile is the authority's certificate in a client's folder.
const caFile = "ca.pem"

func writeCA(dir string) error {
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tlstest.CA().Cert.Raw})
	return os.WriteFile(filepath.Join(dir, caFile), cert, 0o600)
}

// checkAnswer looks for n answers in a program's output.
func checkAnswer(out string, n int) error {
	if got := strings.Count(out, answer); got != n {
		return fmt.Errorf("%d answers, not %d: %q", got, n, out)
	}
	return nil
}

// program is the visit by a program in programs/. These programs all have the same arguments, and
// print their times and the number of resumed connections.
func program(start ...string) func(context.Context, *visit) (told, error) {
	return func(ctx context.Context, v *visit) (told, error) {
		args := append(start[:len(start):len(start)], v.port, caFile, v.version, fmt.Sprint(v.fresh), fmt.Sprint(v.reused))
		out, err := command(ctx, v.dir, "", args...)
		if err != nil {
			return told{}, err
		}
		var fresh, reused float64
		var resumed string
		if _, err := fmt.Sscanf(out, "seconds %f %f resumed %s", &fresh, &reused, &resumed); err != nil {
			return told{}, fmt.Errorf("%v: %w in %q", args, err, out)
		}
		t := told{fresh: time.Duration(fresh * 1e9), reused: time.Duration(reused * 1e9), resumed: unknown}
		if resumed != "?" {
			t.resumed, err = strconv.Atoi(resumed)
		}
		return t, err
	}
}

func prepareJava(ctx context.Context, c *client) error {
	_, err := command(ctx, c.dir, "", "javac", "Client.java")
	return err
}

// prepareC compiles a program in C.
func prepareC(source, library, name string, flags ...string) func(context.Context, *client) error {
	return func(ctx context.Context, c *client) error {
		args := append([]string{"cc", "-O2", "-Wall", "-o", name, source}, flags...)
		_, err := command(ctx, c.dir, "", append(args, "-l"+library)...)
		return err
	}
}

// untimed is a visit whose connections all belong together: none of them begins anew, and it has no
// times.
func untimed(run func(context.Context, *visit) (resumed int, err error)) func(context.Context, *visit) (told, error) {
	return func(ctx context.Context, v *visit) (told, error) {
		resumed, err := run(ctx, v)
		return told{resumed: resumed}, err
	}
}

// curl keeps sessions for all its URLs.
func visitCurl(ctx context.Context, v *visit) (resumed int, err error) {
	args := []string{"curl", "-sS", "-4", "--cacert", caFile, "--tlsv" + v.version, "--tls-max", v.version}
	for range 1 + v.reused {
		args = append(args, "https://"+serverName+":"+v.port+"/")
	}
	out, err := command(ctx, v.dir, "", args...)
	if err != nil {
		return 0, err
	}
	return unknown, checkAnswer(out, 1+v.reused)
}

// Each openssl s_client leaves its session to the next one in a file.
func visitOpenSSL(ctx context.Context, v *visit) (resumed int, err error) {
	flag := map[string]string{"1.2": "-tls1_2", "1.3": "-tls1_3"}[v.version]
	for i := range 1 + v.reused {
		args := []string{"openssl", "s_client", "-quiet", "-connect", "127.0.0.1:" + v.port, "-servername", serverName,
			"-CAfile", caFile, "-verify_return_error", "-verify_hostname", serverName, flag, "-sess_out", "session.pem"}
		if i > 0 {
			args = append(args, "-sess_in", "session.pem")
		}
		out, err := command(ctx, v.dir, httpRequest, args...)
		if err == nil {
			err = checkAnswer(out, 1)
		}
		if err != nil {
			return 0, err
		}
	}
	return unknown, nil
}

// gnutls-cli connects twice: the second time with the session of the first, and only then with a
// request.
func visitGnuTLS(ctx context.Context, v *visit) (resumed int, err error) {
	for range v.reused {
		out, err := command(ctx, v.dir, httpRequest, "gnutls-cli", "--resume", "--waitresumption", "--x509cafile", caFile,
			"--sni-hostname", serverName, "--verify-hostname", serverName, "--priority", "NORMAL:-VERS-ALL:+VERS-TLS"+v.version,
			"--port", v.port, "127.0.0.1")
		if err == nil {
			err = checkAnswer(out, 1)
		}
		if err != nil {
			return 0, err
		}
		if strings.Contains(out, "*** This is a resumed session") {
			resumed++
		}
	}
	return resumed, nil
}

// prepareNSS makes NSS's database of certificates, which holds the authorities.
func prepareNSS(ctx context.Context, c *client) error {
	if err := os.MkdirAll(filepath.Join(c.dir, "nss"), 0o700); err != nil {
		return err
	}
	if _, err := command(ctx, c.dir, "", "certutil", "-N", "-d", "sql:nss", "--empty-password"); err != nil {
		return err
	}
	if _, err := command(ctx, c.dir, "", "certutil", "-A", "-d", "sql:nss", "-n", "ca", "-t", "C,,", "-i", caFile); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, "request"), []byte(httpRequest), 0o600)
}

// tstclnt connects anew -L times in one process, which keeps sessions.
func visitNSS(flags ...string) func(context.Context, *visit) (int, error) {
	return func(ctx context.Context, v *visit) (resumed int, err error) {
		args := append([]string{"tstclnt", "-4", "-d", "sql:nss", "-h", serverName, "-p", v.port,
			"-V", "tls" + v.version + ":tls" + v.version, "-A", "request", "-L", fmt.Sprint(1 + v.reused)}, flags...)
		out, err := command(ctx, v.dir, "", args...)
		if err != nil {
			return 0, err
		}
		return unknown, checkAnswer(out, 1+v.reused)
	}
}

// visitGo visits with Go's own clients, crypto/tls and ossl, in this process.
func visitGo(dialer func(config *tls.Config) (dialContext, error)) func(context.Context, *visit) (int, error) {
	return func(ctx context.Context, v *visit) (resumed int, err error) {
		number := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[v.version]
		dial, err := dialer(&tls.Config{
			RootCAs: tlstest.CA().Pool(), ServerName: serverName, MinVersion: number, MaxVersion: number,
			ClientSessionCache: tls.NewLRUClientSessionCache(1),
		})
		if err != nil {
			return 0, err
		}
		for range 1 + v.reused {
			did, err := get(ctx, dial, "127.0.0.1:"+v.port)
			if err != nil {
				return 0, err
			}
			if did {
				resumed++
			}
		}
		return resumed, nil
	}
}

type dialContext func(ctx context.Context, network, addr string) (net.Conn, error)

func dialStd(config *tls.Config) (dialContext, error) {
	return (&tls.Dialer{Config: config}).DialContext, nil
}

func dialOSSL(config *tls.Config) (dialContext, error) {
	ctx, err := ossl.NewContext(config)
	if err != nil {
		return nil, err
	}
	return func(dialing context.Context, network, addr string) (net.Conn, error) {
		return ctx.DialContext(dialing, network, addr)
	}, nil
}

func get(ctx context.Context, dial dialContext, addr string) (resumed bool, err error) {
	conn, err := dial(ctx, "tcp", addr)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, httpRequest); err != nil {
		return false, err
	}
	out, err := io.ReadAll(conn)
	if err != nil {
		return false, err
	}
	return conn.(tlsConn).ConnectionState().DidResume, checkAnswer(string(out), 1)
}
